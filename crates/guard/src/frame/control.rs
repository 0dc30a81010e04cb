use tautline_units::Instant;

use super::bytes::{Reader, Writer, flag};
use super::error::Error;
use super::layout;
use super::payload::Frame;
use crate::description::ACTIONS_MAX;
use crate::{Actions, Axes, Controls, Gear, Mode, Request, Twist};

/// Controls from the guard to the machine, sent every step.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Control {
    /// Time of sending, by the guard's clock.
    pub source: Instant,
    /// Current mode, for display at the machine.
    pub mode: Mode,
    /// Set points of the actuators.
    pub controls: Controls,
    /// Newest request for an action, until it is answered; `None` without one.
    pub request: Option<Request>,
}

impl Frame for Control {
    const DATA_ID: u32 = layout::Control::DATA_ID;
    const BYTES: usize = layout::Control::BYTES;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.source
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let raw = layout::Control {
            mode: self.mode.number(),
            controls: to_raw(&self.controls),
            requests_number: self.request.map_or(0, |request| request.number),
            requests_action: self.request.map_or(0, |request| request.action),
        };
        raw.write(writer);
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let raw = layout::Control::read(reader);
        let wrong = |at| Error::Value { at };
        let mode = Mode::from_number(raw.mode).ok_or(wrong(layout::Control::MODE_AT))?;
        let controls = from_raw(&raw.controls, layout::Control::CONTROLS_AT)?;
        let request = match (raw.requests_number, raw.requests_action) {
            (0, 0) => None,
            (number @ 1.., action) if usize::from(action) < ACTIONS_MAX => {
                Some(Request { number, action })
            }
            _ => return Err(wrong(layout::Control::REQUESTS_ACTION_AT)),
        };
        Ok(Self { source, mode, controls, request })
    }
}

/// Returns the numbers of these controls.
pub(super) fn to_raw(controls: &Controls) -> layout::ControlsBlock {
    layout::ControlsBlock {
        steering: controls.steering,
        throttle: controls.throttle,
        brake: controls.brake,
        gear: controls.gear.number(),
        parking_brake: controls.parking_brake.into(),
        forward: controls.twist.forward,
        sideways: controls.twist.sideways,
        yaw_rate: controls.twist.yaw_rate,
        axes: controls.axes.0,
        actions: controls.actions.bits(),
    }
}

/// Returns the controls of numbers that begin at offset `at`, limited to valid ranges; an error
/// with the field's offset for an unknown gear or a parking brake other than 0 or 1.
pub(super) fn from_raw(raw: &layout::ControlsBlock, at: usize) -> Result<Controls, Error> {
    let gear_at = at + layout::ControlsBlock::GEAR_AT;
    let controls = Controls {
        steering: raw.steering,
        throttle: raw.throttle,
        brake: raw.brake,
        gear: Gear::from_number(raw.gear).ok_or(Error::Value { at: gear_at })?,
        parking_brake: flag(raw.parking_brake, at + layout::ControlsBlock::PARKING_BRAKE_AT)?,
        twist: Twist { forward: raw.forward, sideways: raw.sideways, yaw_rate: raw.yaw_rate },
        axes: Axes(raw.axes),
        actions: Actions::from_bits(raw.actions),
    };
    Ok(controls.sane())
}
