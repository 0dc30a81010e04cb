//! Both ends of QUIC, by quinn. Each frame is a stream that is reset once it would be late, or each
//! packet is a datagram.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::cell::Cell;
use crate::clock;
use crate::counters::Counters;
use crate::log::Log;
use crate::packet::Packet;
use crate::place::{End, Place};
use crate::receive::Received;
use crate::schedule::Schedule;
use crate::send::Sent;
use crate::transport::{ABANDONED_AFTER, Transport};

/// Offers the packets of a cell, each at its due time, once there is a connection.
pub(crate) fn send(cell: &Cell, schedule: &Schedule, place: Place) -> Result<Sent> {
    let transport = cell.transport;
    runtime()?.block_on(async {
        let endpoint = endpoint(place, End::Sender, None)?;
        let config = client(transport, schedule)?;
        let connecting = endpoint.connect_with(config, place.address(End::Receiver, 0), NAME)?;
        let connection = connecting.await.context("no connection")?;
        let (offer, offers) = mpsc::channel(OFFERS_MAX);
        let begin = clock::now();
        let due = schedule.clone();
        // A sleeping thread is exact; the runtime's timers have a resolution of milliseconds.
        let application = std::thread::spawn(move || offer_all(&due, begin, &offer));
        let taken = match transport {
            Transport::QuicDatagrams => datagrams(&connection, offers).await,
            _ => streams(&connection, offers, schedule, begin).await,
        };
        let offered = application.join().map_err(|_| anyhow!("the application panicked"))?;
        tokio::time::sleep(ABANDONED_AFTER * 2).await;
        connection.close(0_u8.into(), b"");
        endpoint.wait_idle().await;
        Ok(Sent { packets: offered.min(taken), abandoned: 0, counters: Counters::read() })
    })
}

/// The receiving end, ready for a sender.
pub(crate) struct Listener {
    runtime: Runtime,
    endpoint: Endpoint,
}

impl Listener {
    /// Opens its socket.
    pub(crate) fn open(cell: &Cell, place: Place) -> Result<Self> {
        let runtime = runtime()?;
        let config = server(cell.transport)?;
        let endpoint = runtime.block_on(async { endpoint(place, End::Receiver, Some(config)) })?;
        Ok(Self { runtime, endpoint })
    }

    /// Receives packets until the connection ends.
    pub(crate) fn run(self) -> Result<Received> {
        let log = self.runtime.block_on(take(&self.endpoint))?;
        Ok(Received { log, damaged: 0, counters: Counters::read() })
    }
}

fn offer_all(schedule: &Schedule, begin: u64, offer: &mpsc::Sender<Packet>) -> u64 {
    clock::wake_exactly();
    let mut offered = 0;
    for number in 0..schedule.packets() {
        let due_nanos = begin + clock::nanos(schedule.due(number));
        clock::sleep_until(due_nanos);
        offered += u64::from(offer.try_send(Packet { number, due_nanos }).is_ok());
    }
    offered
}

/// Sends packets as datagrams until the channel closes, and returns how many the connection
/// accepted; when its buffer is full, the oldest are dropped.
async fn datagrams(connection: &Connection, mut offers: mpsc::Receiver<Packet>) -> u64 {
    let mut taken = 0;
    while let Some(packet) = offers.recv().await {
        let bytes = packet.to_bytes().to_vec().into();
        taken += u64::from(connection.send_datagram(bytes).is_ok());
    }
    taken
}

/// Sends each frame's packets over a stream of its own until the channel closes. Returns the number
/// of packets that the streams' queues accepted.
async fn streams(
    connection: &Connection,
    mut offers: mpsc::Receiver<Packet>,
    schedule: &Schedule,
    begin: u64,
) -> u64 {
    let mut taken = 0;
    let mut present: Option<(u32, mpsc::Sender<Packet>)> = None;
    while let Some(packet) = offers.recv().await {
        let frame = schedule.frame(packet.number);
        let same = present.take().filter(|(of, _)| *of == frame);
        let (_, stream) = present.insert(same.unwrap_or_else(|| {
            let (sender, packets) = mpsc::channel(OFFERS_MAX);
            let complete = begin + clock::nanos(schedule.frame_complete(packet.number));
            let give_up = complete + clock::nanos(ABANDONED_AFTER);
            tokio::spawn(carry(connection.clone(), packets, frame, give_up));
            (frame, sender)
        }));
        taken += u64::from(stream.try_send(packet).is_ok());
    }
    taken
}

