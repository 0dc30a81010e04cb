use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::Deserialize;

/// Address of a switchboard: a name or an IP address, and a port, 7443 by default.
///
/// Text form: `switchboard.example`, `203.0.113.9:7443`, `[2001:db8::9]:7443`.
///
/// ```
/// # use tautline_net::control::Host;
/// let host: Host = "switchboard.example".parse().unwrap();
/// assert_eq!(host.to_string(), "switchboard.example:7443");
/// assert!("https://switchboard.example".parse::<Host>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Host {
    name: String,
    port: u16,
}

/// The error of a text that is no address of a switchboard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a switchboard address: {why}; give a name or an IP address, with or without \
     a port, such as switchboard.example, 203.0.113.9:7443 or [2001:db8::9]:7443"
)]
pub struct HostError {
    text: String,
    why: &'static str,
}

impl Host {
    /// Returns the host's name or its IP address, without brackets and port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the TCP port of the switchboard.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the IP address and port; `None` if the host is given by a name.
    pub fn address(&self) -> Option<SocketAddr> {
        self.name.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port))
    }
}

impl From<SocketAddr> for Host {
    fn from(address: SocketAddr) -> Self {
        Self { name: address.ip().to_string(), port: address.port() }
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let wrong = |why| HostError { text: text.to_owned(), why };
        if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Ok(SocketAddr::new(ip, PORT).into());
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            // The switchboard also uses the UDP port after it.
            return match address.port() {
                0 | u16::MAX => Err(wrong(BAD_PORT)),
                _ => Ok(address.into()),
            };
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => {
                let port = port.parse().ok().filter(|port| (1..u16::MAX).contains(port));
                (name, port.ok_or_else(|| wrong(BAD_PORT))?)
            }
            None => (text, PORT),
        };
        let labels = || name.trim_end_matches('.').split('.');
        let is_label = |label: &str| {
            let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || b"-_".contains(&letter);
            (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(is_letter)
        };
        if name.len() > NAME_BYTES_MAX || !labels().all(is_label) {
            return Err(wrong("it is not a valid host name"));
        }
        let last = labels().next_back().unwrap_or_default();
        if last.bytes().all(|letter| letter.is_ascii_digit()) {
            return Err(wrong("it is neither an IP address nor a name"));
        }
        Ok(Self { name: name.to_owned(), port })
    }
}

impl TryFrom<String> for Host {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        text.parse()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        match name.contains(':') {
            true => write!(f, "[{name}]:{port}"),
            false => write!(f, "{name}:{port}"),
        }
    }
}

/// Default port of a switchboard.
const PORT: u16 = 7443;
const BAD_PORT: &str = "its port must be 1 to 65534";
/// Maximum length of a host name: that of DNS (RFC 1035, 2.3.4).
const NAME_BYTES_MAX: usize = 253;
/// Maximum length of a part between two dots of a host name.
const LABEL_BYTES_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_with_a_port_or_without() {
        let shown = |text: &str| text.parse::<Host>().map(|host| host.to_string()).ok();
        for (text, host) in [
            ("switchboard.example", Some("switchboard.example:7443")),
            ("switchboard.example.", Some("switchboard.example.:7443")),
            ("switchboard.example:443", Some("switchboard.example:443")),
            ("desk", Some("desk:7443")),
            ("203.0.113.9", Some("203.0.113.9:7443")),
            ("203.0.113.9:9000", Some("203.0.113.9:9000")),
            ("2001:db8::9", Some("[2001:db8::9]:7443")),
            ("[2001:db8::9]", Some("[2001:db8::9]:7443")),
            ("[2001:db8::9]:9000", Some("[2001:db8::9]:9000")),
            ("", None),
            (":7443", None),
            ("a b", None),
            ("host:port", None),
            ("host:", None),
            ("host:0", None),
            ("host:65535", None),
            ("203.0.113.9:0", None),
            ("203.0.113", None),
            ("203.0.113.256", None),
            ("a..b", None),
            ("https://host", None),
            ("host/path", None),
            ("host:7443:7443", None),
        ] {
            assert_eq!(shown(text).as_deref(), host, "{text}");
        }
        assert_eq!(
            "::1".parse::<Host>().unwrap().address(),
            Some(([0, 0, 0, 0, 0, 0, 0, 1], 7443).into())
        );
        assert_eq!("desk".parse::<Host>().unwrap().address(), None);
    }

    #[test]
    fn an_invalid_address_is_refused_with_a_reason() {
        let words = "desk:99999".parse::<Host>().unwrap_err().to_string();
        assert!(
            words.starts_with("\"desk:99999\" is not a switchboard address: its port"),
            "{words}"
        );
    }

    proptest! {
        #[test]
        fn hosts_round_trip_and_no_text_panics_the_parser(text in "[a-z0-9.:\\[\\]-]{0,24}|.*") {
            if let Ok(host) = text.parse::<Host>() {
                prop_assert_eq!(host.to_string().parse(), Ok(host));
            }
        }
    }
}
