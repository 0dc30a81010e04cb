//! Template of a machine behind Tautline's guard: put your actuators into `apply`, your sensors
//! into `state`.
//!
//! Usage: `machine ADDRESS`, where `tautline guard --machine ADDRESS` listens. A package of its own
//! depends on `tautline-guard`, `tautline-net`, `tautline-port` and `tautline-units`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use tautline_guard::{Controls, Fault, Gear, Machine, MachineState, Notice, Notices};
use tautline_net::clock::Clock;
use tautline_net::datagram::Address;
use tautline_port::serve;
use tautline_units::Instant;

/// A cart that drives straight ahead.
#[derive(Default)]
struct Cart {
    /// Speed in m/s.
    speed: f32,
    controls: Controls,
    moved_until: Option<Instant>,
}

impl Machine for Cart {
    fn period(&self) -> Duration {
        Duration::from_millis(10)
    }

    fn state(&mut self, now: Instant) -> MachineState {
        let passed = self.moved_until.replace(now).map_or(Duration::ZERO, |until| now.since(until));
        let Controls { throttle, brake, gear, parking_brake, steering, .. } = self.controls;
        let seconds = passed.as_secs_f32();
        let pull = if gear == Gear::Reverse { -4.2 } else { 4.2 } * throttle * seconds;
        let held = (8.0 * brake + if parking_brake { 3.0 } else { 0.0 } + 0.2) * seconds;
        let pulled = self.speed + pull;
        self.speed = pulled.signum() * (pulled.abs() - held).max(0.0);
        MachineState {
            measured_at: now,
            speed: self.speed,
            steering_angle: 0.52 * steering,
            gear,
            notices: Notices::NONE.with_if(Notice::ParkingBrake, parking_brake),
            ..MachineState::default()
        }
    }

    fn apply(&mut self, controls: &Controls, _now: Instant) -> Result<(), Fault> {
        self.controls = controls.sane();
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1).context("usage: machine ADDRESS")?;
    let guard: Address = address.parse().context("ADDRESS is a path, or host:port for UDP")?;
    // Set on a request to end: `serve` first brings the machine to a standstill, see
    // cli/src/car.rs.
    let stop = AtomicBool::new(false);
    let cart = Cart { controls: Controls { brake: 1.0, ..Controls::default() }, ..Cart::default() };
    serve(cart, &guard, serve::Settings::default(), Clock::start(), &stop);
    Ok(())
}
