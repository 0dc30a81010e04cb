//! Distinction between errors that a person must fix and resources that may appear later.

use std::io;
use std::time::Duration;

use crate::control;
pub use crate::refused::Refused;
use crate::refused::is_absent;

/// Returns whether the missing resource of a failed operation may appear by itself: a device, an
/// address, a route, a name, a folder or a peer.
///
/// Waiting resolves such an error. A port in use or a missing permission needs a person.
///
/// ```
/// use std::io::{Error, ErrorKind};
/// use tautline_net::unavailable::comes_by_itself;
///
/// let error = |kind| anyhow::Error::new(Error::from(kind)).context("cannot listen");
/// assert!(comes_by_itself(&error(ErrorKind::AddrNotAvailable)));
/// assert!(!comes_by_itself(&error(ErrorKind::AddrInUse)));
/// ```
pub fn comes_by_itself(error: &anyhow::Error) -> bool {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        let refused = cause.downcast_ref::<Refused>().map(Refused::comes_by_itself);
        let refused = refused.or_else(|| match cause.downcast_ref::<control::Error>() {
            Some(control::Error::Listen { cause, .. }) => Some(is_absent(cause)),
            Some(_) | None => None,
        });
        refused.or_else(|| cause.downcast_ref::<io::Error>().map(is_absent))
    };
    error.chain().filter_map(of).last().unwrap_or(false)
}

/// Repeats `open` until it succeeds, as long as it lacks only resources that may appear by
/// themselves. The reason is logged once, and again when it changes.
///
/// # Errors
/// The first failure that a person must fix.
pub async fn opened<T>(mut open: impl AsyncFnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut told: Option<String> = None;
    loop {
        match open().await {
            Ok(opened) => {
                if told.is_some() {
                    tracing::info!("the missing resource is available");
                }
                return Ok(opened);
            }
            Err(error) if comes_by_itself(&error) => {
                let why = format!("{error:#}");
                if told.as_ref() != Some(&why) {
                    tracing::warn!("{why}; retrying until it is available");
                    told = Some(why);
                }
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Interval of attempts: short enough for a person who has just connected a device.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;
    use crate::refused::ABSENT;

    #[tokio::test]
    async fn missing_resources_are_waited_for_and_wrong_ones_refused() {
        let mut tries = 0;
        let found = opened(async || {
            tries += 1;
            match tries {
                1 => Err(Refused::new("cannot look", Errno::NODEV.into(), "").into()),
                2 => Ok(7),
                _ => unreachable!("it is there"),
            }
        });
        assert_eq!(found.await.unwrap(), 7);
        let taken = || Refused::new("cannot listen", Errno::ADDRINUSE.into(), "choose another");
        let refused = opened::<()>(async || Err(taken().into())).await.unwrap_err();
        assert!(refused.to_string().ends_with(": choose another"), "{refused}");
    }

    #[test]
    fn transient_errors_are_distinguished_from_permanent_ones() {
        let of = |errno: Errno| {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            comes_by_itself(&anyhow::Error::new(error).context("one").context("two"))
        };
        for absent in ABSENT {
            assert!(of(absent), "{absent}");
        }
        for wrong in [Errno::ADDRINUSE, Errno::ACCESS, Errno::PERM, Errno::MFILE, Errno::NOSPC] {
            assert!(!of(wrong), "{wrong}");
        }
        assert!(!comes_by_itself(&anyhow::anyhow!("a word that is no setting")));
        let refused = Refused::new("cannot look", Errno::NODEV.into(), "`ip link` lists them");
        assert_eq!(
            refused.to_string(),
            "cannot look: No such device (os error 19): `ip link` lists them"
        );
        assert!(comes_by_itself(&anyhow::Error::new(refused).context("a link")));
    }
}
