//! Intra refresh: selects the columns to be intra coded, and bounds the vectors of the others.
//!
//! For each column, the picture of its last refresh is known. The column depends only on pictures
//! since then, because
//! - it is refreshed by intra prediction from intra macroblocks only
//!   (`constrained_intra_pred_flag`);
//! - until its next turn it is predicted only from columns that were not refreshed before it,
//!   including all samples that six taps read;
//! - nothing is deblocked, because a filtered edge would carry three samples of the older side
//!   over.
//!
//! Every column is refreshed within a period, so a picture depends on one period of pictures:
//! earlier losses do not matter.

use super::loss_recovery::LossRecovery;
use super::plane::MARGIN;
use super::vector::Window;
use crate::Encoded;

/// State of a strip's intra refresh.
#[derive(Clone, Debug)]
pub(super) struct IntraRefresh {
    loss_recovery: LossRecovery,
    /// Number of the picture of each column's last refresh.
    refreshed_in: Vec<u64>,
    /// Number of the next picture.
    picture: u64,
    /// Number of the first picture on which the last one depends.
    origin: u64,
    /// Number of pictures since the period began, each of which refreshed columns.
    phase: u8,
    /// First picture of the refresh in progress, with [`LossRecovery::IntraRefreshOnLoss`]; `None`
    /// if none is.
    since: Option<u64>,
    /// True if vectors stay within the strip.
    held: bool,
}

impl IntraRefresh {
    pub(super) fn new(loss_recovery: LossRecovery, columns: usize, held: bool) -> Self {
        let refreshed_in = vec![0; columns];
        Self { loss_recovery, refreshed_in, picture: 0, origin: 0, phase: 0, since: None, held }
    }

    /// Begins a refresh with the next picture, because of a reported loss, with
    /// [`LossRecovery::IntraRefreshOnLoss`]; one in progress starts again.
    pub(super) fn on_loss(&mut self) {
        self.since = Some(self.picture);
        if matches!(self.loss_recovery, LossRecovery::IntraRefreshOnLoss { .. }) {
            self.phase = 0;
        }
    }

    /// Records that the next picture is predicted from a picture that the receiver is known to
    /// have, so that it depends on no other.
    pub(super) fn begin_anew(&mut self) {
        self.origin = self.picture;
    }

    /// Returns the number of pictures before the last one on which it depends, at most
    /// [`Encoded::LONG`], as [`Encoded::history`].
    pub(super) fn history(&self) -> u8 {
        let before = self.picture.saturating_sub(self.origin + 1);
        before.min(Encoded::LONG.into()) as u8
    }

    /// Returns the bits to reserve per macroblock on average: about 11 for one that must be
    /// refreshed, 1 for one that may not be skipped, almost none for others.
    pub(super) fn reserve(&self) -> f64 {
        match self.loss_recovery {
            LossRecovery::Idr
            | LossRecovery::AcknowledgedReferences { .. }
            | LossRecovery::ReferenceSelection { .. }
            | LossRecovery::ReferencesByLoss { .. } => 0.1,
            LossRecovery::IntraRefresh { period } | LossRecovery::IntraRefreshOnLoss { period } => {
                1.0 + 11.0 / f64::from(period)
            }
            LossRecovery::IntraColumns { spacing } => 1.0 + 11.0 / f64::from(spacing),
        }
    }

    /// Returns the bounds of the next picture's prediction, for `width` by `height` samples, with
    /// the columns that it refreshes, and advances the period. An IDR refreshes all columns and
    /// begins a period anew.
    pub(super) fn next(&mut self, idr: bool, width: usize, height: usize) -> Reach {
        let mut reach = Reach::free(width, height, self.held);
        // The slices of a joined picture refer to one parameter set, even while only some strips
        // are refreshed.
        reach.constrained =
            self.held && matches!(self.loss_recovery, LossRecovery::IntraRefreshOnLoss { .. });
        let picture = self.picture;
        self.picture += 1;
        if idr {
            self.refreshed_in.fill(picture);
            self.origin = picture;
            (self.phase, self.since) = (0, None);
            return reach;
        }
        let (period, since) = match (self.loss_recovery, self.since) {
            (
                LossRecovery::Idr
                | LossRecovery::AcknowledgedReferences { .. }
                | LossRecovery::ReferenceSelection { .. }
                | LossRecovery::ReferencesByLoss { .. },
                _,
            )
            | (LossRecovery::IntraRefreshOnLoss { .. }, None) => return reach,
            (LossRecovery::IntraRefresh { period }, _) => (period, None),
            (LossRecovery::IntraColumns { spacing }, _) => (spacing, None),
            (LossRecovery::IntraRefreshOnLoss { period }, Some(since)) => (period, Some(since)),
        };
        let (columns, phase) = (self.refreshed_in.len(), usize::from(self.phase));
        reach.refreshed = (0..columns)
            .map(|column| match self.loss_recovery {
                LossRecovery::IntraColumns { spacing } => column % usize::from(spacing) == phase,
                _ => column * usize::from(period) / columns == phase,
            })
            .collect();
        let whole = reach.window;
        // In a refresh after a loss, all columns that it has refreshed are equal.
        let refreshed_in: Vec<u64> = match since {
            Some(since) => self.refreshed_in.iter().map(|&last| u64::from(last >= since)).collect(),
            None => self.refreshed_in.clone(),
        };
        reach.windows = (0..columns).map(|column| window(&refreshed_in, column, whole)).collect();
        for (refreshed_in, _) in
            self.refreshed_in.iter_mut().zip(&reach.refreshed).filter(|(_, new)| **new)
        {
            *refreshed_in = picture;
        }
        self.phase = (self.phase + 1) % period;
        match since {
            None => self.origin = self.refreshed_in.iter().copied().min().unwrap_or(picture),
            Some(since) if self.phase == 0 => (self.origin, self.since) = (since, None),
            Some(_) => {}
        }
        reach
    }
}

