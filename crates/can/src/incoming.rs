use std::ops::RangeInclusive;
use std::time::Duration;

use tautline_guard::{Fault, Gear, Notice};
use tautline_units::Instant;

use crate::curve::Curve;
use crate::message::Message;
use crate::seal::{Mismatch, Seal};

/// A message of the DBC that the map receives, and what its frames have brought.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    pub(crate) message: Message,
    pub(crate) timeout: Duration,
    /// Fault of the machine while the message is [lost](Self::is_lost); `None` if that is no fault.
    pub(crate) fault: Option<Fault>,
    pub(crate) seal: Seal,
    pub(crate) mismatch_max: u32,
    pub(crate) uses: Vec<Use>,
    pub(crate) heard_at: Option<Instant>,
    /// Counter of the newest frame that was taken; `None` before the first.
    pub(crate) count: Option<u64>,
    /// Number that grows by one with each mismatch of checksum or counter, up to `mismatch_max`,
    /// and falls by one with each frame without. At the maximum the message counts as lost.
    pub(crate) mismatches: u32,
}

/// Use that the map makes of a received signal, and the signal's newest bits.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    /// Index of the signal in its message.
    pub(crate) index: usize,
    pub(crate) target: Target,
    pub(crate) raw: u64,
    pub(crate) heard_at: Option<Instant>,
}

/// Part of the machine's state that a received signal gives.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Target {
    Speed {
        curve: Curve,
        is_signed_by_gear: bool,
    },
    SidewaysSpeed(Curve),
    YawRate(Curve),
    SteeringAngle(Curve),
    Gear {
        drive: Vec<u64>,
        reverse: Vec<u64>,
        neither: Vec<u64>,
    },
    AccelerationAlong(Curve),
    AccelerationAcross(Curve),
    Charge(Curve),
    Notice(Notice, Condition),
    Fault(Fault, Condition),
    /// State of the action with this number: on while the condition holds.
    Action(u8, Condition),
    /// Measured value of the axis with this number.
    Axis(u8, Curve),
    /// Number that the machine reports as the value with this number.
    Number(u8, Curve),
    /// Text that the machine reports as the value with this number: the DBC's name of the bits.
    Text(u8),
    /// Answer to a request of the action with this number, by its bits; others are no answer.
    Answer {
        action: u8,
        accepted: Vec<u64>,
        refused: Vec<u64>,
    },
}

/// A condition on a received signal, which sets a notice, fault or light while it holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Condition {
    /// The signal's bits are one of these.
    Is(Vec<u64>),
    /// The signal's value is outside this range, in the signal's unit, or NaN.
    Outside(RangeInclusive<f64>),
    /// The signal's value is not 0.
    NotZero,
}

/// Fate of a received frame of a message that the map receives.
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
    /// Takes the signals from a frame's data if its length and checksum are right and its counter
    /// is not that of the frame before; returns the frame's fate. A wrong checksum or counter
    /// raises `mismatches`, right ones lower it, and too short a frame leaves it.
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

    /// Returns whether the message, or a signal of it that is used, has not come within the
    /// timeout, or `mismatches` has reached its maximum.
    pub(crate) fn is_lost(&self, now: Instant) -> bool {
        let late =
            |heard_at: Option<Instant>| heard_at.is_none_or(|at| now.since(at) > self.timeout);
        self.is_doubted() || late(self.heard_at) || self.uses.iter().any(|its| late(its.heard_at))
    }

    /// Returns the bits of a signal; `None` if it did not come within the timeout, or `mismatches`
    /// has reached its maximum.
    pub(crate) fn known(&self, its: &Use, now: Instant) -> Option<u64> {
        let is_fresh = its.heard_at.is_some_and(|at| now.since(at) <= self.timeout);
        (is_fresh && !self.is_doubted()).then_some(its.raw)
    }

    /// Returns the value of a signal, mapped by `curve`; `None` if it is not finite, or the signal
    /// not [known](Self::known).
    pub(crate) fn value(&self, its: &Use, curve: &Curve, now: Instant) -> Option<f64> {
        let raw = self.known(its, now)?;
        let value = curve.at(self.message.signals[its.index].physical(raw));
        value.is_finite().then_some(value)
    }

    /// Returns whether the signal is [known](Self::known) and the condition holds for it.
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

    fn is_doubted(&self) -> bool {
        self.mismatches >= self.mismatch_max
    }
}

impl Target {
    /// Returns the gear that these bits mean, `Some(None)` for neither drive nor reverse. Returns
    /// `None` if the map does not name the bits, or this is no gear.
    pub(crate) fn gear(&self, raw: u64) -> Option<Option<Gear>> {
        let Self::Gear { drive, reverse, neither } = self else { return None };
        let found = [(drive, Some(Gear::Drive)), (reverse, Some(Gear::Reverse)), (neither, None)];
        found.into_iter().find(|(values, _)| values.contains(&raw)).map(|(_, gear)| gear)
    }
}
