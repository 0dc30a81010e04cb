use std::ops::Range;

/// The rows of the picture that are being drawn, as three planes.
pub(super) struct Strip<'a> {
    pub(super) width: usize,
    pub(super) rows: Range<usize>,
    pub(super) luma: &'a mut [u8],
    pub(super) cb: &'a mut [u8],
    pub(super) cr: &'a mut [u8],
}

impl Strip<'_> {
    pub(super) fn luma_row(&mut self, row: usize) -> &mut [u8] {
        let start = (row - self.rows.start) * self.width;
        &mut self.luma[start..start + self.width]
    }

    /// Returns the chroma rows of the luma rows `row` and `row + 1`; `row` is even.
    pub(super) fn chroma_rows(&mut self, row: usize) -> (&mut [u8], &mut [u8]) {
        let half = self.width / 2;
        let start = (row - self.rows.start) / 2 * half;
        (&mut self.cb[start..start + half], &mut self.cr[start..start + half])
    }

    /// Returns the rows and columns of the strip within a box of the picture, in pixels, as (rows,
    /// columns). They are empty if the box lies outside the strip.
    pub(super) fn within(
        &self,
        left: f32,
        right: f32,
        top: f32,
        bottom: f32,
    ) -> (Range<usize>, Range<usize>) {
        // Casts saturate: values outside the range, and NaN, become the nearest end.
        let first_row = (top.max(0.0) as usize).clamp(self.rows.start, self.rows.end);
        let last_row = ((bottom + 1.0).max(0.0) as usize).min(self.rows.end);
        let first = (left.max(0.0) as usize).min(self.width);
        let last = ((right + 1.0).max(0.0) as usize).min(self.width);
        (first_row..last_row.max(first_row), first..last.max(first))
    }
}
