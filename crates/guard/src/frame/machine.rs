use tautline_units::Instant;

use super::bytes::{Reader, Writer};
use super::error::Error;
use super::payload::{Frame, PAYLOAD_AT, TRAILING_BYTES};
use crate::twist::Twist;
use crate::{Gear, MachineState, Place, Position, Reported};

/// ```text
/// 20  machine        62 bytes; the source time is when it was measured
/// 82  told           f32 each; NaN: not known
/// ```
impl Frame for MachineState {
    /// "TGM2".
    const DATA_ID: u32 = 0x5447_4D32;
    const BYTES: usize = Self::BYTES_LEAST + REPORTED_BYTES;
    const BYTES_LEAST: usize = PAYLOAD_AT + MACHINE_BYTES;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.measured_at
    }

    fn write(&self, writer: &mut Writer<'_>) {
        write_machine(self, writer);
        write_reported(&self.told, writer);
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let machine = read_machine(source, reader)?;
        Ok(Self { told: read_reported(reader), ..machine })
    }
}

/// Writes the machine's state without its optional numbers:
///
/// ```text
///  0  speed           f32  m/s along the machine; NaN: not known
///  4  sideways speed  f32  m/s, left positive; NaN: not known
///  8  yaw rate        f32  rad/s, counterclockwise positive; NaN: not known
/// 12  steering angle  f32  rad at the road wheels, left positive; NaN: not known
/// 16  gear            u8   0 drive, 1 reverse
/// 17  notices         u32  a bit each: parking brake, local stop, local control, guard silent
/// 21  faults          u32  a bit each: unreachable, refused, emergency button, steering, drive,
///                          brake, gear, speed, other
/// 25  signals         u32  as in controls
/// 29  x, y, heading   f32  m east, m north, rad; NaN as x: not known
/// 41  latitude        f64  degrees, WGS 84; NaN: not known
/// 49  longitude       f64  degrees
/// 57  height          f32  m above the ellipsoid; NaN: not known
/// 61  reserved        u8   0
/// ```
pub(super) fn write_machine(machine: &MachineState, writer: &mut Writer<'_>) {
    writer.f32(machine.speed);
    writer.f32(machine.sideways_speed);
    writer.f32(machine.yaw_rate);
    writer.f32(machine.steering_angle);
    writer.u8(machine.gear.number());
    writer.set(machine.notices);
    writer.set(machine.faults);
    writer.set(machine.signals);
    let unknown = Position { x: f32::NAN, ..Position::default() };
    let position = machine.position.unwrap_or(unknown);
    writer.f32(position.x);
    writer.f32(position.y);
    writer.f32(position.heading);
    let unknown = Place { latitude: f64::NAN, ..Place::default() };
    let place = machine.place.unwrap_or(unknown);
    writer.f64(place.latitude);
    writer.f64(place.longitude);
    writer.f32(place.height);
    writer.u8(0);
}

/// Reads the state that [`write_machine`] wrote, without its optional numbers. Values out of range
/// become unknown.
pub(super) fn read_machine(
    measured_at: Instant,
    reader: &mut Reader<'_>,
) -> Result<MachineState, Error> {
    let speed = reader.f32_within(Twist::SPEED_MOST);
    let sideways_speed = reader.f32_within(Twist::SPEED_MOST);
    let yaw_rate = reader.f32_within(Twist::YAW_RATE_MOST);
    let steering_angle = reader.f32_within(ANGLE_MOST);
    let gear = reader.choice(Gear::from_number)?;
    let (notices, faults, signals) = (reader.set()?, reader.set()?, reader.set()?);
    let position = Position {
        x: reader.f32_within(DISTANCE_MOST),
        y: reader.f32_within(DISTANCE_MOST),
        heading: reader.f32_within(HEADING_MOST),
    };
    let place = Place {
        latitude: reader.f64_within(90.0),
        longitude: reader.f64_within(180.0),
        height: reader.f32_within(HEIGHT_MOST),
    };
    let is_known = |value: f32| value.is_finite();
    let position =
        [position.x, position.y, position.heading].into_iter().all(is_known).then_some(position);
    let place = (place.latitude.is_finite() && place.longitude.is_finite()).then_some(place);
    reader.choice(|byte| (byte == 0).then_some(()))?;
    Ok(MachineState {
        measured_at,
        speed,
        sideways_speed,
        yaw_rate,
        steering_angle,
        gear,
        position,
        place,
        faults,
        notices,
        signals,
        told: Reported::default(),
    })
}

/// Writes the optional numbers of a machine at the end of a frame.
fn write_reported(told: &Reported, writer: &mut Writer<'_>) {
    for number in told.numbers() {
        writer.f32(number.unwrap_or(f32::NAN));
    }
}

/// Reads the numbers that [`write_reported`] wrote; those missing from the frame are `None`.
fn read_reported(reader: &mut Reader<'_>) -> Reported {
    Reported::from_numbers([(); Reported::COUNT].map(|()| reader.trailing_f32()))
}

/// Greatest valid steering angle in rad, beyond which it counts as unknown: a road wheel at a right
/// angle.
const ANGLE_MOST: f32 = core::f32::consts::FRAC_PI_2;
/// Greatest valid x or y of a position in m, beyond which it counts as unknown: from a pole to the
/// equator, the range of telemetry.
const DISTANCE_MOST: f32 = 1e7;
/// Greatest valid heading in rad, beyond which it counts as unknown: more than a hundred thousand
/// turns in one direction.
const HEADING_MOST: f32 = 1e6;
/// Greatest valid height or depth in m, beyond which it counts as unknown: beyond any sea and any
/// flight.
const HEIGHT_MOST: f32 = 1e5;
/// Size of a machine's state in bytes, without its optional numbers.
pub(super) const MACHINE_BYTES: usize = 62;
/// Total size in bytes of a machine's optional numbers.
const REPORTED_BYTES: usize = TRAILING_BYTES * Reported::COUNT;
