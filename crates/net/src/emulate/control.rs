//! Control channel of the emulator: one JSON object per line over TCP.
//!
//! ```text
//! {"link":1,"cut":true}       -> {"ok":true}           cuts link 1 (counted from 0), or restores it
//! {"link":1,"delay_ms":220}   -> {"ok":true}           adds this delay to the configured one
//! {"cmd":"status"}            -> {"links":[...],...}   a [`Status`]
//! anything else               -> {"error":"..."}
//! ```
//!
//! The first two apply to both directions, unless `"direction":"up"` (from vehicle to operator) or
//! `"down"` selects one.
//!
//! There is no authentication: any client may cut links. The address must be a loopback address.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub use super::lateness::Summary;
use super::model::Direction;
use super::relay::{self, Relay};
pub use super::status::{DirectionStatus, LinkStatus, Status};

/// A client of the control channel, for the operator's process.
///
/// It connects on first use, and reconnects after any error.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// A reason why a request to the emulator failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The emulator could not be reached, or the connection failed.
    #[error("the link emulator at {address}: {cause}")]
    Connection {
        /// Control address of the emulator.
        address: SocketAddr,
        /// Error of the system at connecting, sending or receiving.
        cause: std::io::Error,
    },
    /// The emulator did not answer within [`ANSWER_WITHIN`].
    #[error("the link emulator at {address} does not answer")]
    Silent {
        /// Control address of the emulator.
        address: SocketAddr,
    },
    /// The emulator's answer was invalid, or did not fit the request.
    #[error("the link emulator at {address} answered {text:?}")]
    Answer {
        /// Control address of the emulator.
        address: SocketAddr,
        /// Beginning of the emulator's answer.
        text: String,
    },
    /// The emulator refused the request.
    #[error("the link emulator: {reason}")]
    Refused {
        /// Reason of the refusal, as the emulator gives it.
        reason: String,
    },
}

/// Time limit for connecting, sending and receiving together.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Maximum length of a request in bytes; a longer one ends its connection.
pub(super) const LINE_BYTES_MAX: usize = 4096;

/// Maximum length of an answer in bytes, beyond which the connection counts as failed: that of
/// sixteen links takes less than a tenth of it.
const ANSWER_BYTES_MAX: u64 = 1 << 18;

impl Client {
    /// Creates a client of the emulator whose control address is `address`.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    /// Cuts both directions of link `link` (counted from 0), or restores them if `cut` is `false`.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Refused`] if there is no such link.
    pub async fn cut(&mut self, link: u8, cut: bool) -> Result<(), Error> {
        let request = Request::Cut { link: link.into(), cut, direction: None };
        match self.ask(&request).await? {
            Answer::Ok { ok: true } => Ok(()),
            other => Err(self.strange(&other)),
        }
    }

    /// Requests the links' state and counters.
    ///
    /// # Errors
    /// Any [`Error`].
    pub async fn status(&mut self) -> Result<Status, Error> {
        match self.ask(&Request::Command { cmd: Command::Status }).await? {
            Answer::Status(status) => Ok(status),
            other => Err(self.strange(&other)),
        }
    }

    /// Sends a request and waits for the answer. The connection is kept only after success, so that
    /// the answer to a cancelled call cannot be taken for the next one.
    async fn ask(&mut self, request: &Request) -> Result<Answer, Error> {
        let address = self.address;
        let kept = self.stream.take();
        let exchange = tokio::time::timeout(ANSWER_WITHIN, exchange(address, kept, request));
        let (stream, line) = exchange
            .await
            .map_err(|_| Error::Silent { address })?
            .map_err(|cause| Error::Connection { address, cause })?;
        let answer = serde_json::from_slice(&line)
            .map_err(|_| Error::Answer { address, text: beginning(&line) })?;
        self.stream = Some(stream);
        match answer {
            Answer::Error { error: reason } => Err(Error::Refused { reason }),
            answer @ (Answer::Status(_) | Answer::Ok { .. }) => Ok(answer),
        }
    }

    fn strange(&self, answer: &Answer) -> Error {
        let text = beginning(&json(answer));
        Error::Answer { address: self.address, text }
    }
}

async fn exchange(
    address: SocketAddr,
    kept: Option<BufReader<TcpStream>>,
    request: &Request,
) -> std::io::Result<(BufReader<TcpStream>, Vec<u8>)> {
    let mut line = json(request);
    line.push(b'\n');
    if let Some(mut stream) = kept
        && let Ok(answer) = ask_over(&mut stream, &line).await
    {
        return Ok((stream, answer));
    }
    // There was no connection, or the emulator has restarted. Both requests are idempotent.
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let answer = ask_over(&mut stream, &line).await?;
    Ok((stream, answer))
}

