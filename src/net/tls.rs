//! TLS: sessions with exchanges, over sockets that are somebody else's.
//!
//! Owns what is trusted (the roots of Mozilla's list, and those of `tls.caFile`), what is spoken
//! (TLS 1.3 and 1.2, ALPN `http/1.1`, sessions resumed where the exchange allows it), and one
//! session for each connection. This is the one file that names the library.
//!
//! It never waits and never does much at a time: a step of the handshake reads from the socket
//! once; a read ends with the first record that holds bytes for the core, and those that are not
//! taken stay here, where [`Session::holds_bytes`] tells of them.
//!
//! It never reads a clock: certificates are judged by the clock that it is given.
//!
//! Invariant: `held` is what the library has decrypted and nobody has read.

use super::link::{Moved, Progress};
use super::socket::Socket;
use crate::config::Config;
use crate::core::Broken;
use crate::time::{Clock, UnixMs};
use rustls::client::ClientConnection;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of TLS that one read takes from the socket before it gives way, when they bring nothing
/// for the core: the largest record (RFC 8446, 5.2).
const RECORD: usize = 5 + 16 * 1024 + 256;

/// Names of a wrong certificate that are told.
const NAMES_TOLD: usize = 3;

/// Longest text about a peer: some of it is the peer's own.
const TEXT_CHARS: usize = 300;

/// What all sessions share.
pub struct Tls(Arc<ClientConfig>);

impl Tls {
    /// The error names what is wrong with `tls.caFile`.
    pub fn new(config: &Config, clock: Clock) -> Result<Tls, String> {
        let mut roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        let file = config.tls.ca_file.as_deref().unwrap_or_default();
        let certificates = CertificateDer::pem_slice_iter(config.tls.ca_text.as_bytes());
        for (at, certificate) in certificates.enumerate() {
            let fault = |why: &dyn fmt::Display| {
                let number = at + 1;
                format!("tls.caFile: certificate {number} of {file:?} is malformed: {why}")
            };
            let certificate = certificate.map_err(|error| fault(&error))?;
            let added = roots.add(certificate);
            added.map_err(|error| fault(&said(&error)))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_details(provider, Arc::new(Wall(clock)));
        let mut shared = builder
            .with_safe_default_protocol_versions()
            .expect("the provider has suites for both versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        shared.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(Arc::new(shared)))
    }

    /// A session with whoever has a certificate for `host`, a name or an address.
    pub fn open(&self, host: &str) -> Result<Session, Broken> {
        let broken = |why: &str| Broken::Tls(format!("{why} {host:?}").into());
        let name = ServerName::try_from(host.to_string())
            .map_err(|_| broken("no certificate can be for the name"))?;
        let conn = ClientConnection::new(Arc::clone(&self.0), name)
            .map_err(|error| Broken::Tls(said(&error).into()))?;
        Ok(Session {
            conn,
            held: 0,
            ended: false,
        })
    }
}

/// Our clock, as the library asks for it.
#[derive(Debug)]
struct Wall(Clock);

impl TimeProvider for Wall {
    fn current_time(&self) -> Option<UnixTime> {
        let ms = u64::try_from(self.0.now().unix.0).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_millis(ms)))
    }
}

/// One session.
#[derive(Debug)]
pub struct Session {
    conn: ClientConnection,
    /// Bytes that are decrypted and not yet read.
    held: usize,
    /// The peer has said that nothing more comes, and nobody has been told yet.
    ended: bool,
}

impl Session {
    /// Whether reading brings something, whatever the socket says.
    pub fn holds_bytes(&self) -> bool {
        self.held > 0 || self.ended
    }

    /// Whether there are bytes that the kernel has not taken.
    pub fn wants_write(&self) -> bool {
        self.conn.wants_write()
    }

    /// Takes one step of the handshake.
    pub fn shake_hands(&mut self, socket: &mut Socket) -> Progress {
        match self.step(socket) {
            Ok(progress) => progress,
            Err(why) => Progress::Failed(why),
        }
    }

    fn step(&mut self, socket: &mut Socket) -> Result<Progress, Broken> {
        self.flush(socket)?;
        let mut taken = 0;
        if self.conn.is_handshaking() && socket.is_readable() {
            taken = match self.take_in(socket)? {
                Some(0) => return Err(Broken::Closed),
                Some(count) => count,
                None => 0,
            };
        }
        Ok(match self.conn.is_handshaking() {
            false if !self.conn.wants_write() => Progress::Secured,
            true if taken > 0 && socket.is_readable() => Progress::More,
            _ => Progress::Waiting,
        })
    }

