use tautline_units::Instant;

use super::bytes::{Reader, Writer, set};
use super::error::Error;
use super::layout;
use super::payload::Frame;
use crate::description::Revision;
use crate::{Actions, Answered, Axes, Gear, MachineState, Place, Position, Reported, Twist};

impl Frame for MachineState {
    const DATA_ID: u32 = layout::Machine::DATA_ID;
    const BYTES: usize = layout::Machine::BYTES;
    const BYTES_LEAST: usize = layout::Machine::BYTES_LEAST;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.measured_at
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let numbers = self.told.numbers().map(|number| number.unwrap_or(f32::NAN));
        layout::Machine { state: to_raw(self), numbers }.write(writer);
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let raw = layout::Machine::read(reader);
        let machine = from_raw(&raw.state, layout::Machine::STATE_AT, source, reader)?;
        Ok(Self { told: Reported::from_numbers(raw.numbers.map(Some)), ..machine })
    }
}

/// Returns the numbers of a machine's state, without its optional ones.
pub(super) fn to_raw(machine: &MachineState) -> layout::MachineBlock {
    let unknown = Position { x: f32::NAN, ..Position::default() };
    let position = machine.position.unwrap_or(unknown);
    let unknown = Place { latitude: f64::NAN, ..Place::default() };
    let place = machine.place.unwrap_or(unknown);
    layout::MachineBlock {
        speed: machine.speed,
        sideways_speed: machine.sideways_speed,
        yaw_rate: machine.yaw_rate,
        steering_angle: machine.steering_angle,
        gear: machine.gear.number(),
        notices: machine.notices.bits(),
        faults: machine.faults.bits(),
        x: position.x,
        y: position.y,
        heading: position.heading,
        latitude: place.latitude,
        longitude: place.longitude,
        height: place.height,
        axes: machine.axes.0,
        actions: machine.actions.bits(),
        answers_number: machine.answered.map_or(0, |answered| answered.number),
        answer: machine.answered.map_or(0, |answered| if answered.is_accepted { 1 } else { 2 }),
        description: Revision::to_wire(machine.description),
    }
}

/// Returns the state, without its optional numbers, of numbers that begin at offset `at`. Values
/// out of range become unknown, and the reader counts them.
pub(super) fn from_raw(
    raw: &layout::MachineBlock,
    at: usize,
    measured_at: Instant,
    reader: &mut Reader<'_>,
) -> Result<MachineState, Error> {
    type Block = layout::MachineBlock;
    let position = Position {
        x: reader.within(raw.x, DISTANCE_MOST),
        y: reader.within(raw.y, DISTANCE_MOST),
        heading: reader.within(raw.heading, HEADING_MOST),
    };
    let place = Place {
        latitude: reader.within_f64(raw.latitude, 90.0),
        longitude: reader.within_f64(raw.longitude, 180.0),
        height: reader.within(raw.height, HEIGHT_MOST),
    };
    let is_known = |value: f32| value.is_finite();
    let position =
        [position.x, position.y, position.heading].into_iter().all(is_known).then_some(position);
    let place = (place.latitude.is_finite() && place.longitude.is_finite()).then_some(place);
    let gear = Gear::from_number(raw.gear).ok_or(Error::Value { at: at + Block::GEAR_AT })?;
    let answered = match (raw.answers_number, raw.answer) {
        (0, 0) => None,
        (1.., 1) => Some(true),
        (1.., 2) => Some(false),
        _ => return Err(Error::Value { at: at + Block::ANSWER_AT }),
    };
    let number = raw.answers_number;
    Ok(MachineState {
        measured_at,
        speed: reader.within(raw.speed, Twist::SPEED_MOST),
        sideways_speed: reader.within(raw.sideways_speed, Twist::SPEED_MOST),
        yaw_rate: reader.within(raw.yaw_rate, Twist::YAW_RATE_MOST),
        steering_angle: reader.within(raw.steering_angle, ANGLE_MOST),
        gear,
        position,
        place,
        faults: set(raw.faults, at + Block::FAULTS_AT)?,
        notices: set(raw.notices, at + Block::NOTICES_AT)?,
        axes: Axes(raw.axes.map(|number| reader.within(number, f32::MAX))).sane(),
        actions: Actions::from_bits(raw.actions),
        answered: answered.map(|is_accepted| Answered { number, is_accepted }),
        description: Revision::new(raw.description),
        told: Reported::default(),
    })
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
