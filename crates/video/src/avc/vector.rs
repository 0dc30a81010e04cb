//! Motion vectors: prediction from neighbours (8.4.1) and the area within their reach.

use super::bits::signed_length;

/// A motion vector in quarters of a luma sample.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Vector {
    pub(super) x: i16,
    pub(super) y: i16,
}

impl Vector {
    /// Returns the nearest full-sample vector, still in quarters.
    pub(super) fn rounded(self) -> Self {
        Self { x: (self.x + 2) & !3, y: (self.y + 2) & !3 }
    }

    /// Returns the four neighbours at `step` quarters: above, below, left and right.
    #[inline]
    pub(super) fn around(self, step: i16) -> [Self; 4] {
        let Self { x, y } = self;
        [(x, y - step), (x, y + step), (x - step, y), (x + step, y)].map(|(x, y)| Self { x, y })
    }

    /// Returns the [`bits`](Self::bits) of each of the neighbours in [`around`](Self::around).
    #[inline]
    pub(super) fn bits_around(self, step: i16, predicted: Self) -> [u32; 4] {
        let step = i32::from(step);
        let x = i32::from(self.x) - i32::from(predicted.x);
        let y = i32::from(self.y) - i32::from(predicted.y);
        let (across, along) = (signed_length(x), signed_length(y));
        [
            across + signed_length(y - step),
            across + signed_length(y + step),
            along + signed_length(x - step),
            along + signed_length(x + step),
        ]
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y }
    }

    /// Returns the number of bits that code the vector's difference from `predicted`.
    #[inline]
    pub(super) fn bits(self, predicted: Self) -> u32 {
        signed_length(i32::from(self.x) - i32::from(predicted.x))
            + signed_length(i32::from(self.y) - i32::from(predicted.y))
    }

    /// Returns whether deblocking treats two blocks with these vectors as moved differently: by one
    /// sample or more (8.7.2.1).
    #[inline]
    pub(super) fn is_apart(self, other: Self) -> bool {
        (self.x - other.x).unsigned_abs() >= 4 || (self.y - other.y).unsigned_abs() >= 4
    }
}

/// Motion of a quarter of a neighbouring macroblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Neighbour {
    /// Outside the slice or not yet coded.
    Missing,
    /// Intra coded: without motion.
    Still,
    Moved(Vector),
}

impl Neighbour {
    fn vector(self) -> Vector {
        match self {
            Self::Missing | Self::Still => Vector::default(),
            Self::Moved(vector) => vector,
        }
    }
}

/// Motion of the quarters around a macroblock's four, by rows: the row above, from the left corner
/// to beyond the right edge; then two rows of the left neighbour, the macroblock's own two, and one
/// that is never available in time.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    pub(super) cells: [[Neighbour; 4]; 3],
}

/// A part of a macroblock in quarters: its position and size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Part {
    pub(super) const WHOLE: Self = Self { x: 0, y: 0, width: 2, height: 2 };
}

impl Neighbours {
    /// Returns the vector predicted for a part (8.4.1.3).
    pub(super) fn predict(&self, part: Part) -> Vector {
        let (row, column) = (part.y + 1, part.x + 1);
        let a = self.cells[row][column - 1];
        let b = self.cells[row - 1][column];
        let c = match self.cells[row - 1].get(column + part.width) {
            None | Some(Neighbour::Missing) => self.cells[row - 1][column - 1],
            Some(&found) => found,
        };
        // Parts of half a macroblock check one neighbour first.
        let first = match (part.width, part.height) {
            (2, 1) => Some(if part.y == 0 { b } else { a }),
            (1, 2) => Some(if part.x == 0 { a } else { c }),
            _ => None,
        };
        if let Some(Neighbour::Moved(vector)) = first {
            return vector;
        }
        median(a, b, c)
    }

