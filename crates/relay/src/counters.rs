//! What a relay counts.

use strum::{EnumCount, IntoEnumIterator, IntoStaticStr};
use tautline_net::streams;
use tautline_units::ByteCount;

/// What a relay has done and has not done, since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Leases of which it knows.
    pub leases: u64,
    /// Sockets of ends that have proven their addresses.
    pub legs: u64,
    /// Datagrams of sessions that were forwarded.
    pub forwarded: u64,
    /// Their bytes: UDP payload, once each.
    pub bytes_forwarded: ByteCount,
    /// Legs that were let in.
    pub welcomed: u64,
    /// Proofs of an address, first ones and later ones.
    pub proven: u64,
    /// Of these, those of an address that was another.
    pub moved: u64,
    /// Questions for an address that were answered.
    pub addresses_told: u64,
    /// Answers to probes for which the files of latency had no line.
    pub latency_lost: u64,
    pub(crate) drops: [u64; Dropped::COUNT],
}

/// A reason why a datagram went nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumCount, strum::EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Dropped {
    /// It came from where nobody has proven to be.
    Unproven,
    /// It is no datagram of a session, nor one for a relay.
    Malformed,
    /// The other end is not there.
    NoPeer,
    /// The lease has had its rate.
    OverRate,
    /// The link has had its bytes.
    OverBytes,
    /// The token's time is over.
    Expired,
    /// A call that is none, or a proof under another key.
    Forged,
    /// A proof that was said before, or the answer to a probe that has one.
    Replayed,
    /// A call that was refused: the answer says why.
    Refused,
    /// More calls than a second has room for.
    OverCalls,
    /// More questions for an address than a network has answered in a second.
    OverAddresses,
    /// The kernel did not take it.
    NotSent,
    /// It waited too long for a connection over TLS, or too much waited there.
    Stale,
    /// A connection over TLS that was turned away: too many, a failed handshake, nobody who proved to be there.
    StreamRefused,
}

impl Counters {
    /// Counts one that was dropped.
    pub(crate) fn drop(&mut self, why: Dropped) {
        self.drops[why as usize] += 1;
    }

    /// Takes over what was counted of connections over TLS.
    pub(crate) fn count_streams(&mut self, streams: streams::Counters) {
        self.drops[Dropped::Stale as usize] = streams.stale;
        self.drops[Dropped::StreamRefused as usize] = streams.refused;
    }

    /// Returns how many were dropped so.
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.drops[why as usize]
    }

    /// Returns every count of drops with its name.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Dropped::iter().map(|why| (why.into(), self.dropped(why)))
    }
}
