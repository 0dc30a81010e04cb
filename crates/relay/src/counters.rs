//! Counters of a relay.

use strum::{EnumCount, IntoEnumIterator, IntoStaticStr};
use tautline_net::streams;
use tautline_units::ByteCount;

/// Counts of a relay's actions and drops since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Current number of leases in the relay.
    pub leases: u64,
    /// Current number of legs: sockets of ends that have proven their addresses.
    pub legs: u64,
    /// Number of datagrams of sessions forwarded since the start.
    pub forwarded: u64,
    /// Payload bytes of the forwarded datagrams, counted once although received and sent.
    pub bytes_forwarded: ByteCount,
    /// Number of times that a leg was admitted; it still has to prove its address then.
    pub welcomed: u64,
    /// Accepted proofs of an address, including those that renew a leg.
    pub proven: u64,
    /// Proofs that changed the address of a leg; they are also in `proven`.
    pub moved: u64,
    /// Answered requests of ends for their own address (STUN).
    pub addresses_told: u64,
    /// Probe answers that the files of latency lack: they could not be stored, or too many arrived
    /// at once.
    pub latency_lost: u64,
    pub(crate) drops: [u64; Dropped::COUNT],
}

/// A reason why a datagram was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumCount, strum::EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Dropped {
    /// The source of the datagram has not proven its address, or the answer to a probe names an
    /// unknown leg.
    Unproven,
    /// The datagram is neither one of a session, nor a message that a relay accepts, nor a request
    /// for an address (STUN).
    Malformed,
    /// The other end of the lease has no socket with a proven address and a valid token.
    NoPeer,
    /// With the datagram the lease would exceed its bitrate.
    OverRate,
    /// With the datagram the sending or the receiving socket of an end would exceed its bytes of
    /// the lease ([`Limits::link_bytes_max`](crate::config::Limits::link_bytes_max)).
    OverBytes,
    /// The tokens that the sending leg has presented have all expired.
    Expired,
    /// The call is invalid, or a proof or the answer to a probe is under another key.
    Forged,
    /// The proof has no higher number than the newest accepted one, or no unanswered probe belongs
    /// to the answer.
    Replayed,
    /// The call was refused; the answer carries the reason.
    Refused,
    /// The calls to the relay, in total or from one network, exceed the limit per second.
    OverCalls,
    /// A network exceeds the limit of requests for an address per second, or too many networks make
    /// such requests.
    OverAddresses,
    /// The kernel did not send the datagram, or its connection over TLS has ended.
    NotSent,
    /// The datagram waited too long for a connection over TLS, or its queue was full.
    Stale,
    /// A connection over TLS was refused: too many connections, a failed handshake, or no proof in
    /// time.
    StreamRefused,
    /// The kernel could not accept a connection over TLS, for instance without a free file.
    StreamNotAccepted,
}

impl Counters {
    /// Counts one dropped datagram.
    pub(crate) fn drop(&mut self, why: Dropped) {
        self.drops[why as usize] += 1;
    }

    /// Sets the counters [`Dropped::Stale`], [`Dropped::StreamRefused`] and
    /// [`Dropped::StreamNotAccepted`] to the totals of the connections over TLS, which count these
    /// themselves.
    pub(crate) fn count_streams(&mut self, streams: streams::Counters) {
        self.drops[Dropped::Stale as usize] = streams.stale;
        self.drops[Dropped::StreamRefused as usize] = streams.refused;
        self.drops[Dropped::StreamNotAccepted as usize] = streams.not_accepted;
    }

    /// Returns the number of datagrams dropped for this reason.
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.drops[why as usize]
    }

    /// Returns every drop counter with its name.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Dropped::iter().map(|why| (why.into(), self.dropped(why)))
    }
}
