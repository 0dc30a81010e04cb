//! Plausibility of a machine's reported speed.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::config::Config;
use crate::hill::slope;
use crate::manoeuvre::STANDING_SPEED;
use crate::{Cause, Controls, MachineState, Notice, Why};

/// Check of the speed that a machine reports: the credible speed, and implausible reports.
///
/// Three rules use the machine's own characteristics. A speed falls no faster than the brake allows
/// on the steepest slope. Throttle moves a machine that nothing holds. A speed changes in agreement
/// with the machine's acceleration, if the machine reports one.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct SpeedWatch {
    /// Credible speed in m/s and the time of the report; `None` before the first report. It is the
    /// reported speed, or the nearest to it that was possible.
    credible: Option<(f32, Instant)>,
    /// Time for which the reported speed has differed from the credible one by more than
    /// [`FELL_LEAST`].
    fell: Duration,
    /// Time for which throttle has exceeded the pull of the steepest slope at standstill.
    pushed: Duration,
    /// Time for which throttle has been applied at standstill.
    driven: Duration,
    /// Time for which the machine has been stationary on its brake.
    held: Duration,
    /// Mean acceleration reported at standstill on the brake, m/s²: gravity's share on a slope.
    /// `None` once the machine moves, until it is known again.
    at_rest: Option<f32>,
    /// Integrated acceleration beyond the change of the reported speed, m/s, fading within a
    /// second: in motion, and at standstill.
    beyond: [f32; 2],
    /// First fault detected; kept until the machine is held or its reports are accepted again.
    fault: Option<Fault>,
}

/// An implausible speed.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Fault {
    /// Cause, with the reported and the possible speed.
    pub(crate) why: Why,
    /// Maximum actual speed of the machine when the fault was detected, m/s.
    pub(crate) most: f32,
}

/// State of the machine that selects the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Watched {
    /// Held: its speed is not checked, and a fault is cleared.
    No,
    /// Armed, or in a manoeuvre: checked, but not for throttle without motion.
    Still,
    /// Driven by a person: fully checked.
    Driven,
}

impl SpeedWatch {
    /// Takes the machine's newest state, `None` once it timed out, and the controls sent a step
    /// ago.
    ///
    /// Without a finite speed, nothing is detected, and the credible speed stays.
    pub(crate) fn step(
        &mut self,
        config: &Config,
        machine: Option<&MachineState>,
        told: &Controls,
        watched: Watched,
        elapsed: Duration,
        now: Instant,
    ) {
        if watched == Watched::No {
            self.fault = None;
            self.fell = Duration::ZERO;
        }
        let Some(machine) = machine.filter(|machine| machine.speed.is_finite()) else {
            (self.pushed, self.driven, self.held) = Default::default();
            self.beyond = [0.0; 2];
            return;
        };
        let before = self.credible.map_or(machine.speed, |(speed, _)| speed);
        let passed = self.since(now);
        let falls = credible(config, before, machine.speed, passed);
        self.credible = Some((falls, now));
        let is_ours = !machine.is_local() && watched != Watched::No;
        self.learn(config, machine, told, elapsed);
        // The motion during the machine's silence is unknown.
        let before = if passed > elapsed { machine.speed } else { before };
        let accelerated = self.integrate(machine, before, elapsed);
        if !is_ours || self.fault.is_some() {
            (self.pushed, self.driven) = Default::default();
            return;
        }
        let fell = self.fell(machine.speed, falls, elapsed);
        let pushed = self.pushed(config, machine, told, watched, elapsed);
        let moved = self.moved(config, machine.speed, accelerated);
        self.fault = fell.or(moved).or(pushed);
    }

    /// Returns the credible speed, m/s; `None` before the first report and while there is a fault.
    pub(crate) fn speed(&self) -> Option<f32> {
        self.credible.filter(|_| self.fault.is_none()).map(|(speed, _)| speed)
    }

