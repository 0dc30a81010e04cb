use tautline_units::{Ecn, Instant};

use crate::counters::{Counters, Discard};
use crate::crypto::Keys;
use crate::link::{Link, Route};
use crate::wire::{self, SEALED_HEADER_BYTES, TAG_BYTES};

/// Sealing of outgoing datagrams, with the session's keys.
#[derive(Debug)]
pub(super) struct Sealer {
    pub(super) keys: Keys,
    /// The peer's session id, which we put into our datagrams.
    pub(super) peer_session: u16,
    /// Codepoint of the datagram sealed last; Not-ECT before the first.
    pub(super) ecn: Ecn,
}

impl Sealer {
    pub(super) fn new(keys: Keys, peer_session: u16) -> Self {
        Self { keys, peer_session, ecn: Ecn::NotEct }
    }

    /// Seals `plaintext` into `buffer` as the next datagram of `link` to `route`, and records it as
    /// sent. Returns false, without a datagram, if `plaintext` is empty or the route's
    /// anti-amplification limit forbids sending.
    // protocol 3
    pub(super) fn seal(
        &mut self,
        link: &mut Link,
        route: Route,
        plaintext: &[u8],
        buffer: &mut Vec<u8>,
        counters: &mut Counters,
        now: Instant,
    ) -> bool {
        if plaintext.is_empty() {
            return false;
        }
        let bytes = SEALED_HEADER_BYTES + plaintext.len() + TAG_BYTES;
        let Some(number) = link.take_number(route, bytes) else {
            counters.discard(Discard::AmplificationHeld);
            return false;
        };
        buffer.clear();
        wire::write_sealed_header(buffer, link.number(), self.peer_session, number);
        self.keys.seal(link.number(), number, plaintext, buffer);
        self.ecn = link.ecn(number, route);
        link.on_sent(bytes, self.ecn, now);
        tracing::trace!(link = link.number().get(), number, bytes, "sent");
        true
    }
}
