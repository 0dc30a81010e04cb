use std::ops::Range;

use crate::Error;

/// Rows of a picture in YUV 4:2:0, 8 bits, in complete planes without padding.
///
/// `luma` is `width * height` bytes; `cb` and `cr` are a quarter of that each. Width and height are
/// multiples of 16, so every picture and every strip consists of complete macroblocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    width: usize,
    height: usize,
    luma: Vec<u8>,
    cb: Vec<u8>,
    cr: Vec<u8>,
}

impl Picture {
    /// Creates a black picture (luma 16, chroma 128) of `width` by `height` pixels.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both are multiples of 16 between 16 and 8192.
    pub fn new(width: usize, height: usize) -> Result<Self, Error> {
        let valid = |side: usize| side.is_multiple_of(16) && (16..=8192).contains(&side);
        if !valid(width) || !valid(height) {
            return Err(Error::Dimensions { width, height });
        }
        let pixels = width * height;
        Ok(Self {
            width,
            height,
            luma: vec![16; pixels],
            cb: vec![128; pixels / 4],
            cr: vec![128; pixels / 4],
        })
    }

    /// Returns the number of luma pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of luma rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the luma plane, row by row.
    pub fn luma(&self) -> &[u8] {
        &self.luma
    }

    /// Returns the blue-difference plane, half as wide and half as high.
    pub fn cb(&self) -> &[u8] {
        &self.cb
    }

    /// Returns the red-difference plane, half as wide and half as high.
    pub fn cr(&self) -> &[u8] {
        &self.cr
    }

    /// Returns the three planes (luma, cb, cr) for writing.
    pub fn planes_mut(&mut self) -> (&mut [u8], &mut [u8], &mut [u8]) {
        (&mut self.luma, &mut self.cb, &mut self.cr)
    }

    /// Returns a copy of the rows `rows` as a separate picture.
    ///
    /// # Errors
    /// [`Error::Rows`] unless the rows are complete macroblock rows of this picture, at least one.
    pub fn rows(&self, rows: Range<usize>) -> Result<Self, Error> {
        self.check_rows(&rows)?;
        let luma = rows.start * self.width..rows.end * self.width;
        let chroma = luma.start / 4..luma.end / 4;
        Ok(Self {
            width: self.width,
            height: rows.len(),
            luma: self.luma[luma].to_vec(),
            cb: self.cb[chroma.clone()].to_vec(),
            cr: self.cr[chroma].to_vec(),
        })
    }

    /// Copies all of `strip` into this picture, starting at row `first_row`.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if the widths differ; [`Error::Rows`] unless the strip fits and
    /// begins on a macroblock row.
    pub fn place(&mut self, first_row: usize, strip: &Self) -> Result<(), Error> {
        let rows = first_row..first_row.saturating_add(strip.height);
        self.check_rows(&rows)?;
        if strip.width != self.width {
            return Err(Error::SizeMismatch {
                width: strip.width,
                height: strip.height,
                expected_width: self.width,
                expected_height: strip.height,
            });
        }
        let luma = rows.start * self.width..rows.end * self.width;
        let chroma = luma.start / 4..luma.end / 4;
        self.luma[luma].copy_from_slice(&strip.luma);
        self.cb[chroma.clone()].copy_from_slice(&strip.cb);
        self.cr[chroma].copy_from_slice(&strip.cr);
        Ok(())
    }

    fn check_rows(&self, rows: &Range<usize>) -> Result<(), Error> {
        let aligned = rows.start.is_multiple_of(16) && rows.end.is_multiple_of(16);
        if aligned && rows.start < rows.end && rows.end <= self.height {
            return Ok(());
        }
        Err(Error::Rows { start: rows.start, end: rows.end, height: self.height })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_taken_out_can_be_placed_again() {
        let mut picture = Picture::new(32, 64).unwrap();
        let (luma, cb, cr) = picture.planes_mut();
        for plane in [luma, cb, cr] {
            for (index, value) in plane.iter_mut().enumerate() {
                *value = (index % 251) as u8;
            }
        }
        let strip = picture.rows(16..48).unwrap();
        assert_eq!((strip.width(), strip.height()), (32, 32));
        assert_eq!(strip.luma(), &picture.luma()[16 * 32..48 * 32]);
        assert_eq!(strip.cr(), &picture.cr()[8 * 16..24 * 16]);
        let mut copy = Picture::new(32, 64).unwrap();
        copy.place(16, &strip).unwrap();
        assert_eq!(copy.rows(16..48).unwrap(), strip);
    }

    #[test]
    fn rows_outside_the_picture_are_refused() {
        let mut picture = Picture::new(32, 64).unwrap();
        let strip = Picture::new(32, 32).unwrap();
        assert!(picture.rows(0..0).is_err());
        assert!(picture.rows(8..24).is_err());
        assert!(picture.rows(48..80).is_err());
        assert!(picture.place(48, &strip).is_err());
        assert!(picture.place(usize::MAX - 15, &strip).is_err());
        assert!(picture.place(0, &Picture::new(16, 16).unwrap()).is_err());
    }
}
