use std::ops::RangeInclusive;
use std::time::Duration;

use tautline_guard::{Fault, Gear, Notice, Signal as Light};
use tautline_units::Instant;

use crate::curve::Curve;
use crate::message::Message;
use crate::seal::{Mismatch, Seal};

/// A message that is received.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    pub(crate) message: Message,
    pub(crate) timeout: Duration,
    /// Fault while the message does not come or is not what it should be.
    pub(crate) fault: Option<Fault>,
    pub(crate) seal: Seal,
    pub(crate) mismatch_max: u32,
    pub(crate) uses: Vec<Use>,
    pub(crate) heard_at: Option<Instant>,
    /// Counter of the newest frame.
    pub(crate) count: Option<u64>,
    /// One more for each mismatch, and one fewer for each frame without.
    pub(crate) mismatches: u32,
}

/// Use of a signal.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    /// Index of the signal in its message.
    pub(crate) index: usize,
    pub(crate) target: Target,
    pub(crate) raw: u64,
    pub(crate) heard_at: Option<Instant>,
}

/// Meaning of a signal.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Target {
    Speed {
        curve: Curve,
        is_signed_by_gear: bool,
    },
    SteeringAngle(Curve),
    Gear {
        drive: Vec<u64>,
        reverse: Vec<u64>,
        neither: Vec<u64>,
    },
    AccelerationAlong(Curve),
    AccelerationAcross(Curve),
    Charge(Curve),
    /// Number in the list of extras.
    Extra {
        extra: usize,
        curve: Curve,
    },
    Notice(Notice, Condition),
    Fault(Fault, Condition),
    Light(Light, Condition),
}

/// A condition on a signal.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Condition {
    /// It has one of these values, as bits.
    Is(Vec<u64>),
    /// It is outside these values, in its unit.
    Outside(RangeInclusive<f64>),
    /// It is not 0.
    NotZero,
}

/// Fate of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    Taken,
    /// Taken, and frames before it are missing.
    Skipped,
    /// Left out: it has fewer bytes than the message.
    Short,
    /// Left out: its checksum is wrong.
    Checksum,
    /// Left out: it was received before.
    Repeated,
}

impl Incoming {
    /// Takes a frame's data.
    pub(crate) fn handle(&mut self, data: &[u8], now: Instant) -> Heard {
        // Frames may be padded.
        let Some(data) = data.get(..self.message.size) else { return Heard::Short };
        let mismatch = self.seal.mismatch(self.message.id, data, self.count);
        let most = self.mismatch_max;
        self.mismatches = match mismatch {
            Some(_) => (self.mismatches + 1).min(most),
            None => self.mismatches.saturating_sub(1),
        };
        match mismatch {
            Some(Mismatch::Checksum) => return Heard::Checksum,
            Some(Mismatch::Repeated) => return Heard::Repeated,
            Some(Mismatch::Skipped) | None => {}
        }
        self.count = Some(self.seal.count(data));
        self.heard_at = Some(now);
        for its in &mut self.uses {
            if self.message.has(its.index, data) {
                its.raw = self.message.signals[its.index].bits.get(data);
                its.heard_at = Some(now);
            }
        }
        match mismatch {
            Some(_) => Heard::Skipped,
            None => Heard::Taken,
        }
    }

    /// Returns whether the message, or a signal of it that is used, has not come in time, or too
    /// much of it was wrong.
    pub(crate) fn is_lost(&self, now: Instant) -> bool {
        let late =
            |heard_at: Option<Instant>| heard_at.is_none_or(|at| now.since(at) > self.timeout);
        self.is_doubted() || late(self.heard_at) || self.uses.iter().any(|its| late(its.heard_at))
    }

    /// Returns the bits of a signal that came in time.
    pub(crate) fn known(&self, its: &Use, now: Instant) -> Option<u64> {
        let is_fresh = its.heard_at.is_some_and(|at| now.since(at) <= self.timeout);
        (is_fresh && !self.is_doubted()).then_some(its.raw)
    }

    /// Returns the value of a signal that came in time, by a curve; `None` if it is not a number.
    pub(crate) fn value(&self, its: &Use, curve: &Curve, now: Instant) -> Option<f64> {
        let raw = self.known(its, now)?;
        let value = curve.at(self.message.signals[its.index].physical(raw));
        value.is_finite().then_some(value)
    }

    /// Returns whether the condition holds for a signal that came in time.
    pub(crate) fn holds(&self, its: &Use, condition: &Condition, now: Instant) -> bool {
        let Some(raw) = self.known(its, now) else { return false };
        let value = || self.message.signals[its.index].physical(raw);
        match condition {
            Condition::Is(values) => values.contains(&raw),
            // Not a number is outside.
            Condition::Outside(values) => !values.contains(&value()),
            Condition::NotZero => value() != 0.0,
        }
    }

    /// Returns the instant at which the message, or a signal of it, will be lost.
    pub(crate) fn lost_at(&self) -> Option<Instant> {
        let heard = self.uses.iter().map(|its| its.heard_at).chain([self.heard_at]);
        heard.flatten().min().map(|at| at + self.timeout)
    }

    fn is_doubted(&self) -> bool {
        self.mismatches >= self.mismatch_max
    }
}

impl Target {
    /// Returns the gear that these bits name, `Some(None)` for neither; `None` for no known value.
    pub(crate) fn gear(&self, raw: u64) -> Option<Option<Gear>> {
        let Self::Gear { drive, reverse, neither } = self else { return None };
        let found = [(drive, Some(Gear::Drive)), (reverse, Some(Gear::Reverse)), (neither, None)];
        found.into_iter().find(|(values, _)| values.contains(&raw)).map(|(_, gear)| gear)
    }
}
