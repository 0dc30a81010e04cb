//! What goes between an end and a relay beside the datagrams of sessions: docs/protocol.md, section 11.
//!
//! Every message has a head of twelve bytes; its first nibble, 6, is no type of a session's datagram.
//!
//! ```text
//!  0               1               2               4                               12
//! +-------+-------+---------------+---------------+-------------------------------+
//! |   6   | kind  | version, 1    | detail, 0     | reference, 8 bytes            |
//! +-------+-------+---------------+---------------+-------------------------------+
//! ```
//!
//! The reference is what an end has chosen for a call, or the id of a leg; an answer has that of its
//! question, so that nobody who has not seen the question can answer.

use tautline_units::{ByteCount, Instant};

use super::token::Token;
use crate::crypto::MacKey;

/// One message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// End to relay: let me in.
    Call {
        /// Chosen by the end.
        reference: Reference,
        /// What the relay gave to this address; zeros at first.
        cookie: Cookie,
        /// Noise message 1.
        message: &'a [u8; CALL_BYTES],
    },
    /// Relay to whoever is where it was not yet: say it again with this.
    Cookie {
        /// Of the question.
        reference: Reference,
        /// What to say.
        cookie: Cookie,
    },
    /// Relay to end: you are in, if you can read this.
    Welcome {
        /// Of the call.
        reference: Reference,
        /// Noise message 2.
        message: &'a [u8; WELCOME_BYTES],
    },
    /// End to relay: I am here, and this is my token.
    Prove(Prove<'a>),
    /// Relay to end: so you are.
    Proven(Proven<'a>),
    /// Relay to end: there is no such leg.
    Gone {
        /// Which.
        leg: LegId,
    },
    /// Relay to end: your call is in vain.
    Refused {
        /// Of the call.
        reference: Reference,
        /// Why.
        reason: Refusal,
    },
    /// Relay to end, if it answers such: when does this come?
    Probe(Probe<'a>),
    /// End to relay: then it came.
    Echo(Echo<'a>),
}

/// A question for the time, as long as its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe<'a> {
    /// Which leg.
    pub leg: LegId,
    /// When it was sent, by the relay's clock: above all before.
    pub sent_at: Instant,
    signed: Signed<'a>,
}

/// The answer to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo<'a> {
    /// Which leg.
    pub leg: LegId,
    /// As it stood in the probe.
    pub sent_at: Instant,
    /// When the probe came, by the end's clock.
    pub seen_at: Instant,
    signed: Signed<'a>,
}

/// What an end says of itself at its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prove<'a> {
    /// Which leg.
    pub leg: LegId,
    /// Above all that were said before.
    pub number: u64,
    /// What the relay gave to this address; any, if the leg is there already.
    pub cookie: Cookie,
    /// A later token than the one of the call.
    pub token: Option<&'a [u8; Token::BYTES]>,
    /// Whether the end answers probes; an older build does not.
    pub answers_probes: bool,
    signed: Signed<'a>,
}

/// What a relay knows of a leg.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proven<'a> {
    /// Which.
    pub leg: LegId,
    /// The number that is answered.
    pub number: u64,
    /// What went through the link so far, both ways.
    pub metered: ByteCount,
    /// What may go through it.
    pub metered_max: ByteCount,
    /// Whether the other end is there.
    pub has_peer: bool,
    signed: Signed<'a>,
}

/// A message with its tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Signed<'a> {
    message: &'a [u8],
    tag: &'a [u8; MacKey::TAG_BYTES],
}

/// What an answer has in common with its question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference(pub [u8; 8]);

/// The name of one socket of one end at a relay, drawn by the relay; none is all zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LegId(pub [u8; LegId::BYTES]);

/// What a relay gives to an address, and makes again whenever it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cookie(pub [u8; 16]);

/// A reason why a relay lets an end not in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The token is not of the relay's switchboard.
    Forged,
    /// The token's time is over, or the clocks of switchboard and relay differ.
    Expired,
    /// The token is for another relay.
    OtherRelay,
    /// The token names another key than the caller's.
    OtherKey,
    /// The relay takes no more.
    Full,
    /// A reason that this build does not know.
    Other,
}

