use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tautline_transport::crypto::{Identity, PublicKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

use super::dial::Dialler;
use super::*;

#[tokio::test]
async fn both_ends_know_each_other_by_key_and_frames_go_both_ways() {
    let listener = listen().await;
    let (_client, mut events) = start(&listener, SERVER, vec![b"hello".to_vec()]);
    let mut connection = accept(&listener).await.unwrap();
    assert_eq!(connection.peer_key(), identity(CLIENT).public());
    assert_eq!(connection.recv().await.unwrap(), Some(b"hello".to_vec()));
    let body = vec![7; BODY_BYTES_MAX];
    connection.send(&body).await.unwrap();
    let Some(Event::Connected { local, .. }) = events.recv().await else { panic!() };
    assert_eq!(local, connection.remote());
    let Some(Event::Frame(frame)) = events.recv().await else { panic!() };
    assert_eq!(frame, body);
}

#[tokio::test]
async fn a_client_comes_by_the_link_that_leads_to_the_server() {
    let listener = listen().await;
    // The system has neither of the first two; the third reaches the server.
    let links = ["192.0.2.1:0", "wwan-never", "127.0.0.7:0"].map(|local| local.parse().unwrap());
    let (address, key) = (listener.local().to_string(), identity(SERVER).public());
    let answer = |_: &[u8]| None;
    let started = Client::start_by(&links, address, key, &identity(CLIENT), vec![], answer);
    let (_client, mut events) = started.unwrap();
    let connection = accept(&listener).await.unwrap();
    assert_eq!(connection.remote().ip().to_string(), "127.0.0.7");
    let Some(Event::Connected { local, by, servers }) = events.recv().await else { panic!() };
    assert_eq!((local, by.as_str()), (connection.remote(), "127.0.0.7:0"));
    assert_eq!(servers, [listener.local()]);
}

#[tokio::test]
async fn an_invalid_switchboard_address_is_refused_at_start() {
    let key = identity(SERVER).public();
    let answer = |_: &[u8]| None;
    let started = Client::start("https://desk", key, &identity(CLIENT), vec![], answer);
    let words = started.unwrap_err().to_string();
    assert!(words.contains("is not a switchboard address"), "{words}");
}

#[tokio::test]
async fn a_server_with_another_key_is_refused_by_name() {
    let listener = listen().await;
    let (_client, mut events) = start(&listener, OTHER, vec![]);
    assert!(accept(&listener).await.is_err());
    let Some(Event::Disconnected { error, retry_in }) = events.recv().await else { panic!() };
    let (found, expected) = (identity(SERVER).public(), identity(OTHER).public());
    let address = listener.local();
    assert_eq!(
        error.to_string(),
        format!(
            "{address} has the key {found}, expected {expected}: the address is wrong, or the key was replaced"
        )
    );
    assert_eq!(retry_in, Duration::from_millis(200));
}

#[tokio::test]
async fn an_answered_frame_is_no_event_and_the_rest_is() {
    let listener = listen().await;
    let (_client, mut events) = start(&listener, SERVER, vec![]);
    let mut connection = accept(&listener).await.unwrap();
    connection.send(b"ping").await.unwrap();
    connection.send(b"news").await.unwrap();
    assert_eq!(connection.recv().await.unwrap(), Some(b"pong".to_vec()));
    assert!(matches!(events.recv().await, Some(Event::Connected { .. })));
    assert!(matches!(events.recv().await, Some(Event::Frame(frame)) if frame == b"news"));
}

#[tokio::test]
async fn a_client_comes_back_with_its_newest_greeting() {
    let listener = listen().await;
    let (client, mut events) = start(&listener, SERVER, vec![b"one".to_vec()]);
    let mut connection = accept(&listener).await.unwrap();
    assert_eq!(connection.recv().await.unwrap(), Some(b"one".to_vec()));
    assert!(matches!(events.recv().await, Some(Event::Connected { .. })));
    client.handle().set_greeting(vec![b"two".to_vec(), b"three".to_vec()]);
    drop(connection);
    let Some(Event::Disconnected { error, .. }) = events.recv().await else { panic!() };
    assert!(matches!(error, Error::Closed), "{error}");
    assert!(matches!(client.handle().send(b"lost".to_vec()), Err(Error::NotConnected)));
    let mut connection = accept(&listener).await.unwrap();
    assert_eq!(connection.recv().await.unwrap(), Some(b"two".to_vec()));
    assert_eq!(connection.recv().await.unwrap(), Some(b"three".to_vec()));
}

#[tokio::test]
async fn closing_lets_the_queued_frames_out() {
    let listener = listen().await;
    let (client, mut events) = start(&listener, SERVER, vec![]);
    let mut connection = accept(&listener).await.unwrap();
    assert!(matches!(events.recv().await, Some(Event::Connected { .. })));
    client.handle().send(b"last".to_vec()).unwrap();
    client.close().await;
    assert_eq!(connection.recv().await.unwrap(), Some(b"last".to_vec()));
    assert_eq!(connection.recv().await.unwrap(), None);
    assert!(events.recv().await.is_none());
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let listener = listen().await;
    let server_timeout = Duration::from_millis(200);
    let (client, mut events) = start_with(&listener, SERVER, vec![], server_timeout);
    let mut connection = accept(&listener).await.unwrap();
    assert!(matches!(events.recv().await, Some(Event::Connected { .. })));
    let Some(Event::Disconnected { error, .. }) = events.recv().await else { panic!() };
    assert!(matches!(error, Error::Silent { .. }), "{error}");
    assert!(!client.handle().is_connected());
    assert_eq!(connection.recv().await.unwrap(), None);
}

#[tokio::test]
async fn a_frame_over_the_limit_ends_the_connection() {
    let listener = listen().await;
    let config = tls::client(&identity(CLIENT), identity(SERVER).public(), tls::CONTROL).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let tcp = TcpStream::connect(listener.local()).await.unwrap();
    let (raw, server) = tokio::join!(connector.connect(tls::server_name(), tcp), accept(&listener));
    let (mut raw, mut server) = (raw.unwrap(), server.unwrap());
    raw.write_all(&[0xff; 1000]).await.unwrap();
    raw.flush().await.unwrap();
    for _ in 0..2 {
        let error = server.recv().await.unwrap_err();
        assert!(matches!(error, Error::FrameTooLong { bytes: 0xffff_ffff, .. }), "{error}");
    }
    drop(server);
    let _ = raw.read(&mut [0; 1]).await;
}

#[tokio::test]
async fn a_frame_cut_short_is_no_frame() {
    let listener = listen().await;
    let config = tls::client(&identity(CLIENT), identity(SERVER).public(), tls::CONTROL).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let tcp = TcpStream::connect(listener.local()).await.unwrap();
    let (raw, server) = tokio::join!(connector.connect(tls::server_name(), tcp), accept(&listener));
    let (mut raw, mut server) = (raw.unwrap(), server.unwrap());
    raw.write_all(&[0, 0, 0, 9, 1, 2]).await.unwrap();
    raw.shutdown().await.unwrap();
    assert!(matches!(server.recv().await, Err(Error::Closed)));
}

#[tokio::test]
async fn bytes_that_are_no_tls_are_refused() {
    let listener = listen().await;
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 600], &[0x16, 0x03, 0x01, 0xff, 0xff]] {
        let mut tcp = TcpStream::connect(listener.local()).await.unwrap();
        tcp.write_all(bytes).await.unwrap();
        tcp.shutdown().await.unwrap();
        let error = accept(&listener).await.unwrap_err();
        assert!(matches!(error, Error::Handshake { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    let listener = listen().await;
    let mut config =
        tls::client(&identity(CLIENT), identity(SERVER).public(), tls::CONTROL).unwrap();
    config.client_auth_cert_resolver = Arc::new(NoCertificate);
    let connector = TlsConnector::from(Arc::new(config));
    let tcp = TcpStream::connect(listener.local()).await.unwrap();
    let (_, server) = tokio::join!(connector.connect(tls::server_name(), tcp), accept(&listener));
    assert!(matches!(server, Err(Error::Handshake { .. })));
}

#[tokio::test]
async fn a_taken_port_gets_one_clear_line() {
    let first = listen().await;
    let error = Listener::bind(first.local(), &identity(SERVER)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot listen on {}: another program uses the address", first.local())
    );
}

#[tokio::test]
async fn a_missing_server_is_reported_in_one_line() {
    let listener = listen().await;
    let address = listener.local();
    drop(listener);
    let (_client, mut events) = start_at(address, SERVER, vec![], SERVER_TIMEOUT);
    let Some(Event::Disconnected { error, .. }) = events.recv().await else { panic!() };
    assert_eq!(
        error.to_string(),
        format!("cannot connect to {address}: connection refused: nothing listens there")
    );
}

#[tokio::test]
async fn a_certificate_without_its_key_proves_nothing() {
    // The certificate of one identity, and signatures by another.
    let listener = listen().await;
    let (certificate, _) = tls::certificate(&identity(CLIENT)).unwrap();
    let (_, key) = tls::certificate(&identity(OTHER)).unwrap();
    let key = rustls::crypto::ring::sign::any_eddsa_type(&match key {
        rustls::pki_types::PrivateKeyDer::Pkcs8(key) => key,
        _ => panic!("identities are PKCS#8"),
    });
    let stolen = rustls::sign::CertifiedKey::new(vec![certificate], key.unwrap());
    let mut config =
        tls::client(&identity(CLIENT), identity(SERVER).public(), tls::CONTROL).unwrap();
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(stolen));
    let connector = TlsConnector::from(Arc::new(config));
    let tcp = TcpStream::connect(listener.local()).await.unwrap();
    let (_, server) = tokio::join!(connector.connect(tls::server_name(), tcp), accept(&listener));
    let error = server.unwrap_err();
    assert!(error.to_string().contains("BadSignature"), "{error}");
}

#[derive(Debug)]
struct NoCertificate;

impl rustls::client::ResolvesClientCert for NoCertificate {
    fn resolve(
        &self,
        _root_hint_subjects: &[&[u8]],
        _sigschemes: &[rustls::SignatureScheme],
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

async fn listen() -> Listener {
    Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), &identity(SERVER)).await.unwrap()
}

async fn accept(listener: &Listener) -> Result<Connection, Error> {
    listener.accept().await?.handshake().await
}

fn start(
    listener: &Listener,
    server: u8,
    greeting: Vec<Vec<u8>>,
) -> (Client, mpsc::Receiver<Event>) {
    start_at(listener.local(), server, greeting, SERVER_TIMEOUT)
}

fn start_with(
    listener: &Listener,
    server: u8,
    greeting: Vec<Vec<u8>>,
    server_timeout: Duration,
) -> (Client, mpsc::Receiver<Event>) {
    start_at(listener.local(), server, greeting, server_timeout)
}

fn start_at(
    address: SocketAddr,
    server: u8,
    greeting: Vec<Vec<u8>>,
    server_timeout: Duration,
) -> (Client, mpsc::Receiver<Event>) {
    let server_key: PublicKey = identity(server).public();
    let answer = Box::new(|frame: &[u8]| (frame == b"ping").then(|| b"pong".to_vec()));
    let dialler = Dialler::new(address.into(), &[]);
    Client::start_with(dialler, server_key, &identity(CLIENT), greeting, answer, server_timeout)
        .unwrap()
}

const SERVER: u8 = 1;
const CLIENT: u8 = 2;
const OTHER: u8 = 3;
