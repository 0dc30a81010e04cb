use tautline_units::Instant;

use super::bytes::{Reader, Writer};
use super::error::Error;
use super::payload::{Frame, PAYLOAD_AT};
use crate::{Controls, Gear, Mode, Twist};

/// Controls from the guard to the machine, sent every step.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Control {
    /// Time of sending, by the guard's clock.
    pub source: Instant,
    /// Current mode, for display at the machine.
    pub mode: Mode,
    /// Set points of the actuators.
    pub controls: Controls,
}

/// ```text
/// 20  mode           u8
/// 21  controls       30 bytes
/// ```
impl Frame for Control {
    /// "TGC2".
    const DATA_ID: u32 = 0x5447_4332;
    const BYTES: usize = PAYLOAD_AT + 1 + CONTROLS_BYTES;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.source
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(self.mode.number());
        write_controls(&self.controls, writer);
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mode = reader.choice(Mode::from_number)?;
        Ok(Self { source, mode, controls: read_controls(reader)? })
    }
}

/// Writes the controls:
///
/// ```text
///  0  steering       f32  share, -1 (right) to 1 (left)
///  4  throttle       f32  share, 0 to 1
///  8  brake          f32  share, 0 to 1
/// 12  gear           u8   0 drive, 1 reverse
/// 13  parking brake  u8   0 released, 1 holds
/// 14  signals        u32  a bit each: horn, lights, high beam, left, right, hazard
/// 18  forward        f32  m/s, of a differential or omni machine, as what follows
/// 22  sideways       f32  m/s, left positive
/// 26  yaw rate       f32  rad/s, counterclockwise positive
/// ```
pub(super) fn write_controls(controls: &Controls, writer: &mut Writer<'_>) {
    writer.f32(controls.steering);
    writer.f32(controls.throttle);
    writer.f32(controls.brake);
    writer.u8(controls.gear.number());
    writer.u8(controls.parking_brake.into());
    writer.set(controls.signals);
    writer.f32(controls.twist.forward);
    writer.f32(controls.twist.sideways);
    writer.f32(controls.twist.yaw_rate);
}

/// Reads the controls that [`write_controls`] wrote, limited to valid ranges.
pub(super) fn read_controls(reader: &mut Reader<'_>) -> Result<Controls, Error> {
    let controls = Controls {
        steering: reader.f32(),
        throttle: reader.f32(),
        brake: reader.f32(),
        gear: reader.choice(Gear::from_number)?,
        parking_brake: reader.bool()?,
        signals: reader.set()?,
        twist: Twist { forward: reader.f32(), sideways: reader.f32(), yaw_rate: reader.f32() },
    };
    Ok(controls.sane())
}

/// Size in bytes of the controls that [`write_controls`] writes.
pub(super) const CONTROLS_BYTES: usize = 30;
