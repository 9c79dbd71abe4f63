//! The file that tells other programs the addresses, which port 0 leaves open.

use super::listen::{Listener, fails};
use crate::core::Service;
use crate::json::json;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

/// Removes the file when it is dropped.
pub struct AddressFile(PathBuf);

impl AddressFile {
    /// Removes what a process has left that was killed.
    pub fn claim(path: PathBuf) -> AddressFile {
        let _ = fs::remove_file(&path);
        AddressFile(path)
    }

    /// Writes it whole: whoever finds it can read all of it.
    pub fn write(&self, listeners: &[Listener]) -> Result<(), String> {
        let path = &self.0;
        let place = |services: &[Service]| {
            let found = listeners.iter().find(|it| services.contains(&it.service));
            found.map(|it| it.place.as_str())
        };
        let mut text = Vec::new();
        json!(&mut text, {
            "listen": place(&[Service::Api, Service::Both]),
            "ecosystemListen": place(&[Service::Ecosystem]),
            "demo": place(&[Service::Demo]),
            "pid": i64::from(std::process::id()),
        });
        text.push(b'\n');
        let mut draft = OsString::from(path);
        draft.push("-new");
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, path));
        let told = format!("write {}", path.display());
        written.map_err(fails(&told)).map_err(|error| format!("--address-file: {error}"))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
