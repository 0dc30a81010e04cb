use tautline_units::Instant;
use tautline_video::{Encoded, Slice};

/// Converts a coded strip to the vehicle's slice, with instantaneous readout and coding.
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
