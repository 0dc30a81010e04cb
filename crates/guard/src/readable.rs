use core::fmt;
use core::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::frame::Status;
use crate::identity::{Console, Session};
use crate::{Actions, Controls, MachineState, Member, Place, Position, Set};

/// A value that is serialized for people: kinds by their names, sets as lists of names, ages in
/// milliseconds, the machine's time of measurement in nanoseconds, consoles as hexadecimal digits.
///
/// The black box and the operator's recordings contain each status in this form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readable<T>(pub T);

impl Serialize for Readable<&Status> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(status) = self;
        let machine = status.machine.as_ref().map(|(machine, _)| machine);
        let mut all = serializer.serialize_struct("Status", 24)?;
        all.serialize_field("tick", &status.tick.get())?;
        all.serialize_field("mode", &Name(status.mode))?;
        all.serialize_field("cause", &Name(status.why.cause))?;
        all.serialize_field("value", &status.why.value)?;
        all.serialize_field("limit", &status.why.limit)?;
        all.serialize_field("stop", &status.stop.get())?;
        all.serialize_field("is_latched", &status.is_latched)?;
        all.serialize_field("loop_age_ms", &status.loop_age.map(millis))?;
        all.serialize_field("command_age_ms", &status.command_age.map(millis))?;
        all.serialize_field("speed_bound", &status.speed_bound)?;
        all.serialize_field("sideways_speed_bound", &status.sideways_speed_bound)?;
        all.serialize_field("yaw_rate_bound", &status.yaw_rate_bound)?;
        all.serialize_field("motion", &Name(status.motion))?;
        all.serialize_field("limits", &Readable(status.limits))?;
        all.serialize_field("blockers", &Readable(status.blockers))?;
        all.serialize_field("holder", &status.holder.map(Readable))?;
        all.serialize_field("session", &status.session.map(Session::get))?;
        all.serialize_field("speed", &machine.map(|machine| machine.speed))?;
        all.serialize_field("sideways_speed", &machine.map(|machine| machine.sideways_speed))?;
        all.serialize_field("yaw_rate", &machine.map(|machine| machine.yaw_rate))?;
        all.serialize_field("steering_angle", &machine.map(|machine| machine.steering_angle))?;
        all.serialize_field("machine", &machine.map(Readable))?;
        all.serialize_field("applied", &Readable(&status.applied))?;
        all.serialize_field("black_box", &Name(status.black_box))?;
        all.end()
    }
}

impl Serialize for Readable<&MachineState> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(machine) = self;
        let mut all = serializer.serialize_struct("Machine", 11)?;
        all.serialize_field("measured_ns", &machine.measured_at.as_nanos())?;
        all.serialize_field("gear", &Name(machine.gear))?;
        all.serialize_field("position", &machine.position.map(Readable))?;
        all.serialize_field("place", &machine.place.map(Readable))?;
        all.serialize_field("faults", &Readable(machine.faults))?;
        all.serialize_field("notices", &Readable(machine.notices))?;
        all.serialize_field("axes", &machine.axes)?;
        all.serialize_field("actions", &Readable(machine.actions))?;
        all.serialize_field("answered", &machine.answered)?;
        all.serialize_field("description", &machine.description)?;
        all.serialize_field("told", &machine.told)?;
        all.end()
    }
}

impl Serialize for Readable<Position> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(Position { x, y, heading }) = self;
        let mut all = serializer.serialize_struct("Position", 3)?;
        all.serialize_field("x", x)?;
        all.serialize_field("y", y)?;
        all.serialize_field("heading", heading)?;
        all.end()
    }
}

impl Serialize for Readable<Place> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(Place { latitude, longitude, height }) = self;
        let mut all = serializer.serialize_struct("Place", 4)?;
        all.serialize_field("latitude", latitude)?;
        all.serialize_field("longitude", longitude)?;
        all.serialize_field("height", height)?;
        all.serialize_field("reference", "WGS 84")?;
        all.end()
    }
}

impl Serialize for Readable<&Controls> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(controls) = self;
        let mut all = serializer.serialize_struct("Controls", 8)?;
        all.serialize_field("steering", &controls.steering)?;
        all.serialize_field("throttle", &controls.throttle)?;
        all.serialize_field("brake", &controls.brake)?;
        all.serialize_field("gear", &Name(controls.gear))?;
        all.serialize_field("parking_brake", &controls.parking_brake)?;
        all.serialize_field("twist", &controls.twist)?;
        all.serialize_field("axes", &controls.axes)?;
        all.serialize_field("actions", &Readable(controls.actions))?;
        all.end()
    }
}

impl Serialize for Readable<Console> {
    /// Serializes the number as text, because it has more digits than JSON numbers reliably keep.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0.get()))
    }
}

impl<E: Member> Serialize for Readable<Set<E>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Name))
    }
}

impl Serialize for Readable<Actions> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

/// A kind, serialized by the name of its variant.
struct Name<E>(E);

impl<E: fmt::Debug> Serialize for Name<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:?}", self.0))
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