    /// Reads what is decrypted, or takes in bytes until something is.
    pub fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> Moved {
        let mut taken = 0;
        while !self.holds_bytes() {
            if !socket.is_readable() {
                // A short read has drained the socket: the call that would say so is saved.
                return if taken == 0 {
                    Moved::Blocked
                } else {
                    Moved::Inner(taken)
                };
            }
            match self.take_in(socket) {
                Ok(Some(0)) => {
                    let why = "closed without the end that TLS asks for (close_notify)";
                    return Moved::Failed(Broken::Tls(why.into()));
                }
                Ok(Some(count)) => taken += count,
                Ok(None) if taken == 0 => return Moved::Blocked,
                Ok(None) => return Moved::Inner(taken),
                Err(why) => return Moved::Failed(why),
            }
            if taken >= RECORD && !self.holds_bytes() {
                return Moved::Inner(taken);
            }
        }
        if self.held == 0 {
            self.ended = false;
            return Moved::End;
        }
        match self.conn.reader().read(buffer) {
            Ok(count) => {
                self.held -= count.min(self.held);
                Moved::Bytes(count)
            }
            Err(error) => Moved::Failed(Broken::Io(error.kind())),
        }
    }

    /// Takes bytes of the core, and hands them to the kernel as far as that takes them.
    pub fn write(&mut self, socket: &mut Socket, bytes: &[u8]) -> Moved {
        match self.conn.writer().write(bytes) {
            Ok(0) => Moved::Failed(Broken::Io(ErrorKind::WriteZero)),
            Ok(count) => match self.flush(socket) {
                Ok(()) => Moved::Bytes(count),
                Err(why) => Moved::Failed(why),
            },
            Err(error) => Moved::Failed(Broken::Io(error.kind())),
        }
    }

    /// Hands the kernel what it takes of what is to be sent.
    pub fn flush(&mut self, socket: &mut Socket) -> Result<(), Broken> {
        while self.conn.wants_write() && socket.is_writable() {
            match self.conn.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(Broken::Io(error.kind())),
            }
        }
        Ok(())
    }

    /// Says that nothing more will come, if that can be said at once.
    pub fn finish(&mut self, socket: &mut Socket) {
        self.conn.send_close_notify();
        // Who is gone cannot mind.
        let _ = self.flush(socket);
    }

    /// Reads from the socket once and decrypts what is whole. `None`: there is nothing to read;
    /// zero: the peer has closed.
    fn take_in(&mut self, socket: &mut Socket) -> Result<Option<usize>, Broken> {
        let count = match self.conn.read_tls(socket) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(of_read(&error)),
        };
        match self.conn.process_new_packets() {
            Ok(state) => {
                self.held = state.plaintext_bytes_to_read();
                self.ended = state.peer_has_closed();
            }
            Err(error) => {
                // The alert that tells the peer why. It may be gone already.
                let _ = self.flush(socket);
                return Err(Broken::Tls(said(&error).into()));
            }
        }
        // What the records asked for: the next step of the handshake, or new keys.
        self.flush(socket)?;
        Ok(Some(count))
    }
}

/// A failed read is the system's, or that of a record which is larger than any may be.
fn of_read(error: &io::Error) -> Broken {
    match error.kind() {
        ErrorKind::InvalidData => Broken::Tls("what came is no TLS".into()),
        kind => Broken::Io(kind),
    }
}

/// What is wrong, for people.
fn said(error: &Error) -> String {
    let text = match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => "what came is no TLS".into(),
        Error::PeerIncompatible(why) => format!("no common version or cipher ({why:?})"),
        Error::NoApplicationProtocol => "the peer does not speak http/1.1".into(),
        Error::AlertReceived(alert) => format!("refused by the peer ({alert:?})"),
        error => error.to_string(),
    };
    let plain = |char: char| if char.is_control() { ' ' } else { char };
    text.chars().take(TEXT_CHARS).map(plain).collect()
}

fn of_certificate(error: &CertificateError) -> String {
    let time = |time: &UnixTime| UnixMs(i64::try_from(time.as_secs()).unwrap_or(0) * 1000);
    match error {
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names: Vec<&str> = presented.iter().map(|it| inner(it)).collect();
            let more = if names.len() > NAMES_TOLD {
                ", ..."
            } else {
                ""
            };
            let told = names[..names.len().min(NAMES_TOLD)].join(", ");
            let told = if told.is_empty() { "nobody" } else { &told };
            let expected = expected.to_str();
            format!("the certificate is not for {expected}, but for {told}{more}")
        }
        CertificateError::NotValidForName => "the certificate is for another name".into(),
        CertificateError::UnknownIssuer => "the certificate's issuer is unknown (tls.caFile names \
                                            those that count besides the known ones)"
            .into(),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the certificate has expired, on {}", time(not_after))
        }
        CertificateError::Expired => "the certificate has expired".into(),
        // Without the clock's time: a text that is another one each second would be a line in the
        // log for every try.
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "the certificate is not valid before {}, and this machine's clock is behind that",
            time(not_before)
        ),
        CertificateError::NotValidYet => "the certificate is not valid yet".into(),
        // What webpki says without an own word of rustls for it has no other form than its name.
        CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            "the certificate is an authority's own, or signed by itself: a server's, issued by an \
             authority, was expected"
                .into()
        }
        error => format!("bad certificate: {error}"),
    }
}

/// `DnsName("a.com")` without its wrapping.
fn inner(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, rest)| rest);
    inner.trim_end_matches(')').trim_matches('"')
}
