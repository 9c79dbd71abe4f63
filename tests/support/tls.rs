//! TLS in front of a fake exchange: a certificate authority made on the spot, and a server that
//! takes TLS off and passes the bytes on.
//!
//! The server keeps what every handshake came to, so that a test can say which name was asked for,
//! whether a session was resumed, and what the client had against a certificate.

use super::exchange::locked;
use super::relay::serve_each;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{HandshakeKind, ProtocolVersion, ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Somebody who signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// When a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// From 2020 to 2090.
    Now,
    /// Until 2021-01-01.
    Past,
    /// From 2080 on.
    Future,
}

/// A certificate with its key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// The certificate of an authority for this name, signed by itself, as a server's.
    pub fn self_signed(name: &str) -> Identity {
        let (key, mut params) = request(&[name]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Identity::of(params.self_signed(&key), &key)
    }

    fn of(certificate: Result<Certificate, rcgen::Error>, key: &KeyPair) -> Identity {
        Identity {
            chain: vec![certificate.expect("it was signed").der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).expect("it is a key"),
        }
    }
}

/// A new key, and what is to be certified for it.
fn request(names: &[&str]) -> (KeyPair, CertificateParams) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
    let params = CertificateParams::new(names).expect("the names are good");
    (KeyPair::generate().expect("a key can be made"), params)
}

impl Authority {
    /// A new one, whom nobody knows yet.
    pub fn new(name: &str) -> Authority {
        let (key, mut params) = request(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("it signs for itself");
        Authority { pem: certificate.pem(), issuer: Issuer::new(params, key) }
    }

    /// Its own certificate, as `tls.caFile` takes it.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Signs a certificate for these names and addresses.
    pub fn identity(&self, names: &[&str], validity: Validity) -> Identity {
        let (key, mut params) = request(names);
        let (from, to) = match validity {
            Validity::Now => (2020, 2090),
            Validity::Past => (2020, 2021),
            Validity::Future => (2080, 2090),
        };
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(to, 1, 1);
        Identity::of(params.signed_by(&key, &self.issuer), &key)
    }
}

/// What one handshake came to.
#[derive(Clone, Debug)]
pub struct Shaken {
    /// The name that was asked for; none where that is an address.
    pub name: Option<String>,
    /// The protocol that was agreed on.
    pub alpn: Option<String>,
    /// The version that was agreed on.
    pub version: Option<ProtocolVersion>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// Why it failed; the client's alert, for one.
    pub error: Option<String>,
}

/// A running server. Its connections end when this is dropped.
pub struct TlsFront {
    addr: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    config: Arc<ServerConfig>,
    to: SocketAddr,
    shaken: Mutex<Vec<Shaken>>,
    streams: Mutex<Vec<TcpStream>>,
    truncating: AtomicBool,
}

impl TlsFront {
    /// Speaks TLS with whoever comes, and passes what is inside on to `to`.
    pub fn start(identity: Identity, to: SocketAddr) -> TlsFront {
        TlsFront::with_versions(identity, to, rustls::ALL_VERSIONS)
    }

    /// The same with these versions of TLS alone.
    pub fn with_versions(
        identity: Identity,
        to: SocketAddr,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> TlsFront {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("the provider has these versions")
            .with_no_client_auth()
            .with_single_cert(identity.chain, identity.key)
            .expect("key and certificate fit");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let inner = Arc::new(Inner {
            config: Arc::new(config),
            to,
            shaken: Mutex::default(),
            streams: Mutex::default(),
            truncating: AtomicBool::new(false),
        });
        let serving = Arc::clone(&inner);
        // What a handshake came to is noted.
        let addr = serve_each(move |stream| _ = serving.serve(stream));
        TlsFront { addr, inner }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `https://HOST:PORT`
    pub fn url(&self, host: &str) -> String {
        format!("https://{host}:{}", self.addr.port())
    }

    /// What every handshake came to so far.
    pub fn shaken(&self) -> Vec<Shaken> {
        locked(&self.inner.shaken).clone()
    }

    /// From now on connections end without the end that TLS asks for.
    pub fn truncate(&self) {
        self.inner.truncating.store(true, Ordering::SeqCst);
    }

    /// Ends every open connection at once.
    pub fn cut(&self) {
        for stream in locked(&self.inner.streams).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Inner {
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        locked(&self.streams).push(stream.try_clone()?);
        let mut conn =
            ServerConnection::new(Arc::clone(&self.config)).expect("the configuration is good");
        let shaken = conn.complete_io(&mut &*stream);
        locked(&self.shaken).push(Shaken {
            name: conn.server_name().map(str::to_string),
            alpn: (conn.alpn_protocol()).map(|it| String::from_utf8_lossy(it).into_owned()),
            version: conn.protocol_version(),
            resumed: conn.handshake_kind() == Some(HandshakeKind::Resumed),
            error: shaken.as_ref().err().map(ToString::to_string),
        });
        shaken?;
        let back = TcpStream::connect(self.to)?;
        locked(&self.streams).push(back.try_clone()?);
        let conn = Mutex::new(conn);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let passed = pass_inwards(stream, &conn, &back);
                let _ = back.shutdown(Shutdown::Both);
                passed
            });
            let passed = pass_outwards(&back, &conn, stream);
            if !self.truncating.load(Ordering::SeqCst) {
                let mut conn = locked(&conn);
                conn.send_close_notify();
                let _ = write_all(&mut conn, stream);
            }
            // Wakes the other direction.
            let _ = stream.shutdown(Shutdown::Both);
            passed
        })
    }
}

fn pass_inwards(
    mut from: &TcpStream,
    conn: &Mutex<ServerConnection>,
    mut to: &TcpStream,
) -> io::Result<()> {
    let mut room = [0; 16 * 1024];
    // The first request may have come with the last step of the handshake.
    let mut count = 0;
    loop {
        let (mut rest, mut plain) = (&room[..count], Vec::new());
        {
            let mut conn = locked(conn);
            loop {
                let state = conn.process_new_packets().map_err(io::Error::other)?;
                let begin = plain.len();
                plain.resize(begin + state.plaintext_bytes_to_read(), 0);
                conn.reader().read_exact(&mut plain[begin..])?;
                if rest.is_empty() {
                    break;
                }
                conn.read_tls(&mut rest)?;
            }
            write_all(&mut conn, from)?;
        }
        to.write_all(&plain)?;
        count = from.read(&mut room)?;
        if count == 0 {
            return Ok(());
        }
    }
}

fn pass_outwards(
    mut from: &TcpStream,
    conn: &Mutex<ServerConnection>,
    to: &TcpStream,
) -> io::Result<()> {
    let mut room = [0; 16 * 1024];
    loop {
        let count = from.read(&mut room)?;
        if count == 0 {
            return Ok(());
        }
        let mut conn = locked(conn);
        conn.writer().write_all(&room[..count])?;
        write_all(&mut conn, to)?;
    }
}

fn write_all(conn: &mut ServerConnection, mut to: &TcpStream) -> io::Result<()> {
    while conn.wants_write() {
        conn.write_tls(&mut to)?;
    }
    Ok(())
}
