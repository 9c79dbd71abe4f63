//! TLS sessions with exchanges, over sockets that their connections own.
//!
//! This file owns the trusted certificates (Mozilla's roots, and the ones in `tls.caFile`), the protocol
//! settings (TLS 1.3 and 1.2, ALPN `http/1.1`, session resumption), and a session for each connection. No
//! other file names the library.
//!
//! It never blocks, and each call does little. A step of the handshake reads from the socket once. A read
//! ends with the first record that has bytes for the core. Bytes that do not fit the buffer stay here, and
//! `holds_bytes` reports them.
//!
//! It checks certificates by the clock that it is given.
//!
//! Invariant: `held` is the number of bytes that are decrypted and not yet read.

use super::connection::{Opener, Progress, Session, Socket, Transfer};
use crate::config::Config;
use crate::core::Broken;
use crate::time::{Clock, UnixMs};
use rustls::client::ClientConnection;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Most bytes that one read takes from the socket without a byte for the core: the size of the
/// largest record (RFC 8446, 5.2).
const RECORD: usize = 5 + 16 * 1024 + 256;

/// Longest error text. The peer controls parts of it.
const TEXT_CHARS: usize = 300;

/// Makes the opener of sessions. They share one configuration with the trusted certificates, which are parsed
/// here. The error says what is wrong with `tls.caFile`.
pub fn opener(config: &Config, clock: Clock) -> Result<Opener, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let file = config.tls.ca_file.as_deref().unwrap_or_default();
    let certificates = CertificateDer::pem_slice_iter(config.tls.ca_text.as_bytes());
    for (at, certificate) in certificates.enumerate() {
        let fault = |why: &dyn fmt::Display| {
            let number = at + 1;
            format!("tls.caFile: certificate {number} of {file:?} is malformed: {why}")
        };
        let certificate = certificate.map_err(|error| fault(&error))?;
        let added = roots.add(certificate);
        added.map_err(|error| fault(&message_of(&error)))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(WallClock(clock)));
    let mut shared = builder
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for both versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    shared.alpn_protocols = vec![b"http/1.1".to_vec()];
    let shared = Arc::new(shared);
    Ok(Box::new(move |host| {
        let name = ServerName::try_from(host.to_string())
            .map_err(|_| Broken::Text(format!("invalid host name {host:?}").into()))?;
        let conn = ClientConnection::new(Arc::clone(&shared), name)
            .map_err(|error| Broken::Text(message_of(&error).into()))?;
        Ok(Box::new(TlsSession { conn, held: 0, ended: false }))
    }))
}

/// The clock in the form that the library needs.
#[derive(Debug)]
struct WallClock(Clock);

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        let ms = u64::try_from(self.0.now().unix.0).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_millis(ms)))
    }
}

#[derive(Debug)]
struct TlsSession {
    conn: ClientConnection,
    /// Number of bytes that are decrypted and not yet read.
    held: usize,
    /// The peer has sent close_notify, and `read` has not returned `End` yet.
    ended: bool,
}

impl Session for TlsSession {
    fn holds_bytes(&self) -> bool {
        self.held > 0 || self.ended
    }

    fn wants_write(&self) -> bool {
        self.conn.wants_write()
    }

    fn shake_hands(&mut self, socket: &mut Socket) -> Result<Progress, Broken> {
        self.flush(socket)?;
        let mut taken = 0;
        if self.conn.is_handshaking() && socket.readable {
            taken = match self.take_in(socket)? {
                Some(0) => return Err(Broken::Closed),
                Some(count) => count,
                None => 0,
            };
        }
        Ok(match self.conn.is_handshaking() {
            false if !self.conn.wants_write() => Progress::Secured,
            true if taken > 0 && socket.readable => Progress::More,
            _ => Progress::Waiting,
        })
    }

    fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> Result<Transfer, Broken> {
        let mut taken = 0;
        while !self.holds_bytes() {
            // A short read has drained the socket, so another call is not needed.
            if !socket.readable || taken >= RECORD {
                return Ok(Transfer::Inner(taken));
            }
            match self.take_in(socket)? {
                Some(0) => return Err(Broken::Text("closed without close_notify".into())),
                Some(count) => taken += count,
                None => return Ok(Transfer::Inner(taken)),
            }
        }
        if self.held == 0 {
            self.ended = false;
            return Ok(Transfer::End);
        }
        let count = self.conn.reader().read(buffer)?;
        self.held -= count.min(self.held);
        Ok(Transfer::Bytes(count))
    }

    fn write(&mut self, socket: &mut Socket, bytes: &[u8]) -> Result<usize, Broken> {
        let taken = self.conn.writer().write(bytes)?;
        self.flush(socket)?;
        Ok(taken)
    }

    fn flush(&mut self, socket: &mut Socket) -> Result<(), Broken> {
        while self.conn.wants_write() && socket.writable {
            match self.conn.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn finish(&mut self, socket: &mut Socket) {
        self.conn.send_close_notify();
        // An error means that the peer has gone already.
        let _ = self.flush(socket);
    }
}

impl TlsSession {
    /// Reads from the socket once and decrypts complete records. `None` if nothing could be read, 0
    /// if the peer has closed.
    fn take_in(&mut self, socket: &mut Socket) -> Result<Option<usize>, Broken> {
        let count = match self.conn.read_tls(socket) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            // A record above the largest size.
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(Broken::Text("received data that is not TLS".into()));
            }
            Err(error) => return Err(error.into()),
        };
        match self.conn.process_new_packets() {
            Ok(state) => {
                self.held = state.plaintext_bytes_to_read();
                self.ended = state.peer_has_closed();
            }
            Err(error) => {
                // Sends the alert. The peer may have gone already.
                let _ = self.flush(socket);
                return Err(Broken::Text(message_of(&error).into()));
            }
        }
        // The records may require a reply: the next handshake message, or a key update.
        self.flush(socket)?;
        Ok(Some(count))
    }
}

/// The error text for the log and `/health`.
fn message_of(error: &Error) -> String {
    let text = match error {
        Error::InvalidCertificate(error) => certificate_message(error),
        Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => {
            "received data that is not TLS".into()
        }
        Error::PeerIncompatible(why) => format!("no common version or cipher ({why:?})"),
        Error::NoApplicationProtocol => "the peer does not speak http/1.1".into(),
        Error::AlertReceived(alert) => format!("refused by the peer ({alert:?})"),
        error => error.to_string(),
    };
    let plain = |char: char| if char.is_control() { ' ' } else { char };
    text.chars().take(TEXT_CHARS).map(plain).collect()
}

fn certificate_message(error: &CertificateError) -> String {
    let time = |time: &UnixTime| UnixMs(i64::try_from(time.as_secs()).unwrap_or(0) * 1000);
    match error {
        CertificateError::UnknownIssuer => "the certificate's issuer is unknown (tls.caFile adds \
                                            trusted issuers)"
            .into(),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the certificate has expired, on {}", time(not_after))
        }
        // The text leaves out the current time: a text that changes would be logged again with
        // every retry.
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "the certificate is not valid before {}, and this machine's clock is behind that",
            time(not_before)
        ),
        // rustls has no variant for this error of webpki, so it is recognised by its name.
        CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            "expected a server certificate issued by a CA, found a CA's own or a self-signed one"
                .into()
        }
        error => format!("bad certificate: {error}"),
    }
}
