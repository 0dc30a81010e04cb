//! Colours as luma and chroma.

/// A colour in BT.601 limited range: luma 16 to 235, chroma around 128.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Colour {
    pub(super) y: f32,
    pub(super) cb: f32,
    pub(super) cr: f32,
}

impl Colour {
    /// Returns the colour of red, green and blue from 0 to 255.
    pub(super) const fn rgb(r: f32, g: f32, b: f32) -> Self {
        Self {
            y: 16.0 + 0.256_788 * r + 0.504_129 * g + 0.097_906 * b,
            cb: 128.0 - 0.148_223 * r - 0.290_993 * g + 0.439_216 * b,
            cr: 128.0 + 0.439_216 * r - 0.367_788 * g - 0.071_427 * b,
        }
    }

    /// Returns this colour mixed with a `share` of `other`.
    #[inline(always)]
    pub(super) fn mix(self, other: Self, share: f32) -> Self {
        Self {
            y: self.y + (other.y - self.y) * share,
            cb: self.cb + (other.cb - self.cb) * share,
            cr: self.cr + (other.cr - self.cr) * share,
        }
    }
}

/// Colour of distant objects.
pub(super) const HAZE: Colour = Colour::rgb(182.0, 202.0, 214.0);

/// Returns the share of an object's own colour that remains after `metres` of air.
#[inline(always)]
pub(super) fn clear(metres: f32) -> f32 {
    let part = metres * (1.0 / 280.0);
    1.0 / (1.0 + part * part)
}