    /// Returns the vector that the macroblock has if it is skipped (8.4.1.1).
    pub(super) fn skip(&self) -> Vector {
        let (a, b) = (self.cells[1][0], self.cells[0][1]);
        let still = |side: Neighbour| {
            matches!(side, Neighbour::Missing) || side == Neighbour::Moved(Vector::default())
        };
        if still(a) || still(b) { Vector::default() } else { self.predict(Part::WHOLE) }
    }

    /// Stores a part's vector for the prediction of later parts.
    pub(super) fn set(&mut self, part: Part, vector: Vector) {
        for row in &mut self.cells[part.y + 1..][..part.height] {
            row[part.x + 1..][..part.width].fill(Neighbour::Moved(vector));
        }
    }
}

fn median(a: Neighbour, b: Neighbour, c: Neighbour) -> Vector {
    if b == Neighbour::Missing && c == Neighbour::Missing && a != Neighbour::Missing {
        return a.vector();
    }
    let mut moved = [a, b, c].into_iter().filter(|side| matches!(side, Neighbour::Moved(_)));
    if let (Some(only), None) = (moved.next(), moved.next()) {
        return only.vector();
    }
    let middle = |a: i16, b: i16, c: i16| a.max(b).min(a.min(b).max(c));
    let (a, b, c) = (a.vector(), b.vector(), c.vector());
    Vector { x: middle(a.x, b.x, c.x), y: middle(a.y, b.y, c.y) }
}

/// The luma samples of the reference from which a macroblock may be predicted, including those that
/// interpolation reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) top: i32,
    pub(super) bottom: i32,
}

impl Window {
    /// Returns whether the block at `x`, `y` may move by `vector`.
    ///
    /// At fractional positions, six taps read two samples before and three behind (8.4.2.2.1).
    /// Chroma's two taps read no further: half a chroma sample between two luma samples of an even
    /// window.
    #[inline]
    pub(super) fn permits(
        &self,
        [x, y]: [i32; 2],
        [width, height]: [i32; 2],
        vector: Vector,
    ) -> bool {
        let spans = |at: i32, side: i32, part: i16, low: i32, high: i32| {
            let start = at + i32::from(part >> 2);
            let (before, behind) = if part & 3 == 0 { (0, 0) } else { (2, 3) };
            start - before >= low && start + side + behind <= high
        };
        vector.x.unsigned_abs() < FAR_X
            && vector.y.unsigned_abs() < FAR_Y
            && spans(x, width, vector.x, self.left, self.right)
            && spans(y, height, vector.y, self.top, self.bottom)
    }

    /// Returns whether the block may move by every vector up to one sample from `centre`; false
    /// also where a quick check cannot tell.
    #[inline]
    pub(super) fn permits_around(
        &self,
        [x, y]: [i32; 2],
        [width, height]: [i32; 2],
        centre: Vector,
    ) -> bool {
        let (x, y) = (x + i32::from(centre.x >> 2), y + i32::from(centre.y >> 2));
        centre.x.unsigned_abs() < FAR_X - 4
            && centre.y.unsigned_abs() < FAR_Y - 4
            && x - 3 >= self.left
            && x + width + 4 <= self.right
            && y - 3 >= self.top
            && y + height + 4 <= self.bottom
    }
}

/// Limit of a vector's horizontal size in quarters, below 2048 samples (table A-1, level 3.1);
/// [`FAR_Y`] is the vertical one, below 512 samples.
const FAR_X: u16 = 2048 * 4 - 4;
const FAR_Y: u16 = 512 * 4 - 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_around_a_vector_are_those_of_each(
            [x, y, of_x, of_y] in prop::array::uniform4(-2_000_i16..2_000),
            step in 1_i16..=4,
        ) {
            let (centre, predicted) = (Vector { x, y }, Vector { x: of_x, y: of_y });
            let each = centre.around(step).map(|vector| vector.bits(predicted));
            prop_assert_eq!(centre.bits_around(step, predicted), each);
        }
    }
}
