//! ECN marks: whether a link's datagrams may be ECT(1), and which marks the peer reports.

use tautline_units::Ecn;

use super::in_flight::Passed;
use crate::rate::Marked;
use crate::wire::Marks;

/// Decision whether a link's datagrams are sent as ECT(1), and the peer's last report on marks
/// (similar to [RFC9000] 13.4.2).
#[derive(Debug, Default)]
pub(super) struct Marking {
    trust: Trust,
    /// Number of datagrams sent as ECT(1) on the link.
    sent: u64,
    /// Mark counts of the last report that had some.
    told: Marks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Half of the datagrams are sent as ECT(1) to compare their delivery with the other half. The
    /// value holds the counts at the start of the trial.
    Trial(Passed),
    /// ECT(1) passed the trial: all datagrams are sent as ECT(1).
    Sound,
    /// ECT(1) failed the trial, or the peer's counts are inconsistent: no datagram is sent as
    /// ECT(1).
    Unsound,
}

impl Default for Trust {
    fn default() -> Self {
        Self::Trial(Passed::default())
    }
}

impl Marking {
    /// Returns whether datagram `number` is to be sent as ECT(1).
    pub(super) fn applies(&self, number: u64) -> bool {
        match self.trust {
            // Thue-Morse sequence: no regular subsequence, such as pings, falls into one half.
            Trust::Trial(_) => number.count_ones() % 2 == 1,
            Trust::Sound => true,
            Trust::Unsound => false,
        }
    }

    /// Counts a sent datagram if its codepoint is ECT(1).
    pub(super) fn on_sent(&mut self, ecn: Ecn) {
        self.sent += u64::from(ecn == Ecn::Ect1);
    }

    /// Starts a new trial of ECT(1), if it had passed the last one, because the link fell silent.
    /// `passed` holds the present delivery counts.
    pub(super) fn doubt(&mut self, passed: Passed) {
        if self.trust == Trust::Sound {
            self.trust = Trust::Trial(passed);
        }
    }

    /// Starts a new trial of ECT(1), whatever the last one showed, because the link has moved to
    /// another route. `passed` holds the present delivery counts.
    pub(super) fn restart(&mut self, passed: Passed) {
        self.trust = Trust::Trial(passed);
    }

    /// Handles the mark counts of a report, and the delivery counts known with it, which may end a
    /// trial. Inconsistent mark counts end the use of ECT(1). Returns the increase of the mark
    /// counts since the last report that had some; `None` if this one has none, or if ECT(1) is not
    /// used because the counts were inconsistent or a trial failed.
    pub(super) fn on_report(&mut self, marks: Option<Marks>, passed: Passed) -> Option<Marked> {
        if let Trust::Trial(before) = self.trust {
            self.trust = judged(before, passed);
        }
        let marks = marks?;
        let before = std::mem::replace(&mut self.told, marks);
        let [_, came] = passed.came;
        let bounds = came..=self.sent;
        let adds_up = marks.ect1 >= before.ect1
            && marks.ce >= before.ce
            && bounds.contains(&(marks.ect1 + marks.ce));
        if !adds_up {
            self.trust = Trust::Unsound;
        }
        (self.trust != Trust::Unsound).then(|| Marked {
            datagrams: marks.ect1 + marks.ce - before.ect1 - before.ce,
            ce: marks.ce - before.ce,
        })
    }
}

/// Evaluates a trial, which continues until the outcome of [`TRIED`] datagrams of each half is
/// known and one has arrived: ECT(1) needs at least half the delivery ratio of the other datagrams.
fn judged(before: Passed, passed: Passed) -> Trust {
    let came = [0, 1].map(|kind| passed.came[kind].saturating_sub(before.came[kind]));
    let lost = [0, 1].map(|kind| passed.lost[kind].saturating_sub(before.lost[kind]));
    let known = [came[0] + lost[0], came[1] + lost[1]];
    if known.iter().any(|known| *known < TRIED) || came == [0, 0] {
        return Trust::Trial(before);
    }
    let passes = u128::from(came[1]) * u128::from(known[0]) * 2
        >= u128::from(came[0]) * u128::from(known[1]);
    if passes { Trust::Sound } else { Trust::Unsound }
}

