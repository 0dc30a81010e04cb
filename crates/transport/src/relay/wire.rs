//! Messages between an end and a relay, apart from session datagrams: docs/protocol.md, section 11.
//!
//! Every message has a header of twelve bytes; its first nibble, 6, is not a type of session
//! datagrams.
//!
//! ```text
//!  0               1               2               4                               12
//! +-------+-------+---------------+---------------+-------------------------------+
//! |   6   | kind  | version, 1    | detail, 0     | reference, 8 bytes            |
//! +-------+-------+---------------+---------------+-------------------------------+
//! ```
//!
//! The reference is a number chosen by an end for a call, or the id of a leg. An answer repeats
//! that of its request, so that only an observer of the request can answer.

use tautline_units::{ByteCount, Instant};

use super::token::Token;
use crate::crypto::MacKey;

/// One message between an end and a relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// End to relay: requests admission.
    Call {
        /// Reference of the call, which the end chose at random.
        reference: Reference,
        /// Cookie that the relay issued to this address; zeros at first.
        cookie: Cookie,
        /// Noise message 1.
        message: &'a [u8; CALL_BYTES],
    },
    /// Relay to an address that it does not know: requests a resend with this cookie.
    Cookie {
        /// Reference of the message to resend.
        reference: Reference,
        /// Cookie to put into the resent message.
        cookie: Cookie,
    },
    /// Relay to end: grants admission; only the end can read it.
    Welcome {
        /// Reference of the call that the message answers.
        reference: Reference,
        /// Noise message 2.
        message: &'a [u8; WELCOME_BYTES],
    },
    /// End to relay: proves the end's address, and may carry a token.
    Prove(Prove<'a>),
    /// Relay to end: confirms the proof, and reports the state of the leg.
    Proven(Proven<'a>),
    /// Relay to end: the leg does not exist.
    Gone {
        /// Id of the leg that does not exist.
        leg: LegId,
    },
    /// Relay to end: rejects the call.
    Refused {
        /// Reference of the call that the message answers.
        reference: Reference,
        /// Reason for the rejection.
        reason: Refusal,
    },
    /// Relay to an end that answers probes: requests the time at which the probe arrives.
    Probe(Probe<'a>),
    /// End to relay: reports the time at which a probe arrived.
    Echo(Echo<'a>),
}

/// A relay's request for the end's time; it is as long as its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe<'a> {
    /// Id of the leg that the message is about.
    pub leg: LegId,
    /// Send time by the relay's clock, which increases with each probe.
    pub sent_at: Instant,
    signed: Signed<'a>,
}

/// An end's answer to a relay's probe: the time at which the probe arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo<'a> {
    /// Id of the leg that the message is about.
    pub leg: LegId,
    /// Send time copied from the probe.
    pub sent_at: Instant,
    /// Arrival time of the probe, by the end's clock.
    pub seen_at: Instant,
    signed: Signed<'a>,
}

/// A proof of an end's address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prove<'a> {
    /// Id of the leg that the message is about.
    pub leg: LegId,
    /// Number, which increases with each proof.
    pub number: u64,
    /// Cookie that the relay issued to this address; ignored if the leg is already at this address.
    pub cookie: Cookie,
    /// Token that replaces that of the call; `None` if the relay has the newest one.
    pub token: Option<&'a [u8; Token::BYTES]>,
    /// True if the end answers probes; older builds do not.
    pub answers_probes: bool,
    signed: Signed<'a>,
}

/// A relay's confirmation of a proof, with the state of the leg.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proven<'a> {
    /// Id of the leg that the message is about.
    pub leg: LegId,
    /// Number of the proof that the relay answers with this state.
    pub number: u64,
    /// Bytes of the end's socket relayed so far, both directions together.
    pub metered: ByteCount,
    /// Maximum of `metered` that the relay allows.
    pub metered_max: ByteCount,
    /// True if the other end of the lease has a proven leg at the relay too.
    pub has_peer: bool,
    signed: Signed<'a>,
}

/// The bytes of a message, and the tag at its end that authenticates them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Signed<'a> {
    message: &'a [u8],
    tag: &'a [u8; MacKey::TAG_BYTES],
}