    /// Returns the fault of the reported speed, if there is one.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Clears everything, so that the machine's next report is accepted: the machine has braked for
    /// long enough to be stationary.
    pub(crate) fn believe(&mut self) {
        *self = Self::default();
    }

    fn since(&self, now: Instant) -> Duration {
        self.credible.map_or(Duration::ZERO, |(_, at)| now.since(at))
    }

    /// Updates the mean acceleration that a machine reports while its brake holds it at standstill;
    /// it is unknown once the machine moves.
    fn learn(
        &mut self,
        config: &Config,
        machine: &MachineState,
        told: &Controls,
        elapsed: Duration,
    ) {
        let stands = machine.speed.abs() < STANDING_SPEED;
        let is_held = stands && told.brake >= HELD_SHARE * config.manoeuvre.hold_brake;
        self.held = if is_held { self.held + elapsed } else { Duration::ZERO };
        if !stands {
            self.at_rest = None;
        }
        if self.held >= AT_REST {
            // Values beyond gravity plus the sensor's error are no acceleration of a stationary
            // machine.
            let felt = |along: &f32| along.abs() <= slope(config) + BIAS;
            self.at_rest = machine.told.acceleration_along.filter(felt).map(|along| {
                let kept = self.at_rest.unwrap_or(along);
                kept + (along - kept) * (elapsed.as_secs_f32() / AT_REST.as_secs_f32()).min(1.0)
            });
        }
    }

    /// Integrates the difference between reported acceleration and change of reported speed.
    ///
    /// Returns the result in motion, and that at standstill, both in m/s; each is 0 in the other
    /// state, and both are without a reported acceleration. `before` is the credible speed of the
    /// previous step.
    fn integrate(&mut self, machine: &MachineState, before: f32, elapsed: Duration) -> [f32; 2] {
        let Some(along) = machine.told.acceleration_along else {
            self.beyond = [0.0; 2];
            return self.beyond;
        };
        let seconds = elapsed.as_secs_f32();
        let stands = machine.speed.abs() < STANDING_SPEED && before.abs() < STANDING_SPEED;
        let gained = machine.speed - before;
        let fades = (1.0 - seconds / FADES_SECONDS).max(0.0);
        let [moving, standing] = self.beyond;
        let moving = if stands { 0.0 } else { moving * fades + along * seconds - gained };
        let standing = match self.at_rest {
            Some(at_rest) if stands => standing * fades + (along - at_rest) * seconds,
            Some(_) | None => 0.0,
        };
        self.beyond = [moving, standing];
        self.beyond
    }

    /// Detects a reported speed that has fallen faster than the brake allows, for [`FELL_TIME`].
    fn fell(&mut self, told: f32, credible: f32, elapsed: Duration) -> Option<Fault> {
        let is_below = (credible - told).abs() > FELL_LEAST;
        self.fell = if is_below { self.fell + elapsed } else { Duration::ZERO };
        let why = Why::new(Cause::SpeedImplausible, told, credible);
        (self.fell >= FELL_TIME).then_some(Fault { why, most: credible.abs() })
    }

    /// Detects a driven machine that reports standstill although throttle has pushed it for the
    /// drive's response time, or less throttle for [`BLOCKED`].
    fn pushed(
        &mut self,
        config: &Config,
        machine: &MachineState,
        told: &Controls,
        watched: Watched,
        elapsed: Duration,
    ) -> Option<Fault> {
        let full = config.machine.acceleration_max;
        let pull = told.throttle * full - told.brake * config.machine.deceleration_max;
        let stands = machine.speed.abs() < STANDING_SPEED;
        let is_free = !machine.notices.contains(Notice::ParkingBrake);
        let breaks_away = BREAKS_AWAY.min(BREAKS_AWAY_SHARE * full);
        let steepest = slope(config).min(CLIMBS_SHARE * full);
        let counts = watched == Watched::Driven && stands && is_free;
        let count = |time: Duration, least: f32| {
            if counts && pull >= least { time + elapsed } else { Duration::ZERO }
        };
        self.pushed = count(self.pushed, steepest + breaks_away);
        self.driven = count(self.driven, breaks_away);
        let answer = config.machine.drive_answer;
        let took = match (self.pushed >= answer, self.driven >= BLOCKED) {
            (true, _) => self.pushed,
            (false, true) => self.driven,
            (false, false) => return None,
        };
        let (seconds, slope) = (took.as_secs_f32(), slope(config));
        let least = ((pull - steepest) * seconds).max(breaks_away * seconds);
        let why = Why::new(Cause::SpeedImplausible, machine.speed, least);
        let most = ((full + slope) * seconds).min(config.envelope.speed_max);
        Some(Fault { why, most })
    }

