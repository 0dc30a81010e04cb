use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{Config, GRAVITY};
use crate::manoeuvre::STANDING_SPEED;
use crate::{Cause, Controls, Gear, Why};

/// Service brake that keeps a driven machine from rolling while its throttle does not move it.
///
/// At standstill without throttle it holds fully. Throttle releases as much of it as the drive takes
/// over on the steepest slope configured; the rest goes while the machine stands under throttle, and
/// comes back if the machine rolls back.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct HillHold {
    /// Share of the brake that held in the last step.
    brake: f32,
    /// Deceleration released at standstill under throttle beyond what the drive takes over, m/s².
    released: f32,
    /// Throttle that counts as kept, and for how long it has not risen beyond it.
    kept: (f32, Duration),
    /// Throttle under which the machine rolled back: up to it nothing more is released.
    short: f32,
}

impl HillHold {
    /// Returns the hold of a machine that is armed: the brake is on.
    pub(crate) fn of_armed(config: &Config) -> Self {
        Self { brake: config.manoeuvre.hold_brake, ..Self::default() }
    }

    /// Returns the least share of the brake for a machine that drives at `speed`, m/s, and is told
    /// `told`.
    pub(crate) fn step(
        &mut self,
        config: &Config,
        told: &Controls,
        speed: f32,
        elapsed: Duration,
    ) -> f32 {
        let full = config.machine.deceleration_max;
        let hold = config.manoeuvre.hold_brake;
        let seconds = elapsed.as_secs_f32();
        let is_pressed = told.throttle > config.presence.throttle_dead_zone;
        let along = along(speed, told.gear);
        let target = if along <= -STANDING_SPEED {
            self.released = 0.0;
            self.short = if is_pressed { self.short.max(told.throttle) } else { 0.0 };
            creeping(config) / full
        } else if !is_pressed {
            (self.released, self.short) = (0.0, 0.0);
            match along {
                along if along < STANDING_SPEED => hold,
                along if along < ROLLING_SPEED => creeping(config) / full,
                _ => 0.0,
            }
        } else if along < STANDING_SPEED {
            let is_kept = self.is_kept(told.throttle, elapsed);
            if is_kept && told.throttle > self.short + THROTTLE_STEP {
                self.released += RELEASE_RATE * seconds;
            }
            let driven = told.throttle * config.machine.acceleration_max;
            let needed = SLOPE_MARGIN * slope(config) + SPARE - driven;
            (needed - self.released).max(0.0) / full
        } else {
            0.0
        };
        let falling = self.brake - seconds / RELEASE_SECONDS;
        let is_fast = along >= ROLLING_SPEED;
        self.brake = if is_fast { 0.0 } else { target.max(falling).min(hold) };
        self.brake
    }

    /// Returns whether the throttle has not risen for some time.
    fn is_kept(&mut self, throttle: f32, elapsed: Duration) -> bool {
        let (kept, time) = self.kept;
        let rises = throttle > kept + THROTTLE_STEP || throttle < kept - THROTTLE_STEP;
        self.kept = if rises { (throttle, Duration::ZERO) } else { (kept, time + elapsed) };
        self.kept.1 >= KEPT
    }
}

/// Rolling against the gear of a driven machine.
///
/// A gear may be changed while the machine still moves the other way: the limit begins at that speed
/// and falls to [`ROLLING_SPEED`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct RollBack {
    gear: Gear,
    /// m/s.
    limit: f32,
}

impl Default for RollBack {
    fn default() -> Self {
        Self { gear: Gear::Drive, limit: ROLLING_SPEED }
    }
}

impl RollBack {
    /// Takes the gear that the machine was told and its speed, m/s; returns what is wrong.
    pub(crate) fn step(&mut self, gear: Gear, speed: f32, elapsed: Duration) -> Option<Why> {
        let against = -along(speed, gear);
        self.limit = if gear == self.gear {
            (self.limit - LIMIT_FALLS * elapsed.as_secs_f32()).max(ROLLING_SPEED)
        } else {
            (against + LIMIT_SPARE).max(ROLLING_SPEED)
        };
        self.gear = gear;
        (against > self.limit).then_some(Why::new(Cause::Rolling, speed, self.limit))
    }
}

/// Returns a speed as the gear sees it: positive where the throttle drives to.
fn along(speed: f32, gear: Gear) -> f32 {
    match gear {
        Gear::Drive => speed,
        Gear::Reverse => -speed,
    }
}

/// Returns what the steepest slope pulls, m/s².
pub(crate) fn slope(config: &Config) -> f32 {
    config.manoeuvre.slope_max * GRAVITY
}

/// Returns the braking that stops a machine that creeps down its steepest slope, m/s².
fn creeping(config: &Config) -> f32 {
    slope(config) + CREEP_SLOWS
}

/// m/s at which a machine rolls that is held, or that is driven the other way.
pub(crate) const ROLLING_SPEED: f32 = 0.3;
/// m/s² by which a creeping machine is slowed on its steepest slope.
const CREEP_SLOWS: f32 = 1.0;
/// Share of the steepest slope that is held: a drive answers later than a brake, by some 50 ms.
const SLOPE_MARGIN: f32 = 1.2;
/// m/s² beyond that.
const SPARE: f32 = 0.3;
/// m/s³ by which the brake goes while the machine stands under throttle: one that rolls back then does so by less
/// than two centimetres before it is held again.
const RELEASE_RATE: f32 = 2.0;
/// Time without more throttle after which more is released than the drive takes over.
const KEPT: Duration = Duration::from_millis(400);
/// Share of throttle that counts as more.
const THROTTLE_STEP: f32 = 0.03;
/// Seconds in which a full brake is released.
const RELEASE_SECONDS: f32 = 0.4;
/// m/s by which a machine may be faster than it was when its gear was changed.
const LIMIT_SPARE: f32 = 0.1;
/// m/s² by which it must slow down from then on: half of what the brake takes on the steepest slope.
const LIMIT_FALLS: f32 = 0.5;