/// A number that relates an answer to its request: the answer repeats it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference(pub [u8; 8]);

/// The id of one socket of one end at a relay, drawn at random by the relay; never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LegId(pub [u8; LegId::BYTES]);

/// A value that a relay sends to an address and recomputes from that address to verify it. An end
/// that returns the cookie receives datagrams at the address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cookie(pub [u8; 16]);

/// A reason for which a relay rejects an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The token was not signed by the relay's switchboard.
    Forged,
    /// The token has expired, or the clocks of switchboard and relay differ.
    Expired,
    /// The token is for another relay.
    OtherRelay,
    /// The token names another key than the caller's.
    OtherKey,
    /// The relay has no capacity left.
    Full,
    /// A reason unknown to this build.
    Other,
}

impl<'a> Message<'a> {
    /// Reads one message, without checking its tag; `None` if it is malformed or this version does
    /// not know it.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (&[head, version, detail, _zero], rest) = bytes.split_first_chunk::<4>()?;
        if head >> 4 != TYPE_RELAY || version != VERSION {
            return None;
        }
        let (&reference, rest) = rest.split_first_chunk::<8>()?;
        let (leg, reference) = (LegId(reference), Reference(reference));
        match head & 0x0f {
            KIND_CALL => {
                let (&cookie, message) = rest.split_first_chunk::<16>()?;
                let message = message.try_into().ok()?;
                Some(Self::Call { reference, cookie: Cookie(cookie), message })
            }
            KIND_COOKIE => {
                let cookie = Cookie(rest.try_into().ok()?);
                Some(Self::Cookie { reference, cookie })
            }
            KIND_WELCOME => Some(Self::Welcome { reference, message: rest.try_into().ok()? }),
            KIND_PROVE => {
                let signed = Signed::split(bytes)?;
                let (rest, _tag) = rest.split_last_chunk::<{ MacKey::TAG_BYTES }>()?;
                let (number, rest) = rest.split_first_chunk()?;
                let (&cookie, rest) = rest.split_first_chunk()?;
                let token = match rest {
                    [] => None,
                    token => Some(token.try_into().ok()?),
                };
                let (number, cookie) = (u64::from_be_bytes(*number), Cookie(cookie));
                let answers_probes = detail & ANSWERS_PROBES != 0;
                Some(Self::Prove(Prove { leg, number, cookie, token, answers_probes, signed }))
            }
            KIND_PROVEN => {
                let signed = Signed::split(bytes)?;
                let rest: &[u8; 24 + MacKey::TAG_BYTES] = rest.try_into().ok()?;
                let number = |at: usize| {
                    u64::from_be_bytes(*rest[at..].first_chunk().expect("24 bytes are three"))
                };
                Some(Self::Proven(Proven {
                    leg,
                    number: number(0),
                    metered: ByteCount::new(number(8)),
                    metered_max: ByteCount::new(number(16)),
                    has_peer: detail & HAS_PEER != 0,
                    signed,
                }))
            }
            KIND_GONE if rest.is_empty() => Some(Self::Gone { leg }),
            KIND_REFUSED if rest.is_empty() => {
                Some(Self::Refused { reference, reason: Refusal::from_wire(detail) })
            }
            KIND_PROBE | KIND_ECHO => {
                let signed = Signed::split(bytes)?;
                let rest: &[u8; 16 + MacKey::TAG_BYTES] = rest.try_into().ok()?;
                let at = |at: usize| {
                    let nanos = *rest[at..].first_chunk().expect("16 bytes are two");
                    Instant::from_nanos(u64::from_be_bytes(nanos))
                };
                let (sent_at, seen_at) = (at(0), at(8));
                Some(match head & 0x0f {
                    KIND_PROBE => Self::Probe(Probe { leg, sent_at, signed }),
                    _echo => Self::Echo(Echo { leg, sent_at, seen_at, signed }),
                })
            }
            _other => None,
        }
    }
}

impl Prove<'_> {
    /// Returns whether the tag of the message was made with `key`.
    pub fn is_under(&self, key: &MacKey) -> bool {
        self.signed.is_under(key)
    }
}

