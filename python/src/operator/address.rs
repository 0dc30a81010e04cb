//! The address that `tautline operator` prints, and admission by its token.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use tautline_net::clock::Clock;
use tautline_units::Instant;
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::HandshakeError;
use tungstenite::http::HeaderValue;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, WebSocket};

/// Address of a console, with the token that admits it once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Address {
    /// Name and port, as the operator's process expects them.
    host: String,
    /// Path before the console's own, ending with `/`.
    path: String,
    token: String,
}

/// Reason why no console was opened.
#[derive(Debug)]
pub(super) enum Failure {
    /// The operator's process refuses this console, with its words.
    Refused(String),
    /// The connection failed.
    Lost(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                Self::Lost("the operator's process does not answer in time".to_owned())
            }
            _ => Self::Lost(error.to_string()),
        }
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.starts_with("https:") {
            return Err("https: is not supported; use a tunnel to the operator's own address");
        }
        let rest = text.strip_prefix("http://").ok_or("an address begins with http://")?;
        let (place, token) = rest.split_once('#').ok_or("the address has no token after a #")?;
        let (host, path) = place.split_once('/').unwrap_or((place, ""));
        let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || token.is_empty() || ![host, path, token].into_iter().all(is_plain) {
            return Err("this is not an address that `tautline operator` prints");
        }
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() { "/".to_owned() } else { format!("/{path}/") };
        Ok(Self { host: host.to_owned(), path, token: token.to_owned() })
    }
}

impl Address {
    /// Spends the token and opens the console's connection, until `deadline` at the latest.
    ///
    /// # Errors
    /// When the token was used, or the operator's process does not answer.
    pub(super) fn open(
        &self,
        console: u64,
        clock: &Clock,
        deadline: Instant,
    ) -> Result<WebSocket<TcpStream>, Failure> {
        let cookie = self.enter(clock, deadline)?;
        let stream = self.connect(clock, deadline)?;
        let address = format!("ws://{}{}ws?console={console:016x}", self.host, self.path);
        let lost = |error: Error| Failure::Lost(error.to_string());
        let mut request = address.into_client_request().map_err(lost)?;
        for (name, value) in [("origin", format!("http://{}", self.host)), ("cookie", cookie)] {
            let value = HeaderValue::from_str(&value).map_err(|it| lost(it.into()))?;
            request.headers_mut().insert(name, value);
        }
        let config = WebSocketConfig::default()
            .write_buffer_size(0)
            .max_write_buffer_size(BACKLOG_BYTES_MAX)
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let opened = tungstenite::client::client_with_config(request, stream, Some(config));
        let (socket, _) = opened.map_err(|error| match error {
            HandshakeError::Failure(Error::Http(answer)) => {
                let words = answer.body().as_deref().map(String::from_utf8_lossy);
                let words = words.unwrap_or_default().trim().to_owned();
                Failure::Refused(format!("{}: {words}", answer.status()))
            }
            HandshakeError::Failure(Error::Io(error)) => error.into(),
            HandshakeError::Failure(error) => lost(error),
            HandshakeError::Interrupted(_) => io::Error::from(ErrorKind::TimedOut).into(),
        })?;
        Ok(socket)
    }

    /// Exchanges the token for a cookie, and returns that.
    fn enter(&self, clock: &Clock, deadline: Instant) -> Result<String, Failure> {
        let Self { host, path, token } = self;
        let mut stream = self.connect(clock, deadline)?;
        let length = token.len();
        let request = format!(
            "POST {path}enter HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{token}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&*answer, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
        if status != "204" {
            return Err(Failure::Refused(format!("{status}: {}", body.trim())));
        }
        let cookie = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_cookie = name.eq_ignore_ascii_case("set-cookie");
            is_cookie.then(|| value.split(';').next().unwrap_or_default().trim().to_owned())
        });
        cookie.ok_or_else(|| Failure::Lost("the operator's process gave no cookie".to_owned()))
    }

    fn connect(&self, clock: &Clock, deadline: Instant) -> Result<TcpStream, Failure> {
        let has_port =
            self.host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let place = if has_port { self.host.clone() } else { format!("{}:80", self.host) };
        let mut last = io::Error::from(ErrorKind::NotFound);
        for address in place.to_socket_addrs()? {
            let left = deadline.since(clock.now()).max(Duration::from_millis(1));
            match TcpStream::connect_timeout(&address, left) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(left))?;
                    stream.set_write_timeout(Some(left))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last.into())
    }
}

/// Bytes that may wait to be sent: about 40 commands. A command behind more is stale.
const BACKLOG_BYTES_MAX: usize = 4096;
/// Longest message of the operator's process: an IDR of a strip of the largest picture.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
const ANSWER_BYTES_MAX: u64 = 16 << 10;