/// Returns the contiguous columns around `column` whose last refresh was no earlier than its own,
/// as a range of samples; at the strip's edge up to the bound of `whole`.
fn window(refreshed_in: &[u64], column: usize, whole: Window) -> Window {
    let as_new = |other: &usize| refreshed_in[*other] >= refreshed_in[column];
    let first = (0..column).rev().take_while(as_new).last().unwrap_or(column);
    let last = (column + 1..refreshed_in.len()).take_while(as_new).last().unwrap_or(column);
    Window {
        left: if first == 0 { whole.left } else { first as i32 * 16 },
        right: if last + 1 == refreshed_in.len() { whole.right } else { (last as i32 + 1) * 16 },
        ..whole
    }
}

/// Bounds of a slice's prediction.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    held: bool,
    /// True if intra prediction is constrained even where nothing is refreshed.
    constrained: bool,
    window: Window,
    /// Window of each column; `refreshed` says which columns are refreshed. Both are empty if
    /// nothing is.
    windows: Vec<Window>,
    refreshed: Vec<bool>,
}

impl Reach {
    /// Creates bounds without refresh, in which vectors reach up to the margin, or not out of the
    /// strip if `held` is set.
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

    /// Returns whether vectors stay within the strip, so that the slice does not depend on its
    /// position.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    pub(super) fn is_refreshed(&self, column: usize) -> bool {
        self.refreshed.get(column).is_some_and(|refreshed| *refreshed)
    }

    /// Returns whether intra prediction uses only samples of intra macroblocks.
    pub(super) fn is_constrained(&self) -> bool {
        self.constrained || self.is_refreshing()
    }

    /// Returns whether part of the picture is refreshed, so that no edge is filtered.
    pub(super) fn is_refreshing(&self) -> bool {
        !self.refreshed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refreshed_in_after(
        loss_recovery: LossRecovery,
        columns: usize,
        pictures: u64,
    ) -> (IntraRefresh, Vec<Reach>) {
        let mut refresh = IntraRefresh::new(loss_recovery, columns, false);
        let reaches =
            (0..pictures).map(|picture| refresh.next(picture == 0, columns * 16, 64)).collect();
        (refresh, reaches)
    }

    #[test]
    fn every_column_has_its_turn_once_a_period() {
        for columns in [1, 3, 16, 80] {
            for period in [2u8, 8, 16, 32] {
                for loss_recovery in [
                    LossRecovery::IntraRefresh { period },
                    LossRecovery::IntraColumns { spacing: period },
                ] {
                    let (_, reaches) =
                        refreshed_in_after(loss_recovery, columns, 1 + 2 * u64::from(period));
                    for column in 0..columns {
                        let turns =
                            reaches.iter().filter(|reach| reach.is_refreshed(column)).count();
                        assert_eq!(turns, 2, "{loss_recovery:?} column {column} of {columns}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_window_reaches_a_column_refreshed_before() {
        let mut refresh = IntraRefresh::new(LossRecovery::IntraRefresh { period: 8 }, 80, false);
        for picture in 0..40 {
            let before = refresh.refreshed_in.clone();
            let reach = refresh.next(picture == 0, 1280, 64);
            for column in (0..80).filter(|_| picture > 0) {
                let Window { left, right, .. } = reach.window(column);
                let columns = left.max(0) as usize / 16..(right as usize).min(1280) / 16;
                assert!(columns.contains(&column));
                assert!(before[columns].iter().all(|last| *last >= before[column]));
            }
        }
    }

    #[test]
    fn refresh_windows_stay_within_the_strip() {
        let ways = [
            LossRecovery::Idr,
            LossRecovery::IntraRefresh { period: 4 },
            LossRecovery::IntraColumns { spacing: 3 },
        ];
        for loss_recovery in ways {
            let mut refresh = IntraRefresh::new(loss_recovery, 8, true);
            for picture in 0..9 {
                let reach = refresh.next(picture == 0, 128, 64);
                for Window { left, right, top, bottom } in (0..8).map(|column| reach.window(column))
                {
                    assert!(left >= 0 && right <= 128 && (top, bottom) == (0, 64));
                }
            }
        }
    }

    #[test]
    fn a_refresh_after_a_loss_ends() {
        let (mut refresh, reaches) =
            refreshed_in_after(LossRecovery::IntraRefreshOnLoss { period: 4 }, 16, 5);
        assert!(reaches.iter().all(|reach| !reach.is_constrained()));
        refresh.on_loss();
        let constrained: Vec<bool> =
            (0..6).map(|_| refresh.next(false, 256, 64).is_constrained()).collect();
        assert_eq!(constrained, [true, true, true, true, false, false]);
    }
}