impl Proven<'_> {
    /// Returns whether the tag of the message was made with `key`.
    pub fn is_under(&self, key: &MacKey) -> bool {
        self.signed.is_under(key)
    }
}

impl Probe<'_> {
    /// Returns whether the tag of the message was made with `key`.
    pub fn is_under(&self, key: &MacKey) -> bool {
        self.signed.is_under(key)
    }
}

impl Echo<'_> {
    /// Returns whether the tag of the message was made with `key`.
    pub fn is_under(&self, key: &MacKey) -> bool {
        self.signed.is_under(key)
    }
}

impl<'a> Signed<'a> {
    fn split(bytes: &'a [u8]) -> Option<Self> {
        let (message, tag) = bytes.split_last_chunk()?;
        Some(Self { message, tag })
    }

    fn is_under(self, key: &MacKey) -> bool {
        key.has_tagged(self.message, self.tag)
    }
}

impl LegId {
    /// Length of an id in bytes.
    pub const BYTES: usize = 8;
}

impl Refusal {
    fn to_wire(self) -> u8 {
        match self {
            Self::Forged => 1,
            Self::Expired => 2,
            Self::OtherRelay => 3,
            Self::OtherKey => 4,
            Self::Full => 5,
            Self::Other => u8::MAX,
        }
    }

    fn from_wire(byte: u8) -> Self {
        match byte {
            1 => Self::Forged,
            2 => Self::Expired,
            3 => Self::OtherRelay,
            4 => Self::OtherKey,
            5 => Self::Full,
            _other => Self::Other,
        }
    }
}

/// Returns whether `datagram` belongs to the relay protocol and not to a session.
pub fn is_of_relay(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|head| head >> 4 == TYPE_RELAY)
}

/// Returns the reference for an answer to any `datagram`: its bytes 4 to 11; `None` if it is
/// shorter.
pub fn reference_of(datagram: &[u8]) -> Option<Reference> {
    datagram.get(4..12)?.try_into().ok().map(Reference)
}

/// Writes a call into `out`, replacing its content.
pub fn write_call(
    out: &mut Vec<u8>,
    reference: Reference,
    cookie: Cookie,
    message: &[u8; CALL_BYTES],
) {
    write_head(out, KIND_CALL, 0, reference.0);
    out.extend_from_slice(&cookie.0);
    out.extend_from_slice(message);
}

/// Writes a cookie into `out`, replacing its content.
pub fn write_cookie(out: &mut Vec<u8>, reference: Reference, cookie: Cookie) {
    write_head(out, KIND_COOKIE, 0, reference.0);
    out.extend_from_slice(&cookie.0);
}

/// Writes a welcome into `out`, replacing its content.
pub fn write_welcome(out: &mut Vec<u8>, reference: Reference, message: &[u8; WELCOME_BYTES]) {
    write_head(out, KIND_WELCOME, 0, reference.0);
    out.extend_from_slice(message);
}

/// Writes a proof into `out`, replacing its content, with `token` if there is one, and the
/// statement that this end answers probes.
pub fn write_prove(
    out: &mut Vec<u8>,
    leg: LegId,
    number: u64,
    cookie: Cookie,
    token: Option<&[u8; Token::BYTES]>,
    key: &MacKey,
) {
    write_head(out, KIND_PROVE, ANSWERS_PROBES, leg.0);
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&cookie.0);
    if let Some(token) = token {
        out.extend_from_slice(token);
    }
    sign(out, key);
}

/// Writes the answer to a proof into `out`, replacing its content. `metered` holds the bytes
/// relayed so far and their maximum.
pub fn write_proven(
    out: &mut Vec<u8>,
    leg: LegId,
    number: u64,
    metered: [ByteCount; 2],
    has_peer: bool,
    key: &MacKey,
) {
    write_head(out, KIND_PROVEN, if has_peer { HAS_PEER } else { 0 }, leg.0);
    out.extend_from_slice(&number.to_be_bytes());
    for count in metered {
        out.extend_from_slice(&count.get().to_be_bytes());
    }
    sign(out, key);
}