/// Sends a frame over its own stream, which is reset at its deadline. Lost parts are then not
/// retransmitted, and waiting parts are not sent.
async fn carry(
    connection: Connection,
    mut packets: mpsc::Receiver<Packet>,
    frame: u32,
    give_up: u64,
) {
    let left = || Duration::from_nanos(give_up.saturating_sub(clock::now()));
    let Ok(Ok(mut stream)) = tokio::time::timeout(left(), connection.open_uni()).await else {
        return;
    };
    // Older frames take precedence.
    let _ = stream.set_priority(-i32::try_from(frame).unwrap_or(i32::MAX));
    let all = async {
        while let Some(packet) = packets.recv().await {
            stream.write_all(&packet.to_bytes()).await?;
        }
        stream.finish()?;
        // Wait until all of it is acknowledged.
        anyhow::Ok(stream.stopped().await?)
    };
    if !matches!(tokio::time::timeout(left(), all).await, Ok(Ok(_))) {
        // If the connection has ended, the stream is reset already.
        let _ = stream.reset(0_u8.into());
    }
}

async fn take(endpoint: &Endpoint) -> Result<Log> {
    let first = tokio::time::timeout(CONNECTED_WITHIN, endpoint.accept()).await;
    let incoming = first.context("nobody connected")?.context("the endpoint is closed")?;
    let connection = incoming.await?;
    let log = Arc::new(Mutex::new(Log::default()));
    let push = |log: &Mutex<Log>, bytes: &[u8]| {
        if let Some(packet) = Packet::parse(bytes) {
            log.lock().unwrap_or_else(PoisonError::into_inner).push(packet, clock::now());
        }
    };
    loop {
        tokio::select! {
            biased;
            datagram = connection.read_datagram() => match datagram {
                Ok(bytes) => push(&log, &bytes),
                // The connection ended.
                Err(_) => break,
            },
            stream = connection.accept_uni() => {
                let Ok(mut stream) = stream else { break };
                let log = Arc::clone(&log);
                tokio::spawn(async move {
                    let mut held = Vec::new();
                    // A stream reset ends the loop too.
                    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
                        held.extend_from_slice(&chunk.bytes);
                        let whole = held.len() / Packet::BYTES * Packet::BYTES;
                        for bytes in held[..whole].chunks_exact(Packet::BYTES) {
                            push(&log, bytes);
                        }
                        held.drain(..whole);
                    }
                });
            }
        }
    }
    let log = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(log)
}

/// Returns a single-threaded runtime: in virtual time, several threads would alternate at random.
fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn endpoint(place: Place, end: End, server: Option<ServerConfig>) -> Result<Endpoint> {
    let socket = UdpSocket::bind(place.address(end, 0))?;
    Ok(Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(quinn::TokioRuntime))?)
}

fn client(transport: Transport, schedule: &Schedule) -> Result<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate()?.0)?;
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let waiting = schedule.rate_bytes_per_s() * ABANDONED_AFTER.as_secs_f64();
    config.transport_config(Arc::new(settings(transport, waiting as usize)));
    Ok(config)
}

fn server(transport: Transport) -> Result<ServerConfig> {
    let (certificate, key) = certificate()?;
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(settings(transport, 0)));
    Ok(config)
}

/// Returns quinn's defaults, adjusted to our packet size, with a datagram send buffer of `waiting`
/// bytes, or of two packets if that is more.
fn settings(transport: Transport, waiting: usize) -> TransportConfig {
    let mut settings = TransportConfig::default();
    let controller: Arc<dyn ControllerFactory + Send + Sync> = match transport {
        Transport::QuicStreamsBbr => Arc::new(BbrConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    };
    settings
        .initial_mtu(DATAGRAM_BYTES)
        // NetEm drops whole GSO packets.
        .enable_segmentation_offload(false)
        .congestion_controller_factory(controller)
        .max_concurrent_uni_streams(STREAMS_MAX.into())
        .datagram_send_buffer_size(waiting.max(Packet::BYTES * 2));
    settings
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Returns a certificate that is the same at both ends, and in every run.
fn certificate() -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
    let mut key = ED25519_PKCS8.to_vec();
    key.extend([3; 32]);
    let key = PrivatePkcs8KeyDer::from(key);
    let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&key, &rcgen::PKCS_ED25519)?;
    let certificate = rcgen::CertificateParams::new(vec![NAME.to_owned()])?.self_signed(&pair)?;
    Ok((certificate.der().clone(), key.into()))
}

/// Prefix of an Ed25519 private key in PKCS #8 (RFC 8410, 7).
const ED25519_PKCS8: [u8; 16] =
    [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20];
const NAME: &str = "testbed";
/// Maximum bytes of a UDP payload: Ethernet's MTU minus IP and UDP headers.
const DATAGRAM_BYTES: u16 = 1452;
/// Maximum number of simultaneous streams: more than 200 ms of packets, at one stream each.
const STREAMS_MAX: u32 = 4096;
const OFFERS_MAX: usize = 4096;
const CONNECTED_WITHIN: Duration = Duration::from_secs(60);