    /// Detects a reported speed `told` that contradicts the machine's acceleration, integrated in
    /// motion and at standstill.
    fn moved(&self, config: &Config, told: f32, [moving, standing]: [f32; 2]) -> Option<Fault> {
        let tolerance = (slope(config) + BIAS) * FADES_SECONDS + MOVED_LEAST;
        let beyond = match (moving.abs() > tolerance, standing.abs() > MOVED_LEAST) {
            (true, _) => moving,
            (false, true) => standing,
            (false, false) => return None,
        };
        let why = Why::new(Cause::SpeedImplausible, told, told + beyond);
        let most = (told.abs() + 2.0 * beyond.abs()).min(config.envelope.speed_max);
        Some(Fault { why, most })
    }
}

/// Returns the speed nearest to `told`, m/s, that is possible if the speed was `before` at a time
/// `passed` ago.
///
/// A rising speed is always possible: a machine that reports too much is only slowed.
fn credible(config: &Config, before: f32, told: f32, passed: Duration) -> f32 {
    let rises = told.abs() >= before.abs() && told * before >= 0.0;
    if rises {
        return told;
    }
    let most = FALLS_SHARE * config.machine.deceleration_max + slope(config);
    let step = most * passed.as_secs_f32() + FALLS_SPARE;
    told.clamp(before - step, before + step)
}

/// Factor of the brake's deceleration by which a speed may fall: tyres on dry asphalt hold a
/// quarter more than a maker promises.
pub(crate) const FALLS_SHARE: f32 = 1.25;
/// Fall of the speed in m/s from one state to the next that is possible in addition to braking: the
/// noise of a sensor.
const FALLS_SPARE: f32 = 0.02;
/// Deviation in m/s from the nearest possible speed that counts as a fault after [`FELL_TIME`].
const FELL_LEAST: f32 = 0.75;
/// Time of a deviation after which it is a fault: a sensor read ten times a
/// second falls in steps of a tenth of a second.
pub(crate) const FELL_TIME: Duration = Duration::from_millis(50);
/// Acceleration in m/s² with which a drive overcomes rolling resistance and unevenness.
const BREAKS_AWAY: f32 = 0.5;
/// Maximum of [`BREAKS_AWAY`] as a share of the machine's acceleration at full throttle.
const BREAKS_AWAY_SHARE: f32 = 0.2;
/// Maximum share of the acceleration at full throttle that a slope is assumed to take: a machine is
/// not used where it cannot drive up.
const CLIMBS_SHARE: f32 = 0.7;
/// Maximum time for which throttle may push a machine that stays stationary, on a slope too steep
/// for it or against a kerb; then its speed is implausible.
const BLOCKED: Duration = Duration::from_secs(5);
/// Share of `hold_brake` from which a stationary machine counts as held by its brake.
const HELD_SHARE: f32 = 0.9;
/// Time at standstill on the brake after which the reported acceleration counts as that at rest.
const AT_REST: Duration = Duration::from_millis(500);
/// Time constant in seconds with which the integrated acceleration fades.
const FADES_SECONDS: f32 = 1.0;
/// Assumed maximum error of an acceleration sensor, m/s².
const BIAS: f32 = 0.5;
/// Integrated acceleration in m/s that counts as motion at standstill; in motion it is part of the
/// tolerance.
const MOVED_LEAST: f32 = 0.5;