/// Writes the message that a leg does not exist into `out`, replacing its content.
pub fn write_gone(out: &mut Vec<u8>, leg: LegId) {
    write_head(out, KIND_GONE, 0, leg.0);
}

/// Writes a refusal into `out`, replacing its content.
pub fn write_refused(out: &mut Vec<u8>, reference: Reference, reason: Refusal) {
    write_head(out, KIND_REFUSED, reason.to_wire(), reference.0);
}

/// Writes a probe into `out`, replacing its content.
pub fn write_probe(out: &mut Vec<u8>, leg: LegId, sent_at: Instant, key: &MacKey) {
    write_head(out, KIND_PROBE, 0, leg.0);
    out.extend_from_slice(&sent_at.as_nanos().to_be_bytes());
    // Padding to the length of the answer: a forged probe yields no amplification.
    out.extend_from_slice(&[0; 8]);
    sign(out, key);
}

/// Writes an end's answer to a relay's probe into `out`, replacing its content. `sent_at` is copied
/// from the probe; `seen_at` is the probe's arrival time by the end's clock.
pub fn write_echo(out: &mut Vec<u8>, leg: LegId, sent_at: Instant, seen_at: Instant, key: &MacKey) {
    write_head(out, KIND_ECHO, 0, leg.0);
    for at in [sent_at, seen_at] {
        out.extend_from_slice(&at.as_nanos().to_be_bytes());
    }
    sign(out, key);
}

fn write_head(out: &mut Vec<u8>, kind: u8, detail: u8, reference: [u8; 8]) {
    out.clear();
    out.extend_from_slice(&[TYPE_RELAY << 4 | kind, VERSION, detail, 0]);
    out.extend_from_slice(&reference);
}

fn sign(out: &mut Vec<u8>, key: &MacKey) {
    let tag = key.tag(out);
    out.extend_from_slice(&tag);
}

/// Bytes of a cookie message, the longest answer to a session datagram.
pub const COOKIE_BYTES: usize = 12 + 16;

const TYPE_RELAY: u8 = 6;
const VERSION: u8 = 1;
const KIND_CALL: u8 = 1;
const KIND_COOKIE: u8 = 2;
const KIND_WELCOME: u8 = 3;
const KIND_PROVE: u8 = 4;
const KIND_PROVEN: u8 = 5;
const KIND_GONE: u8 = 6;
const KIND_REFUSED: u8 = 7;
const KIND_PROBE: u8 = 8;
const KIND_ECHO: u8 = 9;
const HAS_PEER: u8 = 1;
const ANSWERS_PROBES: u8 = 1;

