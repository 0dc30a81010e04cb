use axum::body::Bytes;
use tautline_units::Instant;
use tautline_video::SliceKind;

/// A slice that was shown, to be recorded.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Number of the picture, as counted by the camera.
    pub picture: u32,
    /// Number of the strip, counted from the top from 0.
    pub strip: u8,
    /// Kind of slice.
    pub kind: SliceKind,
    /// Start of the strip's readout, by the operator's clock; `shown_at` until the clocks are
    /// compared.
    pub captured_at: Instant,
    /// Time when encoding finished at the vehicle, by the operator's clock; `shown_at` until the
    /// clocks are compared.
    pub encoded_at: Instant,
    /// Time of hand-over to the console, by the operator's clock.
    pub shown_at: Instant,
    /// True if the strip matched its encoder after this slice.
    pub is_clean: bool,
    /// Slice's NAL units with start codes (H.264 Annex B), shared with the console's message.
    pub bytes: Bytes,
}
