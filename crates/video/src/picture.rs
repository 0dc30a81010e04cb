use crate::Error;

/// Rows of a picture in YUV 4:2:0, 8 bits, full planes without padding.
///
/// `luma` is `width * height` bytes; `cb` and `cr` are a quarter of that each. Width and height
/// are multiples of 16, so that every picture and every strip is whole macroblocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    width: usize,
    height: usize,
    luma: Vec<u8>,
    cb: Vec<u8>,
    cr: Vec<u8>,
}

impl Picture {
    /// A black picture of `width` by `height` pixels.
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

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The luma plane, row by row.
    pub fn luma(&self) -> &[u8] {
        &self.luma
    }

    /// The blue-difference plane, half as wide and half as high.
    pub fn cb(&self) -> &[u8] {
        &self.cb
    }

    /// The red-difference plane, half as wide and half as high.
    pub fn cr(&self) -> &[u8] {
        &self.cr
    }

    /// The three planes (luma, cb, cr) to write to.
    pub fn planes_mut(&mut self) -> (&mut [u8], &mut [u8], &mut [u8]) {
        (&mut self.luma, &mut self.cb, &mut self.cr)
    }
}