async fn ask_over(stream: &mut BufReader<TcpStream>, line: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(line).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_until(b'\n', &mut answer).await?;
    if answer.pop() == Some(b'\n') {
        return Ok(answer);
    }
    Err(std::io::ErrorKind::UnexpectedEof.into())
}

fn beginning(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned()
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Request {
    Cut {
        link: usize,
        cut: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        direction: Option<Direction>,
    },
    Delay {
        link: usize,
        delay_ms: u16,
        #[serde(skip_serializing_if = "Option::is_none")]
        direction: Option<Direction>,
    },
    Command {
        cmd: Command,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Command {
    Status,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Answer {
    Status(Status),
    Ok { ok: bool },
    Error { error: String },
}

/// Carries out a request line on the emulator's side, and returns the answer without its newline.
pub(super) fn answer(line: &[u8], relays: &mut [Relay]) -> Vec<u8> {
    let answer = match serde_json::from_slice(line) {
        Ok(Request::Cut { link, cut, direction }) => change(relays, link, |relay| {
            relay.set_cut(direction, cut);
            Ok(())
        }),
        Ok(Request::Delay { link, delay_ms, direction }) => {
            let added = Duration::from_millis(delay_ms.into());
            change(relays, link, |relay| relay.set_delay_added(direction, added))
        }
        Ok(Request::Command { cmd: Command::Status }) => Answer::Status(relay::status(relays)),
        Err(_) => {
            let error = r#"not understood: {"link":1,"cut":true} or {"cmd":"status"}"#.to_owned();
            Answer::Error { error }
        }
    };
    json(&answer)
}

fn change(
    relays: &mut [Relay],
    link: usize,
    change: impl FnOnce(&mut Relay) -> Result<(), &'static str>,
) -> Answer {
    let last = relays.len().saturating_sub(1);
    match relays.get_mut(link).map(change) {
        Some(Ok(())) => Answer::Ok { ok: true },
        Some(Err(error)) => Answer::Error { error: error.to_owned() },
        None => Answer::Error { error: format!("no link {link}: they are 0 to {last}") },
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("these types have string keys and no failing parts")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tautline_sim::link;
    use tautline_units::Bitrate;

    use super::super::config::LinkConfig;
    use super::*;

    fn relay() -> Relay {
        let target = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let link = LinkConfig {
            name: "link 0".to_owned(),
            listen: Some("127.0.0.1:0".parse().unwrap()),
            target: Some(target.local_addr().unwrap()),
            wireless: None,
            preset: None,
            carrier: tautline_sim::preset::Carrier::A,
            up: Some(link::Config::of_rate(Bitrate::from_mbps(10))),
            down: Some(link::Config::of_rate(Bitrate::from_mbps(10))),
            seed: 1,
        };
        Relay::bind(0, &link, 0).unwrap()
    }

    fn said(line: &[u8], relays: &mut [Relay]) -> serde_json::Value {
        serde_json::from_slice(&answer(line, relays)).expect("an answer is JSON")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_line_is_answered_with_an_error(line in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(said(&line, &mut []).get("error").is_some());
        }

        #[test]
        fn any_link_and_any_delay_are_set_or_refused_by_name(
            link: u64,
            delay: i64,
            cut: bool,
            direction in prop::option::of(prop_oneof!["up", "down", ".{0,9}"]),
        ) {
            let mut relays = [relay()];
            let direction = direction.map(|name| serde_json::Value::from(name).to_string());
            let direction = direction.map_or(String::new(), |name| format!(",\"direction\":{name}"));
            let is_direction = matches!(direction.as_str(), "" | ",\"direction\":\"up\"" | ",\"direction\":\"down\"");
            for (link, delay) in [(link, delay), (0, delay), (link, 70), (0, 70), (0, 65_535), (0, 65_536)] {
                let cuts = format!("{{\"link\":{link},\"cut\":{cut}{direction}}}");
                let is_cut = said(cuts.as_bytes(), &mut relays).get("ok").is_some();
                prop_assert_eq!(is_cut, link == 0 && is_direction);
                let delays = format!("{{\"link\":{link},\"delay_ms\":{delay}{direction}}}");
                let is_delayed = said(delays.as_bytes(), &mut relays).get("ok").is_some();
                prop_assert_eq!(is_delayed, link == 0 && is_direction && u16::try_from(delay).is_ok());
            }
        }
    }
}
