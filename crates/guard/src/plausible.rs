//! How fast a machine can be, whatever it says.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::config::Config;
use crate::hill::slope;
use crate::manoeuvre::STANDING_SPEED;
use crate::{Cause, Controls, MachineState, Notice, Why};

/// Watch over the speed that a machine tells: what it is, and when it cannot be right.
///
/// Three rules, each by the machine's own characteristics: a speed falls no faster than the brake
/// takes it on the steepest slope; throttle moves a machine that nothing holds; and a speed changes
/// by what the machine's acceleration says, if it tells one.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct SpeedWatch {
    /// The speed that counts, m/s, and when it was told: what the machine says, or the least that it
    /// can have come down to.
    credible: Option<(f32, Instant)>,
    /// For how long the machine has told a speed that it cannot have come down to.
    fell: Duration,
    /// For how long throttle has pushed a machine that stands harder than its steepest slope pulls.
    pushed: Duration,
    /// For how long throttle has pushed a machine that stands at all.
    driven: Duration,
    /// For how long the machine has stood on its brake.
    held: Duration,
    /// Acceleration that the machine told while it stood on its brake, m/s²: gravity's share on a
    /// slope, until it moves.
    at_rest: Option<f32>,
    /// Change of speed by acceleration beyond the told one, m/s, fading within a second: while it
    /// moves, and while it stands.
    beyond: [f32; 2],
    fault: Option<Fault>,
}

/// A speed that cannot be right.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Fault {
    /// What was told, and what is possible.
    pub(crate) why: Why,
    /// The most speed that the machine may have, m/s.
    pub(crate) most: f32,
}

/// What the guard does with the machine meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Watched {
    /// It is held: nothing is concluded from its speed.
    No,
    /// It is armed, or brought to a standstill.
    Still,
    /// A person drives it.
    Driven,
}

impl SpeedWatch {
    /// Takes a machine's state, if it was heard, and what it was told a step ago.
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
        // What came to pass while the machine was silent is not known.
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

    /// Returns the speed that counts, m/s, while it is known.
    pub(crate) fn speed(&self) -> Option<f32> {
        self.credible.filter(|_| self.fault.is_none()).map(|(speed, _)| speed)
    }

    /// Returns what is wrong with the speed that is told.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Believes what the machine says from now on: it has been braked for long enough to stand.
    pub(crate) fn believe(&mut self) {
        *self = Self::default();
    }

    fn since(&self, now: Instant) -> Duration {
        self.credible.map_or(Duration::ZERO, |(_, at)| now.since(at))
    }

    /// Learns what a machine that stands on its brake tells as its acceleration.
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
            // More than gravity and an error is no acceleration of a machine that stands.
            let felt = |along: &f32| along.abs() <= slope(config) + BIAS;
            self.at_rest = machine.told.acceleration_along.filter(felt).map(|along| {
                let kept = self.at_rest.unwrap_or(along);
                kept + (along - kept) * (elapsed.as_secs_f32() / AT_REST.as_secs_f32()).min(1.0)
            });
        }
    }

    /// Follows how far the told acceleration leads away from the told speed; returns by how much
    /// while the machine moves, and while it stands.
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

    /// Finds a speed that fell faster than the brake can take it.
    fn fell(&mut self, told: f32, credible: f32, elapsed: Duration) -> Option<Fault> {
        let is_below = (credible - told).abs() > FELL_LEAST;
        self.fell = if is_below { self.fell + elapsed } else { Duration::ZERO };
        let why = Why::new(Cause::SpeedImplausible, told, credible);
        (self.fell >= FELL_TIME).then_some(Fault { why, most: credible.abs() })
    }

    /// Finds a machine that throttle pushes and that says it stands.
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

    /// Finds a speed that does not change as the machine's acceleration says.
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

/// Returns the speed nearest to `told` that a machine can have come down to from `before`.
///
/// One that rises is believed at once: a machine that says too much is slowed.
fn credible(config: &Config, before: f32, told: f32, passed: Duration) -> f32 {
    let rises = told.abs() >= before.abs() && told * before >= 0.0;
    if rises {
        return told;
    }
    let most = FALLS_SHARE * config.machine.deceleration_max + slope(config);
    let step = most * passed.as_secs_f32() + FALLS_SPARE;
    told.clamp(before - step, before + step)
}

/// Share of the brake's deceleration by which a speed may fall: tyres on dry asphalt hold a quarter
/// more than a maker promises.
const FALLS_SHARE: f32 = 1.25;
/// m/s by which it may fall beyond that from one state to the next: what a sensor's noise is.
const FALLS_SPARE: f32 = 0.02;
/// m/s below the least possible speed that count ..
const FELL_LEAST: f32 = 0.75;
/// .. after so long: a sensor that is read ten times a second falls in steps of a tenth of a second.
const FELL_TIME: Duration = Duration::from_millis(50);
/// m/s² with which a drive overcomes rolling resistance and unevenness, and the share of a weak
/// drive's that stands for it.
const BREAKS_AWAY: f32 = 0.5;
const BREAKS_AWAY_SHARE: f32 = 0.2;
/// Share of a drive's acceleration that a slope takes at most of one that is used there: a machine
/// does not stay where it cannot go up.
const CLIMBS_SHARE: f32 = 0.7;
/// Time for which throttle may push a machine that stands, on a slope that it does not climb or
/// against a kerb.
const BLOCKED: Duration = Duration::from_secs(5);
/// Share of the holding brake that counts as held.
const HELD_SHARE: f32 = 0.9;
/// Time for which a machine must have stood on its brake before its acceleration counts as that at
/// rest.
const AT_REST: Duration = Duration::from_millis(500);
/// Seconds in which what acceleration adds up to fades.
const FADES_SECONDS: f32 = 1.0;
/// m/s² that a sensor of acceleration may be wrong by.
const BIAS: f32 = 0.5;
/// m/s that count as motion.
const MOVED_LEAST: f32 = 0.5;
