//! Timed events on links, clocks and endpoints, as data.

use tautline_units::{ByteCount, Instant};

/// One of the two endpoints of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The initiator, which sends media.
    Vehicle,
    /// The responder, which sends commands.
    Operator,
}

impl Side {
    /// Both sides of a run, the vehicle first.
    pub const BOTH: [Self; 2] = [Self::Vehicle, Self::Operator];

    /// Returns the other side.
    pub const fn peer(self) -> Self {
        match self {
            Self::Vehicle => Self::Operator,
            Self::Operator => Self::Vehicle,
        }
    }
}

/// One event of a script, which takes effect at its time; links are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A link carries nothing any more, in either direction.
    Cut(usize),
    /// A cut link carries again.
    Restore(usize),
    /// The port of the vehicle's end of a link changes to the given one.
    Rebind(usize, u16),
    /// The IP address of the vehicle's end of a link changes to that of the given host number.
    Readdress(usize, u8),
    /// A clock is set ahead by the given nanoseconds, or back if negative.
    SetClock(Side, i64),
    /// The maximum size of the datagrams that a side sends on a link changes to the given one.
    LimitDatagrams(Side, usize, ByteCount),
    /// The operator restarts without memory; its next session is seeded with this value.
    RestartOperator(u64),
}

/// Steps in order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script(Vec<(Instant, Step)>);

impl Script {
    /// Adds a step; simultaneous steps happen in the order in which they were added.
    pub fn add(&mut self, at: Instant, step: Step) {
        let place = self.0.partition_point(|(other, _)| *other <= at);
        self.0.insert(place, (at, step));
    }

    /// Cuts `link` from one instant to another.
    pub fn cut(&mut self, link: usize, from: Instant, to: Instant) {
        self.add(from, Step::Cut(link));
        self.add(to, Step::Restore(link));
    }

    /// Splits the script into the steps up to and including `at`, and those after.
    pub fn split(mut self, at: Instant) -> (Self, Self) {
        let after = self.0.split_off(self.0.partition_point(|(other, _)| *other <= at));
        (self, Self(after))
    }

    /// Returns the steps in order of time.
    pub fn steps(&self) -> &[(Instant, Step)] {
        &self.0
    }

    /// Returns whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<const N: usize> From<[(Instant, Step); N]> for Script {
    fn from(steps: [(Instant, Step); N]) -> Self {
        steps.into_iter().collect()
    }
}

impl FromIterator<(Instant, Step)> for Script {
    fn from_iter<I: IntoIterator<Item = (Instant, Step)>>(steps: I) -> Self {
        let mut script = Self::default();
        steps.into_iter().for_each(|(at, step)| script.add(at, step));
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stand_in_order_of_time_and_then_of_addition() {
        let at = Instant::from_millis;
        let mut script = Script::from([(at(5), Step::Cut(1)), (at(2), Step::Cut(0))]);
        script.cut(2, at(2), at(5));
        let steps = script.steps().iter().map(|(_, step)| *step);
        let order = [Step::Cut(0), Step::Cut(2), Step::Cut(1), Step::Restore(2)];
        assert_eq!(steps.collect::<Vec<_>>(), order);
        let (until, after) = script.split(at(2));
        assert_eq!((until.steps().len(), after.steps().len()), (2, 2));
    }
}
