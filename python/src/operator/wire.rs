//! Messages between a console and the operator's process; crates/operator/src/console/wire.rs has
//! the other end. Invalid bytes give `None`.

use serde_json::Value;
use tautline_units::Instant;
use tautline_video::SliceKind;

use super::kinds::to_operator;

/// A slice's header and the offset of its access unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceHead {
    pub(super) strip: usize,
    pub(super) kind: SliceKind,
    /// Number of earlier slices of the strip that this one depends on; `None` if unknown.
    pub(super) history: Option<u8>,
    pub(super) is_corrupt: bool,
    pub(super) picture: u32,
    /// Start of the strip's readout, in Unix time of the operator's clock; `None` if unknown.
    pub(super) captured: Option<Instant>,
    /// Guard's tick in the picture; 0 if the vehicle knew none.
    pub(super) tick: u32,
}

impl SliceHead {
    pub(super) const BYTES: usize = 28;

    /// Reads the header of a slice's message.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let head: &[u8; Self::BYTES] = message.first_chunk()?;
        if message.len() == Self::BYTES {
            return None;
        }
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let micros = u64::from(word(8)) << 32 | u64::from(word(12));
        Some(Self {
            strip: usize::from(head[1]),
            kind: SliceKind::from_number(head[2] & !CORRUPT)?,
            history: head[3].checked_sub(1),
            is_corrupt: head[2] & CORRUPT != 0,
            picture: word(4),
            captured: (micros > 0).then(|| Instant::from_nanos(micros.saturating_mul(1_000))),
            tick: word(24),
        })
    }
}

/// Layout of the vehicle's pictures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Format {
    pub(super) width: usize,
    pub(super) height: usize,
    /// First row and number of rows of each strip.
    pub(super) strips: Vec<(usize, usize)>,
}

/// Reads a hello: the vehicle's name, and the layout of its pictures once it is known.
pub(super) fn hello(json: &[u8]) -> Option<(String, Option<Format>)> {
    let hello: Value = serde_json::from_slice(json).ok()?;
    let vehicle = hello["vehicle"].as_str()?.to_owned();
    let picture = &hello["picture"];
    if picture.is_null() {
        return Some((vehicle, None));
    }
    let side = |value: &Value| {
        let side = usize::try_from(value.as_u64()?).ok()?;
        (1..=SIDE_MAX).contains(&side).then_some(side)
    };
    let (width, height) = (side(&picture["width"])?, side(&picture["height"])?);
    let strips = picture["strips"].as_array()?;
    if !(1..=STRIPS_MAX).contains(&strips.len()) {
        return None;
    }
    let strip = |strip: &Value| {
        let (first, rows) = (usize::try_from(strip[0].as_u64()?).ok()?, side(&strip[1])?);
        (first.checked_add(rows)? <= height).then_some((first, rows))
    };
    let strips = strips.iter().map(strip).collect::<Option<Vec<_>>>()?;
    Some((vehicle, Some(Format { width, height, strips })))
}

/// Returns a ping that is dated `now`.
pub(super) fn ping(now: Instant) -> Vec<u8> {
    tagged(to_operator::PING, &now.as_nanos().to_be_bytes())
}

/// Reads an answered ping: when it was asked, and the operator's Unix time.
pub(super) fn pong(body: &[u8]) -> Option<(Instant, Instant)> {
    let (asked, answered) = body.split_first_chunk::<8>()?;
    let micros = u64::from_be_bytes(answered.try_into().ok()?);
    let answered = Instant::from_nanos(micros.saturating_mul(1_000));
    Some((Instant::from_nanos(u64::from_be_bytes(*asked)), answered))
}

/// Returns a message of this kind and content.
pub(super) fn tagged(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(1 + body.len());
    message.push(kind);
    message.extend_from_slice(body);
    message
}

/// Flag in the byte of a slice's kind.
const CORRUPT: u8 = 0x80;
const SIDE_MAX: usize = 8192;
/// Requests for keyframes are a mask of eight bits.
pub(super) const STRIPS_MAX: usize = 8;
