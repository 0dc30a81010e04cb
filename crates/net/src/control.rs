//! Control connection: mutual TLS 1.3 between two ends that know each other by key.
//!
//! There is no certificate authority. Each end shows a self-signed certificate that only carries
//! its Ed25519 key, and proves by the handshake's signature that it holds the key. The client pins
//! the server's key. The server learns the client's key and decides what the client may do. Names,
//! dates and issuers in certificates are ignored.
//!
//! Frames on top delimit messages:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        length of the body in bytes, big-endian, <= 65536      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                          body ...                             |
//! ```
//!
//! The application defines the content of a body. The server's side is [`Listener`]:
//!
//! ```no_run
//! # use tautline_net::control::{Error, Listener};
//! # use tautline_transport::crypto::Identity;
//! # async fn serve(identity: Identity) -> Result<(), Error> {
//! let listener = Listener::bind(([0, 0, 0, 0], 7700).into(), &identity).await?;
//! loop {
//!     let incoming = listener.accept().await?;
//!     tokio::spawn(async move {
//!         let mut connection = incoming.handshake().await?;
//!         println!("{} is here", connection.peer_key());
//!         while let Some(frame) = connection.recv().await? {
//!             connection.send(&frame).await?;
//!         }
//!         Ok::<_, Error>(())
//!     });
//! }
//! # }
//! ```
//!
//! The other side is [`Client`], which keeps itself connected over any link that reaches the
//! server. An application specifies the first frames and the frames with an automatic answer
//! (pings), and then reads events:
//!
//! ```no_run
//! # use tautline_net::control::{Client, Error, Event};
//! # use tautline_transport::crypto::{Identity, PublicKey};
//! # async fn drive(identity: Identity, server_key: PublicKey) -> Result<(), Error> {
//! let greeting = vec![b"register rover".to_vec()];
//! let answer = |frame: &[u8]| (frame == b"ping").then(|| b"pong".to_vec());
//! let (client, mut events) =
//!     Client::start("switchboard.example:7700", server_key, &identity, greeting, answer)?;
//! let handle = client.handle();
//! while let Some(event) = events.recv().await {
//!     match event {
//!         Event::Connected { local, by, .. } => println!("connected from {local} by {by}"),
//!         Event::Frame(frame) => handle.send(frame)?,
//!         Event::Disconnected { error, retry_in } => println!("{error}; again in {retry_in:?}"),
//!     }
//! }
//! client.close().await;
//! # Ok(())
//! # }
//! ```

mod client;
mod code;
mod connection;
mod dial;
pub(crate) mod error;
mod frame;
mod host;
mod listener;
mod race;
pub(crate) mod tls;

pub use client::{Client, Event, Handle, SERVER_TIMEOUT};
pub use code::{Code, CodeError};
pub use connection::{Connection, Receiver, Sender};
pub use error::Error;
pub use frame::BODY_BYTES_MAX;
pub use host::{Host, HostError};
pub use listener::{Incoming, Listener};

#[cfg(test)]
mod tests;
