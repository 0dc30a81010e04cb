//! Client for a process of this machine: one HTTP request to the address of its console or metrics.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Gets `path` from `address` and returns the body of the answer; waits for at most 5 s each for
/// the connection and the answer.
///
/// # Errors
/// Returns one line if nothing listens there, it does not answer, or it is no vehicle or operator.
pub(crate) async fn get(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    ask(address, &format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n"), ANSWER_TIMEOUT).await
}

/// Posts `body` to `path` of `address` and returns the body of the answer; waits for at most 5 s
/// for the connection, and `answer_timeout` for the answer.
///
/// # Errors
/// Fails as [`get`] does, or with the process's own reason for a refusal.
#[cfg(feature = "lab")]
pub(crate) async fn post(
    address: SocketAddr,
    path: &str,
    body: &str,
    answer_timeout: Duration,
) -> anyhow::Result<String> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {length}");
    ask(address, &format!("{head}\r\n\r\n{body}"), answer_timeout).await
}

/// Returns the error for an address at which something other than a vehicle or an operator listens.
pub(crate) fn stranger(address: SocketAddr) -> anyhow::Error {
    anyhow::anyhow!("what listens at {address} is no vehicle or operator: {WHERE}")
}

async fn ask(
    address: SocketAddr,
    request: &str,
    answer_timeout: Duration,
) -> anyhow::Result<String> {
    let mut stream = match timeout(ANSWER_TIMEOUT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {
            bail!("nothing listens at {address}: {WHERE}")
        }
        Ok(Err(error)) => return Err(error).context(format!("{address} is not reached")),
        Err(_) => bail!("{address} does not answer within {} s", ANSWER_TIMEOUT.as_secs()),
    };
    let mut answer = Vec::new();
    let exchange = async {
        stream.write_all(request.as_bytes()).await?;
        (&mut stream).take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await
    };
    match timeout(answer_timeout, exchange).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(error).context(format!("{address} broke off")),
        Err(_) => bail!("{address} does not answer within {} s: {WHERE}", answer_timeout.as_secs()),
    }
    ensure!(!answer.is_empty(), "{address} closed the connection without a word: {WHERE}");
    body_of(address, &answer)
}

/// Returns the body of an HTTP answer; an error for any status but 200.
fn body_of(address: SocketAddr, answer: &[u8]) -> anyhow::Result<String> {
    let text = std::str::from_utf8(answer).map_err(|_| stranger(address))?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| stranger(address))?;
    let (version, status) = head.split_once(' ').ok_or_else(|| stranger(address))?;
    ensure!(version.starts_with("HTTP/1."), stranger(address));
    match status.get(..3) {
        Some("200") => Ok(body.to_owned()),
        Some("404" | "405") => Err(stranger(address)),
        Some(_) | None => bail!("{address} refuses: {}", body.trim_end()),
    }
}

/// Advice in errors about an address at which no vehicle or operator listens.
const WHERE: &str =
    "give the address that `tautline operator --console` or `tautline vehicle --metrics` was given";
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length in bytes of an answer, beyond which the rest is not read: ten times the size of
/// one minute of a probe's delays.
const ANSWER_BYTES_MAX: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str) -> anyhow::Result<String> {
        body_of(SocketAddr::from(([127, 0, 0, 1], 8080)), answer.as_bytes())
    }

    #[test]
    fn an_answer_is_its_body_or_what_is_wrong_with_it() {
        assert_eq!(read("HTTP/1.0 200 OK\r\nA: b\r\n\r\ntautline\n").unwrap(), "tautline\n");
        let wrong = |answer: &str| read(answer).unwrap_err().to_string();
        let conflict = "HTTP/1.0 409 Conflict\r\n\r\nno link to the vehicle is up\n";
        assert_eq!(wrong(conflict), "127.0.0.1:8080 refuses: no link to the vehicle is up");
        for answer in ["", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 404 Not Found\r\n\r\nno", "\r\n\r\n"] {
            assert!(wrong(answer).contains("is no vehicle or operator"), "{answer}");
        }
    }
}
