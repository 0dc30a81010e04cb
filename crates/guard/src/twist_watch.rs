//! Watches of a differential or omni machine: whether its motion follows its set point.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::brake::ANSWER_SHARE;
use crate::config::Config;
use crate::plausible::{FALLS_SHARE, FELL_TIME};
use crate::standstill::{Axis, MOVES, axes};
use crate::{Cause, Twist, Why};

/// Checks of a machine's reported motion against the set points sent to it, part by part: speed
/// along, speed across and yaw rate.
///
/// Values and limits of the reasons are in m/s, and m/s² of a brake; those of a turn are a wheel's.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct TwistWatch {
    parts: [Part; 3],
    stop: [Slowing; 2],
    fault: Option<Why>,
    rolls: Option<Why>,
    over: Option<Why>,
}

/// State of the machine that selects the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follows {
    /// The machine is held, or under local control: nothing is checked.
    Nothing,
    /// The machine is armed: it must stand.
    Standstill,
    /// A person drives the machine.
    Person,
    /// The guard brings the machine to a standstill.
    Stop,
}

impl TwistWatch {
    /// Takes the machine's motion, if known, and the set point sent a step ago. Returns the reason
    /// if a stop does not slow the machine; [`fault`](Self::fault), [`rolls`](Self::rolls) and
    /// [`over`](Self::over) have the other findings.
    ///
    /// `is_free` is `false` while a brake holds the machine.
    pub(crate) fn step(
        &mut self,
        config: &Config,
        (moved, is_free): (Option<Twist>, bool),
        told: Twist,
        follows: Follows,
        elapsed: Duration,
    ) -> Option<Why> {
        (self.rolls, self.over) = (None, None);
        if follows == Follows::Nothing {
            *self = Self::default();
        }
        let Some(moved) = moved.filter(|_| follows != Follows::Nothing) else {
            self.parts = Default::default();
            self.stop = Default::default();
            return None;
        };
        let told_parts = axes(config, told);
        let parts = self.parts.iter_mut().zip(axes(config, moved)).zip(told_parts);
        for ((part, moved_part), told_part) in parts.filter(|((_, part), _)| part.most > 0.0) {
            let found = part.step(config, moved_part, told_part.value, (follows, is_free), elapsed);
            match found {
                Some(Found::Rolls(why)) => self.rolls = self.rolls.or(Some(why)),
                Some(Found::Over(why)) => self.over = self.over.or(Some(why)),
                Some(Found::Wrong(why)) if self.fault.is_none() => {
                    self.fault = Some(why);
                }
                Some(Found::Wrong(_)) | None => {}
            }
        }
        if follows != Follows::Stop || self.fault.is_some() {
            self.stop = Default::default();
            return None;
        }
        self.slows(config, moved, told, elapsed)
    }

    /// Returns the fault of the reported motion, kept until the machine is held or its reports are
    /// accepted again; `None` without one.
    pub(crate) fn fault(&self) -> Option<Why> {
        self.fault
    }

    /// Returns the reason to stop a driven machine that moves against its set point, or without
    /// one.
    pub(crate) fn rolls(&self) -> Option<Why> {
        self.rolls
    }

    /// Returns the reason to stop a driven machine that stays above its set point.
    pub(crate) fn over(&self) -> Option<Why> {
        self.over
    }

    /// Returns the findings, and the times that the checks have counted.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> impl core::hash::Hash {
        let times = self.parts.map(|part| [part.against, part.beyond, part.pushed, part.fell]);
        let found = [self.fault.is_some(), self.rolls.is_some(), self.over.is_some()];
        (found, times, self.stop.map(|slowing| slowing.counted))
    }

    /// Accepts the machine's reports from now on: it has slowed for long enough to be stationary.
    pub(crate) fn believe(&mut self) {
        *self = Self::default();
    }

    /// Returns the fault of a stop in which speed or yaw rate does not fall as [`Slowing`]
    /// requires.
    fn slows(
        &mut self,
        config: &Config,
        moved: Twist,
        told: Twist,
        elapsed: Duration,
    ) -> Option<Why> {
        let ramp = &config.manoeuvre;
        let [along, _, turn] = axes(config, moved);
        let pairs = [
            (moved.speed(), told.speed(), ramp.deceleration, along),
            (moved.yaw_rate.abs(), told.yaw_rate.abs(), ramp.yaw_deceleration, turn),
        ];
        let mut found = None;
        for (slowing, (is, wanted, most, axis)) in self.stop.iter_mut().zip(pairs) {
            let failed = slowing.step(config, (is, wanted), most, axis, elapsed);
            found = found.or(failed);
        }
        found
    }
}

/// Check of one part of the motion.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
struct Part {
    /// Set point as the slowest sound drive follows it; `None` before the first.
    slowest: Option<f32>,
    /// Value nearest to the reported one that was possible in the last step; `None` before the
    /// first.
    possible: Option<f32>,
    against: Duration,
    beyond: Duration,
    pushed: Duration,
    fell: Duration,
}

/// Finding in one part of the motion.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Found {
    Rolls(Why),
    Over(Why),
    Wrong(Why),
}

