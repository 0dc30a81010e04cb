use tautline_units::Instant;
use tautline_video::{Encoded, Slice};

/// Returns what was coded as the vehicle hands it over, read and coded at once.
pub(super) fn slice_of(coded: Encoded, picture: u32, strip: u8, now: Instant) -> Slice {
    let Encoded { kind, history, motion, bytes, .. } = coded;
    Slice {
        picture,
        strip,
        kind,
        history,
        captured_at: now,
        encoded_at: now,
        tick: 0,
        motion,
        bytes,
    }
}
