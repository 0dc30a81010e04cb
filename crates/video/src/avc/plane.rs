//! Planes with a margin, so that motion vectors may point past the border (8.4.2.2: samples outside
//! a picture equal those of its border).

/// Margin around a luma plane in samples; a chroma plane has half of it.
pub(super) const MARGIN: usize = 32;

/// One plane of a picture, with a margin.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    samples: Vec<u8>,
    stride: usize,
    width: usize,
    height: usize,
    margin: usize,
}

impl Plane {
    pub(super) fn new(width: usize, height: usize, margin: usize) -> Self {
        let stride = width + 2 * margin;
        // A kernel may read a complete vector from the last position.
        let samples = vec![0; stride * (height + 2 * margin) + 32];
        Self { samples, stride, width, height, margin }
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn height(&self) -> usize {
        self.height
    }

    /// Returns the index of a sample, which may be in the margin.
    #[inline]
    pub(super) fn at(&self, x: i32, y: i32) -> usize {
        let (column, row) = (x + self.margin as i32, y + self.margin as i32);
        debug_assert!(column >= 0 && row >= 0);
        row as usize * self.stride + column as usize
    }

    pub(super) fn samples(&self) -> &[u8] {
        &self.samples
    }

    pub(super) fn samples_mut(&mut self) -> &mut [u8] {
        &mut self.samples
    }

    /// Returns the samples from a position on.
    #[inline]
    pub(super) fn from(&self, x: i32, y: i32) -> Block<'_> {
        Block { samples: &self.samples[self.at(x, y)..], stride: self.stride }
    }

    /// Fills the margin with copies of the nearest sample of the picture.
    pub(super) fn extend(&mut self) {
        let (stride, margin, width) = (self.stride, self.margin, self.width);
        for row in margin..margin + self.height {
            let line = &mut self.samples[row * stride..][..stride];
            let (first, last) = (line[margin], line[margin + width - 1]);
            line[..margin].fill(first);
            line[margin + width..].fill(last);
        }
        let last = (margin + self.height - 1) * stride;
        for row in 0..margin {
            self.samples.copy_within(margin * stride..(margin + 1) * stride, row * stride);
            self.samples.copy_within(last..last + stride, last + (row + 1) * stride);
        }
    }

    /// Copies the plane without its margin.
    pub(super) fn copy_to(&self, out: &mut [u8]) {
        for (row, line) in out.chunks_exact_mut(self.width).enumerate() {
            let start = (row + self.margin) * self.stride + self.margin;
            line.copy_from_slice(&self.samples[start..start + self.width]);
        }
    }
}

/// Samples of a plane or a buffer from a position on.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) samples: &'a [u8],
    /// Number of samples from the start of one row to the next.
    pub(super) stride: usize,
}

/// Planes of a reconstructed picture.
#[derive(Clone, Debug)]
pub(super) struct Reconstruction {
    pub(super) luma: Plane,
    pub(super) cb: Plane,
    pub(super) cr: Plane,
}

impl Reconstruction {
    pub(super) fn new(width: usize, height: usize) -> Self {
        let chroma = Plane::new(width / 2, height / 2, MARGIN / 2);
        Self { luma: Plane::new(width, height, MARGIN), cb: chroma.clone(), cr: chroma }
    }

    pub(super) fn extend(&mut self) {
        self.luma.extend();
        self.cb.extend();
        self.cr.extend();
    }
}

/// The half-sample luma positions of a picture (8.4.2.2.1): b between left and right, h between
/// above and below, j between four.
#[derive(Clone, Debug)]
pub(super) struct Halves {
    pub(super) b: Plane,
    pub(super) h: Plane,
    pub(super) j: Plane,
}

impl Halves {
    pub(super) fn new(width: usize, height: usize) -> Self {
        let plane = Plane::new(width, height, MARGIN);
        Self { b: plane.clone(), h: plane.clone(), j: plane }
    }
}
