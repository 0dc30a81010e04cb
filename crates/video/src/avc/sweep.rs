//! Sweeping refresh: which columns are intra coded, and where the vectors of the others may point.
//!
//! Each column has a stamp: the picture in which it was last refreshed. What a column shows follows
//! from pictures since its stamp alone, because
//! - it is refreshed by intra prediction from intra macroblocks only (`constrained_intra_pred_flag`);
//! - until its next turn it is predicted only from columns whose stamp is not older than its own,
//!   with all samples that six taps read;
//! - nothing is deblocked, for a filtered edge would carry three samples of the older side over.
//!
//! Every stamp is renewed within a period, so that a picture follows from a period of pictures:
//! whatever was lost before does not matter.

use std::fmt;

use super::plane::MARGIN;
use super::vector::Window;
use crate::{Encoded, Error};

/// How a strip heals after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Healing {
    /// By an IDR that is asked for.
    #[default]
    Idr,
    /// By a contiguous band of intra macroblocks that crosses the strip in `period` pictures, again
    /// and again: any loss heals within that many.
    Sweep {
        /// 2 to 250.
        period: u8,
    },
    /// By columns of intra macroblocks, one in every `spacing`, that move by one each picture: the
    /// first paper's pattern (section IV.A). Any loss heals within `spacing` pictures.
    Columns {
        /// 2 to 250.
        spacing: u8,
    },
    /// By one sweep of `period` pictures after each loss that is reported
    /// ([`Refresh::Heal`](crate::Refresh::Heal)).
    OnLoss {
        /// 2 to 250.
        period: u8,
    },
    /// By predicting only from pictures that the receiver has
    /// [acknowledged](super::StripEncoder::acknowledge): a loss harms no other picture. Where none
    /// comes within `references` pictures, an IDR is coded; where none has come since an IDR that is
    /// as far back, each picture is predicted from the one before until one does.
    Acknowledged {
        /// How many pictures back a picture may refer, 1 to 16.
        references: u8,
    },
    /// By predicting one picture after each loss that is reported
    /// ([`Refresh::Heal`](crate::Refresh::Heal)) from the newest that the receiver has acknowledged,
    /// and all others from the one before: a loss heals with that one picture. If none of the last
    /// `references` pictures is acknowledged then, it is an IDR.
    Recall {
        /// How many pictures back a picture may refer, 1 to 16.
        references: u8,
    },
}

impl Healing {
    /// # Errors
    /// [`Error::Invalid`] for a number out of its range.
    pub(super) fn check(self) -> Result<(), Error> {
        let (what, value, range) = match self {
            Self::Idr => return Ok(()),
            Self::Sweep { period } | Self::OnLoss { period } => ("refresh period", period, 2..=250),
            Self::Columns { spacing } => ("refresh spacing", spacing, 2..=250),
            Self::Acknowledged { references } | Self::Recall { references } => {
                ("references", references, 1..=16)
            }
        };
        if range.contains(&value) {
            return Ok(());
        }
        Err(Error::Invalid { what, value: value.into() })
    }

    /// The pictures that decoders keep to refer to.
    pub(super) fn references(self) -> u32 {
        match self {
            Self::Acknowledged { references } | Self::Recall { references } => references.into(),
            Self::Idr | Self::Sweep { .. } | Self::Columns { .. } | Self::OnLoss { .. } => 1,
        }
    }
}

/// What follows an encoder's name: nothing, or the way and its number.
impl fmt::Display for Healing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idr => Ok(()),
            Self::Sweep { period } => write!(f, " sweep {period}"),
            Self::Columns { spacing } => write!(f, " columns {spacing}"),
            Self::OnLoss { period } => write!(f, " sweep {period} on loss"),
            Self::Acknowledged { references } => write!(f, " acknowledged {references}"),
            Self::Recall { references } => write!(f, " recall {references}"),
        }
    }
}

/// Where the refresh of a strip stands.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    healing: Healing,
    /// Of each column, the picture in which it was last refreshed.
    stamps: Vec<u64>,
    /// The picture that is next.
    picture: u64,
    /// The last picture follows from those since this one alone.
    origin: u64,
    /// Pictures into the sweep.
    phase: u8,
    /// With [`Healing::OnLoss`], the first picture of a sweep under way.
    since: Option<u64>,
    /// Whether vectors stay within the strip.
    held: bool,
}

