//! The file of a Unix socket.
//!
//! Owns the file from binding to the end. A file that a dead process has left is replaced; one where
//! somebody listens is not. Two processes that start in the same moment may both find the file dead: the
//! later one then has it.

use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Its owner and its group may connect: a front end on the same machine joins the group.
const MODE: u32 = 0o660;

/// Removes the file when it is dropped, unless it is another one by then.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Its device and its number there.
    id: (u64, u64),
}

/// Binds a socket, which does not listen yet, so that nobody connects before the mode is set.
pub fn bind(path: &Path) -> io::Result<(Socket, SocketFile)> {
    let address = SockAddr::unix(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            remove_dead(path, &address)?;
            socket.bind(&address)?;
        }
        bound => bound?,
    }
    let file = SocketFile { path: path.to_path_buf(), id: id_of(path)? };
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    Ok((socket, file))
}

/// Removes the file of a socket where nobody listens.
fn remove_dead(path: &Path, address: &SockAddr) -> io::Result<()> {
    let in_use = |why| Err(io::Error::new(ErrorKind::AddrInUse, why));
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return in_use("the file exists and is not a socket");
    }
    // It must not wait for a process that accepts nothing.
    let probe = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    match probe.connect(address) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error),
        _ => in_use("a running process listens there"),
    }
}

fn id_of(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if id_of(&self.path).is_ok_and(|id| id == self.id) {
            // A file that stays is replaced at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}
