//! Messages on a console's WebSocket, byte by byte; console/src/wire.ts reads them.

use std::time::Duration;

use axum::body::Bytes;
use tautline_video::{AccessUnit, Layout, SliceKind};

/// Header of a slice's message to the browser.
#[derive(Clone, Copy, Debug)]
pub struct SliceHead {
    /// Number of the strip, counted from the top from 0.
    pub strip: u8,
    /// Kind of slice.
    pub kind: SliceKind,
    /// Number of the picture, as counted by the camera.
    pub picture: u32,
    /// Number of earlier slices of the strip that determine this slice's content, as
    /// [`Slice::history`](tautline_video::Slice::history); `None` if unknown.
    pub history: Option<u8>,
    /// True if the strip may differ from its encoder's after this slice, because a slice it depends
    /// on was lost.
    pub is_corrupt: bool,
    /// Start of the strip's readout: Unix time in microseconds by the operator's clock; 0 if
    /// unknown.
    pub captured_unix_micros: u64,
    /// Time from the start of the strip's readout to the end of the slice's encoding.
    pub encoded_after: Duration,
    /// Time from the start of the strip's readout until the slice was passed to the browser; zero
    /// if unknown.
    pub handed_on_after: Duration,
    /// Guard tick stamped on the picture; 0 if the vehicle knew none.
    pub tick: u32,
}

impl SliceHead {
    /// Length of this header in a slice's message, in bytes.
    pub const BYTES: usize = 28;

    /// Returns the message: the header, written before the slice's access unit in the same buffer.
    pub fn message(&self, access_unit: AccessUnit) -> Bytes {
        let slice_kind = match self.kind {
            SliceKind::Idr => 0,
            SliceKind::Predicted => 1,
            SliceKind::Skip => 2,
        };
        // console/src/wire.ts: the page decides by these what its person can have seen.
        let coded = slice_kind | if self.is_corrupt { CORRUPT } else { 0 };
        let history = self.history.map_or(0, |slices| slices.saturating_add(1));
        let micros = |after: Duration| u32::try_from(after.as_micros()).unwrap_or(u32::MAX);
        let mut room = [0; AccessUnit::ROOM];
        let head = &mut room[AccessUnit::ROOM - Self::BYTES..];
        head[..4].copy_from_slice(&[kind::SLICE, self.strip, coded, history]);
        head[4..8].copy_from_slice(&self.picture.to_be_bytes());
        head[8..16].copy_from_slice(&self.captured_unix_micros.to_be_bytes());
        head[16..20].copy_from_slice(&micros(self.encoded_after).to_be_bytes());
        head[20..24].copy_from_slice(&micros(self.handed_on_after).to_be_bytes());
        head[24..].copy_from_slice(&self.tick.to_be_bytes());
        Bytes::from(access_unit.behind(room)).slice(AccessUnit::ROOM - Self::BYTES..)
    }
}

/// Returns the first message to a browser: the vehicle's name, empty before one is picked, and the
/// layout and codec of the pictures once they are known.
pub(super) fn hello(vehicle: &str, picture: Option<(&Layout, &str)>) -> Bytes {
    let picture = picture.map(|(layout, codec)| {
        let strips: Vec<[usize; 2]> = (0..layout.strip_count())
            .map(|strip| layout.shown_rows(strip))
            .map(|rows| [rows.start, rows.len()])
            .collect();
        let (width, height) = layout.shown();
        serde_json::json!({
            "width": width,
            "height": height,
            "strips": strips,
            "codec": codec,
        })
    });
    let version = env!("CARGO_PKG_VERSION");
    let json = serde_json::json!({ "vehicle": vehicle, "version": version, "picture": picture });
    tagged(kind::HELLO, json.to_string().as_bytes())
}

/// Bit in a slice's kind byte for [`SliceHead::is_corrupt`].
const CORRUPT: u8 = 0x80;

/// Returns a message of this kind and content.
pub(super) fn tagged(kind: u8, bytes: &[u8]) -> Bytes {
    let mut message = Vec::with_capacity(1 + bytes.len());
    message.push(kind);
    message.extend_from_slice(bytes);
    message.into()
}

/// First bytes of the messages in both directions.
pub(super) mod kind {
    use crate::console::named::kinds;

    kinds! {
        FROM_OPERATOR {
            SLICE = 1: "slice",
            TELEMETRY = 2: "telemetry",
            STATUS = 3: "status",
            CLOCK_PONG = 4: "pong",
            HELLO = 5: "hello",
            SNAPSHOT = 6: "snapshot",
            STANDING = 7: "standing",
            TOPICS = 8: "topics",
            FLEET = 9: "fleet",
            DESCRIPTION = 10: "description",
            VALUES = 11: "values",
        }
        TO_OPERATOR {
            COMMAND = 1: "command",
            LINK = 2: "linkAction",
            CLOCK = 3: "ping",
            VIDEO_FEEDBACK = 4: "videoFeedback",
            ASK = 5: "ask",
            ANSWER = 6: "answer",
            PICK = 7: "pick",
            LEAVE = 8: "leave",
            DECODER = 9: "decoder",
        }
    }
}

/// A message to the browser, for tests.
#[cfg(test)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// Size of the pictures, if it is known.
    Hello { picture: Option<(usize, usize)> },
    /// Strip and kind of a slice.
    Slice { strip: u8, kind: SliceKind },
    /// Message of any other kind, by its first byte.
    Other(u8),
}

#[cfg(test)]
impl Message {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        match bytes[0] {
            kind::HELLO => {
                let json: serde_json::Value = serde_json::from_slice(&bytes[1..]).expect("JSON");
                let picture = &json["picture"];
                let side = |name: &str| picture[name].as_u64().expect("a side") as usize;
                let size = |_: &serde_json::Map<_, _>| (side("width"), side("height"));
                Self::Hello { picture: picture.as_object().map(size) }
            }
            kind::SLICE => {
                let kind = SliceKind::from_number(bytes[2]).expect("a kind");
                Self::Slice { strip: bytes[1], kind }
            }
            other => Self::Other(other),
        }
    }
}
