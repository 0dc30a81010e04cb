//! Pictures coded smaller than the sensor delivers them.

use std::ops::Range;

use tautline_video::{Layout, Picture, Reduction};

/// Input of reduced pictures: the sensor's strips, as they are read.
pub(super) struct Reduced {
    reduction: Reduction,
    strips: Vec<Picture>,
    /// Number of strips of the current picture that have been read.
    read_count: usize,
}

impl Reduced {
    /// Returns the state for reducing pictures of a sensor's `whole` layout by `factor`: `present`
    /// if it already has that factor, otherwise a new one. `None` for a factor of 1, which does not
    /// reduce.
    pub(super) fn of(
        present: Option<Self>,
        whole: &Layout,
        factor: usize,
    ) -> anyhow::Result<Option<Self>> {
        Ok(match present {
            _ if factor == 1 => None,
            Some(present) if present.reduction.factor() == factor => Some(present),
            _ => {
                let rows = |strip| whole.strip_rows(strip).len();
                let strips =
                    (0..whole.strip_count()).map(|strip| Picture::new(whole.width(), rows(strip)));
                let strips = strips.collect::<Result<_, _>>()?;
                let reduction = Reduction::new(whole, factor)?;
                Some(Self { reduction, strips, read_count: 0 })
            }
        })
    }

    /// Returns the layout of the reduced pictures.
    pub(super) fn layout(&self) -> &Layout {
        self.reduction.layout()
    }

    /// Returns the sensor's strips that strip `strip` is made of.
    pub(super) fn strips(&self, strip: usize) -> Range<usize> {
        self.reduction.strips(strip)
    }

    /// Draws a strip of the reduced picture; calls `read` for the sensor's strips that are still
    /// missing.
    pub(super) fn read(
        &mut self,
        strip: usize,
        rows: &mut Picture,
        mut read: impl FnMut(usize, &mut Picture),
    ) {
        for needed in self.read_count..self.reduction.strips(strip).end {
            read(needed, &mut self.strips[needed]);
            self.read_count = needed + 1;
        }
        self.reduction.draw(&self.strips, strip, rows);
    }

    /// Ends the picture: the next strips belong to another one.
    pub(super) fn end_picture(&mut self) {
        self.read_count = 0;
    }
}