impl Part {
    fn step(
        &mut self,
        config: &Config,
        moved: Axis,
        told: f32,
        (follows, is_free): (Follows, bool),
        elapsed: Duration,
    ) -> Option<Found> {
        let fell = self.fell(moved, elapsed);
        if follows != Follows::Person {
            let possible = self.possible;
            *self = Self { possible, fell: self.fell, ..Self::default() };
            return fell;
        }
        fell.or_else(|| self.pushed(config, moved, told, is_free, elapsed))
            .or_else(|| self.strays(config, moved, told, elapsed))
    }

    /// Detects motion that has left the range between standstill, the set point and the slowest
    /// drive that follows it: for [`AGAINST_TIME`] if it is against the set point, otherwise for
    /// `brake_answer`.
    fn strays(
        &mut self,
        config: &Config,
        moved: Axis,
        told: f32,
        elapsed: Duration,
    ) -> Option<Found> {
        let before = self.slowest.unwrap_or(moved.value);
        let share = elapsed.as_secs_f32() / (config.machine.drive_answer.as_secs_f32() / 2.0);
        let slowest = before + (told - before) * share.min(1.0);
        self.slowest = Some(slowest);
        let margin = MOVES * moved.standing + MARGIN_SHARE * moved.most;
        let (low, high) = (slowest.min(told).min(0.0), slowest.max(told).max(0.0));
        let limit = if moved.value < 0.0 { low - margin } else { high + margin };
        let is_out = moved.value < low - margin || moved.value > high + margin;
        // Without a set point in its direction, any motion is against it.
        let is_against = is_out && moved.value * told <= 0.0;
        let count = |time: Duration, counts| if counts { time + elapsed } else { Duration::ZERO };
        self.against = count(self.against, is_against);
        self.beyond = count(self.beyond, is_out);
        let why = |cause| Why::new(cause, moved.value * moved.lever, limit * moved.lever);
        if self.against >= AGAINST_TIME {
            return Some(Found::Rolls(why(Cause::Rolling)));
        }
        (self.beyond >= config.manoeuvre.brake_answer).then(|| Found::Over(why(Cause::Overspeed)))
    }

    /// Detects a report of standstill although a set point has moved the machine for its drive's
    /// response time.
    fn pushed(
        &mut self,
        config: &Config,
        moved: Axis,
        told: f32,
        is_free: bool,
        elapsed: Duration,
    ) -> Option<Found> {
        let least = (MOVES * moved.standing).max(MARGIN_SHARE * moved.most);
        let counts = is_free && told.abs() > least && moved.value.abs() < moved.standing;
        self.pushed = if counts { self.pushed + elapsed } else { Duration::ZERO };
        let why = Why::new(Cause::SpeedImplausible, moved.value * moved.lever, told * moved.lever);
        (self.pushed >= config.machine.drive_answer).then_some(Found::Wrong(why))
    }

    /// Detects a value that has fallen faster than the machine can be slowed, for [`FELL_TIME`].
    fn fell(&mut self, moved: Axis, elapsed: Duration) -> Option<Found> {
        let told = moved.value;
        let before = self.possible.unwrap_or(told);
        let rises = told.abs() >= before.abs() && told * before >= 0.0;
        let step = FALLS_SHARE * moved.falls * elapsed.as_secs_f32() + FALLS_SPARE * moved.most;
        let possible = if rises { told } else { told.clamp(before - step, before + step) };
        self.possible = Some(possible);
        let is_below = (possible - told).abs() > FELL_SHARE * moved.most;
        self.fell = if is_below { self.fell + elapsed } else { Duration::ZERO };
        let why = Why::new(Cause::SpeedImplausible, told * moved.lever, possible * moved.lever);
        (self.fell >= FELL_TIME).then_some(Found::Wrong(why))
    }
}

/// Check that a stop slows the machine: in each interval of
/// [`brake_answer`](crate::config::Manoeuvre::brake_answer) it must lose half of what separates it
/// from its set point, or of what the stop's deceleration takes, if that is less.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
struct Slowing {
    counted: Duration,
    /// Value at the start of the interval.
    begun: f32,
}

impl Slowing {
    fn step(
        &mut self,
        config: &Config,
        (is, wanted): (f32, f32),
        deceleration: f32,
        axis: Axis,
        elapsed: Duration,
    ) -> Option<Why> {
        if is <= MOVES * axis.standing {
            *self = Self::default();
            return None;
        }
        if self.counted.is_zero() {
            self.begun = is;
        }
        self.counted += elapsed;
        if self.counted < config.manoeuvre.brake_answer {
            return None;
        }
        let seconds = self.counted.as_secs_f32();
        let asked = (self.begun - wanted).min(deceleration * seconds);
        let lost = self.begun - is;
        *self = Self::default();
        let scale = axis.lever / seconds;
        let why = Why::new(Cause::BrakeDoesNotAnswer, lost * scale, asked * scale);
        (asked > 0.0 && lost < ANSWER_SHARE * asked).then_some(why)
    }
}

/// Share of an axis's maximum by which a sound machine may miss its set point: slip, slope, noise.
const MARGIN_SHARE: f32 = 0.15;
/// Time for which a driven machine must move against its set point to be stopped.
const AGAINST_TIME: Duration = Duration::from_millis(100);
/// Fall of an axis's value from one state to the next that is possible in addition to braking, as a
/// share of the axis's maximum: the noise of a sensor.
const FALLS_SPARE: f32 = 0.01;
/// Deviation from the nearest possible value, as a share of an axis's maximum, that counts as a
/// fault after [`FELL_TIME`].
const FELL_SHARE: f32 = 0.3;