impl Sweep {
    pub(super) fn new(healing: Healing, columns: usize, held: bool) -> Self {
        let stamps = vec![0; columns];
        Self { healing, stamps, picture: 0, origin: 0, phase: 0, since: None, held }
    }

    /// A loss was reported.
    pub(super) fn heal(&mut self) {
        self.since = Some(self.picture);
        if matches!(self.healing, Healing::OnLoss { .. }) {
            self.phase = 0;
        }
    }

    /// The next picture is predicted from what the receiver is known to have.
    pub(super) fn begin_anew(&mut self) {
        self.origin = self.picture;
    }

    /// How many pictures before the last one decide it: see [`Encoded`].
    pub(super) fn history(&self) -> u8 {
        let before = self.picture.saturating_sub(self.origin + 1);
        before.min(Encoded::LONG.into()) as u8
    }

    /// The bits that a macroblock takes at the least, on average: one that must be refreshed about
    /// 11, one that may not be skipped some, others nearly none.
    pub(super) fn reserve(&self) -> f64 {
        match self.healing {
            Healing::Idr | Healing::Acknowledged { .. } | Healing::Recall { .. } => 0.1,
            Healing::Sweep { period } | Healing::OnLoss { period } => {
                1.0 + 11.0 / f64::from(period)
            }
            Healing::Columns { spacing } => 1.0 + 11.0 / f64::from(spacing),
        }
    }

    /// What holds the next picture's prediction, `width` by `height` samples; then goes on.
    pub(super) fn next(&mut self, idr: bool, width: usize, height: usize) -> Reach {
        let mut reach = Reach::free(width, height, self.held);
        // A joined picture's slices name one parameter set, also while some strips alone are swept.
        reach.constrained = self.held && matches!(self.healing, Healing::OnLoss { .. });
        let picture = self.picture;
        self.picture += 1;
        if idr {
            self.stamps.fill(picture);
            self.origin = picture;
            (self.phase, self.since) = (0, None);
            return reach;
        }
        let (period, since) = match (self.healing, self.since) {
            (Healing::Idr | Healing::Acknowledged { .. } | Healing::Recall { .. }, _)
            | (Healing::OnLoss { .. }, None) => return reach,
            (Healing::Sweep { period }, _) => (period, None),
            (Healing::Columns { spacing }, _) => (spacing, None),
            (Healing::OnLoss { period }, Some(since)) => (period, Some(since)),
        };
        let (columns, phase) = (self.stamps.len(), usize::from(self.phase));
        reach.refreshed = (0..columns)
            .map(|column| match self.healing {
                Healing::Columns { spacing } => column % usize::from(spacing) == phase,
                _ => column * usize::from(period) / columns == phase,
            })
            .collect();
        let whole = reach.window;
        // In a sweep after a loss, all that it has refreshed is alike.
        let stamps: Vec<u64> = match since {
            Some(since) => self.stamps.iter().map(|&stamp| u64::from(stamp >= since)).collect(),
            None => self.stamps.clone(),
        };
        reach.windows = (0..columns).map(|column| window(&stamps, column, whole)).collect();
        for (stamp, _) in self.stamps.iter_mut().zip(&reach.refreshed).filter(|(_, new)| **new) {
            *stamp = picture;
        }
        self.phase = (self.phase + 1) % period;
        match since {
            None => self.origin = self.stamps.iter().copied().min().unwrap_or(picture),
            Some(since) if self.phase == 0 => (self.origin, self.since) = (since, None),
            Some(_) => {}
        }
        reach
    }
}

/// The columns around `column` whose stamps are not older than its own, as samples.
fn window(stamps: &[u64], column: usize, whole: Window) -> Window {
    let as_new = |other: &usize| stamps[*other] >= stamps[column];
    let first = (0..column).rev().take_while(as_new).last().unwrap_or(column);
    let last = (column + 1..stamps.len()).take_while(as_new).last().unwrap_or(column);
    Window {
        left: if first == 0 { whole.left } else { first as i32 * 16 },
        right: if last + 1 == stamps.len() { whole.right } else { (last as i32 + 1) * 16 },
        ..whole
    }
}

