use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

/// Address of a camera.
///
/// Text form: the path of a V4L2 device, or `unix:` and the path of a socket.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "String")]
pub enum CameraAddress {
    /// A V4L2 device.
    Device(PathBuf),
    /// A Unix socket at which the vehicle listens for a program that delivers pictures.
    Socket(PathBuf),
}

impl CameraAddress {
    /// Returns the path, to change it.
    pub fn path_mut(&mut self) -> &mut PathBuf {
        match self {
            Self::Device(path) | Self::Socket(path) => path,
        }
    }
}

impl From<String> for CameraAddress {
    fn from(text: String) -> Self {
        match text.strip_prefix(UNIX) {
            Some(path) => Self::Socket(path.into()),
            None => Self::Device(text.into()),
        }
    }
}

impl FromStr for CameraAddress {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.to_owned().into())
    }
}

impl Serialize for CameraAddress {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for CameraAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(path) => write!(f, "{}", path.display()),
            Self::Socket(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

const UNIX: &str = "unix:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_device_or_a_socket() {
        let parsed = |text: &str| text.parse::<CameraAddress>().unwrap();
        assert_eq!(parsed("/dev/video0"), CameraAddress::Device("/dev/video0".into()));
        assert_eq!(parsed("unix:/run/a.sock"), CameraAddress::Socket("/run/a.sock".into()));
        for text in ["/dev/video0", "unix:a.sock"] {
            assert_eq!(parsed(text).to_string(), text);
        }
    }
}