impl<'a> Message<'a> {
    /// Reads one message; `None` if the bytes are none that this version knows.
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
    /// Returns whether it was said by who has `key`.
    pub fn is_under(&self, key: &MacKey) -> bool {
        self.signed.is_under(key)
    }
}

impl Proven<'_> {
    /// Returns whether it was said by who has `key`.
    pub fn is_under(&self, key: &MacKey) -> bool {
        self.signed.is_under(key)
    }
}

impl Probe<'_> {
    /// Returns whether it was said by who has `key`.
    pub fn is_under(&self, key: &MacKey) -> bool {
        self.signed.is_under(key)
    }
}

impl Echo<'_> {
    /// Returns whether it was said by who has `key`.
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
    /// Bytes of an id.
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

/// Returns whether `datagram` is between an end and a relay, and of no session.
pub fn is_of_relay(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|head| head >> 4 == TYPE_RELAY)
}

/// Returns what an answer to `datagram` refers to, whatever it is: its bytes 4 to 11.
pub fn reference_of(datagram: &[u8]) -> Option<Reference> {
    datagram.get(4..12)?.try_into().ok().map(Reference)
}

/// Writes a call in place of what `out` holds.
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

/// Writes a cookie in place of what `out` holds.
pub fn write_cookie(out: &mut Vec<u8>, reference: Reference, cookie: Cookie) {
    write_head(out, KIND_COOKIE, 0, reference.0);
    out.extend_from_slice(&cookie.0);
}

/// Writes a welcome in place of what `out` holds.
pub fn write_welcome(out: &mut Vec<u8>, reference: Reference, message: &[u8; WELCOME_BYTES]) {
    write_head(out, KIND_WELCOME, 0, reference.0);
    out.extend_from_slice(message);
}

/// Writes a proof in place of what `out` holds.
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

/// Writes the answer to a proof in place of what `out` holds.
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

/// Writes that there is no such leg in place of what `out` holds.
pub fn write_gone(out: &mut Vec<u8>, leg: LegId) {
    write_head(out, KIND_GONE, 0, leg.0);
}

/// Writes a refusal in place of what `out` holds.
pub fn write_refused(out: &mut Vec<u8>, reference: Reference, reason: Refusal) {
    write_head(out, KIND_REFUSED, reason.to_wire(), reference.0);
}

/// Writes a probe in place of what `out` holds.
pub fn write_probe(out: &mut Vec<u8>, leg: LegId, sent_at: Instant, key: &MacKey) {
    write_head(out, KIND_PROBE, 0, leg.0);
    out.extend_from_slice(&sent_at.as_nanos().to_be_bytes());
    // An end that is made to answer sends no more than it was sent.
    out.extend_from_slice(&[0; 8]);
    sign(out, key);
}

/// Writes the answer to a probe in place of what `out` holds.
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

/// Bytes of a cookie's message, the longest answer to a datagram of a session.
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

/// The token, and which socket.
pub(super) const CALL_PAYLOAD_BYTES: usize = Token::BYTES + 1;
/// Bytes of a call's Noise message: ephemeral, sealed static, sealed payload.
pub(super) const CALL_BYTES: usize = 32 + 48 + CALL_PAYLOAD_BYTES + 16;
/// The leg's id and key.
pub(super) const WELCOME_PAYLOAD_BYTES: usize = LegId::BYTES + MacKey::BYTES;
/// Bytes of a welcome's: ephemeral, sealed payload.
pub(super) const WELCOME_BYTES: usize = 32 + WELCOME_PAYLOAD_BYTES + 16;
const _: () = assert!(COOKIE_BYTES < 12 + 16 + CALL_BYTES, "no answer is longer than its question");
const _: () = assert!(WELCOME_BYTES < 16 + CALL_BYTES, "nor is a welcome than its call");

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn key() -> MacKey {
        MacKey::new([3; 32])
    }

    /// Returns a message written by what wrote it, for comparison.
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
    fn every_message_survives_its_bytes_and_no_answer_is_longer_than_its_question() {
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
                // Under another key than its writer's, and whatever the reserved bits were.
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
