use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{Config, GRAVITY};
use crate::manoeuvre::STANDING_SPEED;
use crate::{Cause, Controls, Gear, Why};

/// Service brake that keeps a driven machine from rolling while its throttle does not move it.
///
/// At standstill without throttle it holds fully. Throttle releases the part that the drive takes
/// over on the steepest slope configured. The rest is released while the machine stays stationary
/// under throttle, and reapplied if the machine rolls back.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct HillHold {
    /// Share of the brake that the last step returned.
    brake: f32,
    /// Deceleration released at standstill under throttle in addition to the drive's share, m/s².
    released: f32,
    /// Reference throttle, and the time for which throttle has stayed near it.
    kept: (f32, Duration),
    /// Greatest share of throttle under which the machine rolled back; 0 once throttle is released.
    /// Up to it nothing more is released.
    short: f32,
}

impl HillHold {
    /// Creates the hold of a machine that has just been armed: the brake is applied.
    pub(crate) fn of_armed(config: &Config) -> Self {
        Self { brake: config.manoeuvre.hold_brake, ..Self::default() }
    }

    /// Advances by one step, and returns the minimum share of the brake for a machine driven at
    /// `speed`, m/s, with the controls `told`.
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

    /// Takes the throttle of this step; returns whether it has been steady for [`KEPT`].
    fn is_kept(&mut self, throttle: f32, elapsed: Duration) -> bool {
        let (kept, time) = self.kept;
        let rises = throttle > kept + THROTTLE_STEP || throttle < kept - THROTTLE_STEP;
        self.kept = if rises { (throttle, Duration::ZERO) } else { (kept, time + elapsed) };
        self.kept.1 >= KEPT
    }
}

/// Rolling of a driven machine against its gear.
///
/// A gear may be changed while the machine still moves in the other direction: the limit begins at
/// that speed and falls to [`ROLLING_SPEED`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct RollBack {
    gear: Gear,
    /// Speed against the gear above which rolling is a fault, m/s.
    limit: f32,
}

impl Default for RollBack {
    fn default() -> Self {
        Self { gear: Gear::Drive, limit: ROLLING_SPEED }
    }
}

impl RollBack {
    /// Takes the commanded gear and the machine's speed, m/s; returns the fault, if the machine
    /// rolls against the gear faster than the limit.
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

/// Returns a speed relative to the gear: positive in the direction of its throttle.
fn along(speed: f32, gear: Gear) -> f32 {
    match gear {
        Gear::Drive => speed,
        Gear::Reverse => -speed,
    }
}

/// Returns the acceleration on the steepest slope, m/s².
pub(crate) fn slope(config: &Config) -> f32 {
    config.manoeuvre.slope_max * GRAVITY
}

/// Returns the braking that slows a machine creeping down its steepest slope, m/s².
fn creeping(config: &Config) -> f32 {
    slope(config) + CREEP_SLOWS
}

/// Speed in m/s above which a machine that is held counts as rolling, or a driven one that moves
/// against its gear.
pub(crate) const ROLLING_SPEED: f32 = 0.3;
/// Deceleration in m/s² that the brake gives a machine that creeps down its steepest slope.
const CREEP_SLOWS: f32 = 1.0;
/// Factor of the steepest slope's pull that brake and drive together hold at standstill under
/// throttle: a drive responds about 50 ms later than a brake.
const SLOPE_MARGIN: f32 = 1.2;
/// Braking in m/s² that brake and drive hold beyond [`SLOPE_MARGIN`] times the steepest slope's
/// pull.
const SPARE: f32 = 0.3;
/// Rate in m/s³ at which the brake is released while the machine stays stationary under throttle. A
/// machine that rolls back then does so by less than two centimetres before it is held again.
const RELEASE_RATE: f32 = 2.0;
/// Time of steady throttle at standstill after which the brake is released further than the drive's
/// pull replaces it, at [`RELEASE_RATE`].
const KEPT: Duration = Duration::from_millis(400);
/// Change of the share of throttle up to which throttle counts as steady.
const THROTTLE_STEP: f32 = 0.03;
/// Least time in seconds for the release of a full brake; from [`ROLLING_SPEED`] on the brake is
/// released at once.
const RELEASE_SECONDS: f32 = 0.4;
/// Margin in m/s of the limit for rolling against a new gear above the machine's speed at the
/// change of gear.
const LIMIT_SPARE: f32 = 0.1;
/// Rate in m/s² at which the limit for rolling against a new gear falls, down to [`ROLLING_SPEED`]:
/// half of [`CREEP_SLOWS`].
const LIMIT_FALLS: f32 = 0.5;