/// Bytes of a call's payload: token and socket number.
pub(super) const CALL_PAYLOAD_BYTES: usize = Token::BYTES + 1;
/// Bytes of a call's Noise message: ephemeral, sealed static, sealed payload.
pub(super) const CALL_BYTES: usize = 32 + 48 + CALL_PAYLOAD_BYTES + 16;
/// Bytes of a welcome's payload: id and key of the leg.
pub(super) const WELCOME_PAYLOAD_BYTES: usize = LegId::BYTES + MacKey::BYTES;
/// Bytes of a welcome's Noise message: ephemeral, sealed payload.
pub(super) const WELCOME_BYTES: usize = 32 + WELCOME_PAYLOAD_BYTES + 16;
const _: () = assert!(COOKIE_BYTES < 12 + 16 + CALL_BYTES, "no answer is longer than its question");
const _: () = assert!(WELCOME_BYTES < 16 + CALL_BYTES, "no welcome is longer than its call");

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn key() -> MacKey {
        MacKey::new([3; 32])
    }

    /// Returns a message encoded by its own write function, for comparison.
    fn write(message: &Message<'_>, key: &MacKey) -> Vec<u8> {
        let mut out = vec![9];
        match message {
            Message::Call { reference, cookie, message } => {
                write_call(&mut out, *reference, *cookie, message);
            }
            Message::Cookie { reference, cookie } => write_cookie(&mut out, *reference, *cookie),
            Message::Welcome { reference, message } => write_welcome(&mut out, *reference, message),
            Message::Prove(prove) => {
                let Prove { leg, number, cookie, token, .. } = prove;
                write_prove(&mut out, *leg, *number, *cookie, *token, key);
            }
            Message::Proven(proven) => {
                let Proven { leg, number, metered, metered_max, has_peer, .. } = proven;
                write_proven(&mut out, *leg, *number, [*metered, *metered_max], *has_peer, key);
            }
            Message::Gone { leg } => write_gone(&mut out, *leg),
            Message::Refused { reference, reason } => write_refused(&mut out, *reference, *reason),
            Message::Probe(probe) => write_probe(&mut out, probe.leg, probe.sent_at, key),
            Message::Echo(echo) => {
                write_echo(&mut out, echo.leg, echo.sent_at, echo.seen_at, key);
            }
        }
        out
    }

    #[test]
    fn messages_round_trip_and_no_answer_exceeds_its_request() {
        let (reference, leg, cookie) = (Reference([1; 8]), LegId([2; 8]), Cookie([4; 16]));
        let token = Some(&[7; Token::BYTES]);
        let mut prove = Vec::new();
        write_prove(&mut prove, leg, 6, cookie, None, &key());
        let mut renewal = Vec::new();
        write_prove(&mut renewal, leg, 7, cookie, token, &key());
        let mut proven = Vec::new();
        let metered = [ByteCount::new(5), ByteCount::new(8)];
        write_proven(&mut proven, leg, 6, metered, true, &key());
        assert!(proven.len() <= prove.len() && COOKIE_BYTES <= prove.len());
        let (mut probe, mut echo) = (Vec::new(), Vec::new());
        write_probe(&mut probe, leg, Instant::from_millis(5), &key());
        write_echo(&mut echo, leg, Instant::from_millis(5), Instant::from_millis(9), &key());
        assert!(echo.len() <= probe.len());
        for bytes in [&prove, &renewal, &proven, &probe, &echo] {
            let message = Message::parse(bytes).unwrap();
            assert_eq!(write(&message, &key()), *bytes);
            match message {
                Message::Prove(prove) => assert!(prove.is_under(&key()) && prove.answers_probes),
                Message::Probe(probe) => assert!(probe.is_under(&key())),
                Message::Echo(echo) => assert!(echo.is_under(&key())),
                Message::Proven(proven) => {
                    assert!(proven.is_under(&key()) && proven.has_peer);
                    assert!(!proven.is_under(&MacKey::new([4; 32])));
                }
                other => panic!("{other:?}"),
            }
        }
        for message in [
            Message::Call { reference, cookie, message: &[5; CALL_BYTES] },
            Message::Cookie { reference, cookie },
            Message::Welcome { reference, message: &[6; WELCOME_BYTES] },
            Message::Gone { leg },
            Message::Refused { reference, reason: Refusal::Expired },
            Message::Refused { reference, reason: Refusal::Other },
        ] {
            assert_eq!(Message::parse(&write(&message, &key())), Some(message));
        }
        assert_eq!(reference_of(&prove), Some(Reference(leg.0)));
        assert!(is_of_relay(&prove) && !is_of_relay(&[0x30]) && !is_of_relay(&[]));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_what_is_read_is_written_the_same(
            bytes in vec(any::<u8>(), 0..400),
            kind in 0u8..16,
        ) {
            let mut bytes = bytes;
            for is_sound in [false, true] {
                if is_sound && bytes.len() >= 4 {
                    bytes[..4].copy_from_slice(&[0x60 | kind, VERSION, 0, 0]);
                }
                let Some(message) = Message::parse(&bytes) else { continue };
                let again = write(&message, &key());
                // Lengths and references agree; tags and reserved bits may differ.
                prop_assert_eq!(again.len(), bytes.len());
                prop_assert_eq!(&again[4..12], &bytes[4..12]);
            }
        }

        #[test]
        fn a_message_cut_off_is_none(end in 0usize..40) {
            let mut prove = Vec::new();
            write_prove(&mut prove, LegId([2; 8]), 6, Cookie([4; 16]), None, &key());
            prop_assert_eq!(Message::parse(&prove[..end]), None);
        }
    }
}