/// Minimum number of datagrams in each half of a trial: at one third random loss, a trial fails
/// once in a hundred thousand.
const TRIED: u64 = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(came: [u64; 2], lost: [u64; 2]) -> Passed {
        Passed { came, lost }
    }

    fn sent(count: u64) -> Marking {
        let mut marking = Marking::default();
        for number in 0..count {
            let ecn = if marking.applies(number) { Ecn::Ect1 } else { Ecn::NotEct };
            marking.on_sent(ecn);
        }
        marking
    }

    #[test]
    fn half_are_tried_and_then_all_bear_marks() {
        let mut marking = sent(64);
        assert_eq!(marking.sent, 32);
        assert_eq!(marking.on_report(None, passed([20, 10], [0, 0])), None);
        assert!(!marking.applies(0), "too few are known");
        marking.on_report(None, passed([20, 14], [0, 2]));
        assert!((0..64).all(|number| marking.applies(number)));
        marking.doubt(passed([20, 20], [0, 2]));
        assert!(!marking.applies(0));
    }

    #[test]
    fn marking_stops_if_ect1_is_lost_until_the_route_changes() {
        let mut marking = sent(64);
        marking.on_report(None, passed([24, 0], [2, 16]));
        assert!((0..64).all(|number| !marking.applies(number)));
        marking.doubt(passed([24, 0], [2, 16]));
        assert!(!marking.applies(1));
        marking.restart(passed([24, 0], [2, 16]));
        assert!(marking.applies(1));
    }

    #[test]
    fn equal_losses_of_both_codepoints_do_not_stop_marking() {
        let mut marking = sent(200);
        marking.on_report(None, passed([0, 0], [40, 40]));
        assert!(marking.applies(1) && !marking.applies(0));
        marking.on_report(None, passed([28, 20], [52, 60]));
        assert!(marking.applies(0));
    }

    #[test]
    fn new_marks_are_returned_once() {
        let mut marking = sent(64);
        let told = marking.on_report(Some(Marks { ect1: 18, ce: 3 }), passed([20, 20], [0, 0]));
        assert_eq!(told, Some(Marked { datagrams: 21, ce: 3 }));
        let told = marking.on_report(Some(Marks { ect1: 20, ce: 3 }), passed([22, 23], [0, 0]));
        assert_eq!(told, Some(Marked { datagrams: 2, ce: 0 }));
    }

    #[test]
    fn counts_that_do_not_add_up_are_not_believed() {
        let impossible = [
            // More than were sent, fewer than arrived, and a decrease.
            Marks { ect1: 30, ce: 3 },
            Marks { ect1: 10, ce: 9 },
            Marks { ect1: 30, ce: 0 },
        ];
        for marks in impossible {
            let mut marking = sent(64);
            let first = Marks { ect1: 18, ce: 2 };
            assert!(marking.on_report(Some(first), passed([20, 20], [0, 0])).is_some());
            assert_eq!(marking.on_report(Some(marks), passed([20, 20], [0, 0])), None, "{marks:?}");
            assert!((0..64).all(|number| !marking.applies(number)));
        }
    }

    proptest! {
        #[test]
        fn reported_marks_never_exceed_the_packets_sent(
            reports in prop::collection::vec(((0..1_u64 << 48, 0..1_u64 << 48), 0..40_u64, 0..40_u64), 1..40),
            small in any::<bool>(),
        ) {
            let (mut marking, mut believed) = (sent(200), 0);
            for ((ect1, ce), came, lost) in reports {
                let marks = match small {
                    true => Marks { ect1: ect1 % 60, ce: ce % 60 },
                    false => Marks { ect1, ce },
                };
                let passed = passed([came, came], [lost, lost]);
                if let Some(Marked { datagrams, ce }) = marking.on_report(Some(marks), passed) {
                    prop_assert!(ce <= datagrams);
                    believed += datagrams;
                }
                prop_assert!(believed <= marking.sent);
            }
        }
    }
}
