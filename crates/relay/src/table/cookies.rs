use tautline_transport::Route;
use tautline_transport::crypto::MacKey;
use tautline_transport::relay::wire::Cookie;
use tautline_units::{Duration, Instant};

/// Stateless cookies: proof of receiving at an address, recomputed instead of stored.
#[derive(Debug)]
pub(super) struct Cookies {
    key: MacKey,
}

impl Cookies {
    pub(super) fn new(key: [u8; MacKey::BYTES]) -> Self {
        Self { key: MacKey::new(key) }
    }

    /// Returns the cookie that is sent to a sender at `from` now, which shows it to prove that it
    /// receives there.
    pub(super) fn bake(&self, from: Route, now: Instant) -> Cookie {
        self.of(from, epoch(now))
    }

    /// Returns whether `cookie` was issued to `from` in the current [`EPOCH`] or the previous one.
    pub(super) fn is_of(&self, cookie: Cookie, from: Route, now: Instant) -> bool {
        let epoch = epoch(now);
        // Not constant-time: the cookie changes every minute, too soon to be found byte by byte.
        cookie == self.of(from, epoch) || cookie == self.of(from, epoch.saturating_sub(1))
    }

    fn of(&self, from: Route, epoch: u64) -> Cookie {
        let address = from.remote.to_string();
        let mut message = Vec::with_capacity(9 + address.len());
        message.push(from.socket);
        message.extend_from_slice(&epoch.to_be_bytes());
        message.extend_from_slice(address.as_bytes());
        Cookie(self.key.tag(&message))
    }
}

fn epoch(now: Instant) -> u64 {
    now.as_nanos() / EPOCH.as_nanos() as u64
}

/// Time for which an address is given the same cookie, which stays valid for one more such time.
const EPOCH: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_of_one_address_for_a_minute_or_two() {
        let cookies = Cookies::new([1; 32]);
        let from = |socket, port| Route { socket, remote: ([192, 0, 2, 1], port).into() };
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let cookie = cookies.bake(from(0, 7), at(59));
        for (from, seconds, holds) in [
            (from(0, 7), 59, true),
            (from(0, 7), 119, true),
            (from(0, 7), 120, false),
            (from(0, 8), 59, false),
            (from(1, 7), 59, false),
        ] {
            assert_eq!(cookies.is_of(cookie, from, at(seconds)), holds, "{from:?} {seconds}");
        }
        assert!(!Cookies::new([2; 32]).is_of(cookie, from(0, 7), at(59)));
    }
}
