/// Dominant motion of a strip from one picture to the next, in quarters of a luma sample: the
/// position of its content in the previous picture minus its position in this one.
///
/// Zero if it was not measured.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Motion {
    /// Horizontal component, positive to the right.
    pub x: i16,
    /// Vertical component, positive downwards.
    pub y: i16,
}

impl Motion {
    /// Returns the component-wise median of `vectors`, each over `pictures` pictures, divided by
    /// that number; zero without vectors.
    pub(crate) fn of(vectors: impl Iterator<Item = (i16, i16)>, pictures: u16) -> Self {
        let (mut x, mut y): (Vec<i16>, Vec<i16>) = vectors.unzip();
        let middle = |side: &mut [i16]| match side.len() {
            0 => 0,
            count => (f32::from(*side.select_nth_unstable(count / 2).1)
                / f32::from(pictures.max(1)))
            .round() as i16,
        };
        Self { x: middle(&mut x), y: middle(&mut y) }
    }

    /// Returns the nearest motion within the vector range of every H.264 level (table A-1).
    pub(crate) fn within_levels(self) -> Self {
        Self { x: self.x.clamp(-ACROSS_MAX, ACROSS_MAX), y: self.y.clamp(-DOWN_MAX, DOWN_MAX) }
    }
}

/// Motion of the left and the right half of a strip.
///
/// As in [`Motion`], a vector points to a part's position in the previous picture: opposite to its
/// movement.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flow {
    /// Motion of the left half.
    pub left: Motion,
    /// Motion of the right half.
    pub right: Motion,
}

impl Flow {
    /// Returns how far the content of the right half moves to the right relative to that of the
    /// left half, in quarters of a sample: positive if the picture expands.
    pub fn expansion(self) -> i32 {
        i32::from(self.left.x) - i32::from(self.right.x)
    }

    /// Returns how far the content of both halves moves to the right on average, in quarters of a
    /// sample.
    pub fn shift(self) -> i32 {
        -(i32::from(self.left.x) + i32::from(self.right.x)) / 2
    }
}

const ACROSS_MAX: i16 = 2047 * 4;
const DOWN_MAX: i16 = 63 * 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_decide_and_pictures_share() {
        assert_eq!(Motion::of(std::iter::empty(), 1), Motion::default());
        let vectors = [(8, -6), (9, -6), (-400, 3), (9, 400), (8, -6)];
        assert_eq!(Motion::of(vectors.into_iter(), 1), Motion { x: 8, y: -6 });
        assert_eq!(Motion::of(vectors.into_iter(), 4), Motion { x: 2, y: -2 });
    }

    #[test]
    fn no_level_is_left() {
        let far = Motion { x: i16::MIN, y: i16::MAX };
        assert_eq!(far.within_levels(), Motion { x: -8188, y: 252 });
    }
}