/// What holds a slice's prediction.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    held: bool,
    /// Whether intra prediction is held even where nothing is refreshed.
    constrained: bool,
    window: Window,
    /// Of each column, its own window and whether it is refreshed; empty where nothing is.
    windows: Vec<Window>,
    refreshed: Vec<bool>,
}

impl Reach {
    /// Nothing is refreshed, and vectors reach as far as the margin, or not out of the strip.
    fn free(width: usize, height: usize, held: bool) -> Self {
        let most = if held { 0 } else { MARGIN as i32 - 8 };
        let window = Window {
            left: -most,
            right: width as i32 + most,
            top: -most,
            bottom: height as i32 + most,
        };
        Self { held, constrained: false, window, windows: Vec::new(), refreshed: Vec::new() }
    }

    pub(super) fn window(&self, column: usize) -> Window {
        self.windows.get(column).copied().unwrap_or(self.window)
    }

    /// Whether the slice must be the same wherever it begins.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    pub(super) fn is_refreshed(&self, column: usize) -> bool {
        self.refreshed.get(column).is_some_and(|refreshed| *refreshed)
    }

    /// Whether intra prediction is held to intra macroblocks.
    pub(super) fn is_constrained(&self) -> bool {
        self.constrained || self.is_swept()
    }

    /// Whether some of the picture is refreshed, and so no edge filtered.
    pub(super) fn is_swept(&self) -> bool {
        !self.refreshed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps_after(healing: Healing, columns: usize, pictures: u64) -> (Sweep, Vec<Reach>) {
        let mut sweep = Sweep::new(healing, columns, false);
        let reaches =
            (0..pictures).map(|picture| sweep.next(picture == 0, columns * 16, 64)).collect();
        (sweep, reaches)
    }

    #[test]
    fn every_column_has_its_turn_once_a_period() {
        for columns in [1, 3, 16, 80] {
            for period in [2u8, 8, 16, 32] {
                for healing in [Healing::Sweep { period }, Healing::Columns { spacing: period }] {
                    let (_, reaches) = stamps_after(healing, columns, 1 + 2 * u64::from(period));
                    for column in 0..columns {
                        let turns =
                            reaches.iter().filter(|reach| reach.is_refreshed(column)).count();
                        assert_eq!(turns, 2, "{healing:?} column {column} of {columns}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_window_reaches_an_older_column() {
        let mut sweep = Sweep::new(Healing::Sweep { period: 8 }, 80, false);
        for picture in 0..40 {
            let before = sweep.stamps.clone();
            let reach = sweep.next(picture == 0, 1280, 64);
            for column in (0..80).filter(|_| picture > 0) {
                let Window { left, right, .. } = reach.window(column);
                let columns = left.max(0) as usize / 16..(right as usize).min(1280) / 16;
                assert!(columns.contains(&column));
                assert!(before[columns].iter().all(|stamp| *stamp >= before[column]));
            }
        }
    }

    #[test]
    fn what_is_held_reaches_no_further_than_its_strip() {
        let healings =
            [Healing::Idr, Healing::Sweep { period: 4 }, Healing::Columns { spacing: 3 }];
        for healing in healings {
            let mut sweep = Sweep::new(healing, 8, true);
            for picture in 0..9 {
                let reach = sweep.next(picture == 0, 128, 64);
                for Window { left, right, top, bottom } in (0..8).map(|column| reach.window(column))
                {
                    assert!(left >= 0 && right <= 128 && (top, bottom) == (0, 64));
                }
            }
        }
    }

    #[test]
    fn a_sweep_after_a_loss_ends() {
        let (mut sweep, reaches) = stamps_after(Healing::OnLoss { period: 4 }, 16, 5);
        assert!(reaches.iter().all(|reach| !reach.is_constrained()));
        sweep.heal();
        let swept: Vec<bool> =
            (0..6).map(|_| sweep.next(false, 256, 64).is_constrained()).collect();
        assert_eq!(swept, [true, true, true, true, false, false]);
    }
}
