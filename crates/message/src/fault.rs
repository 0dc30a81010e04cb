use flatbuffers::{FlatBufferBuilder, Vector, WIPOffset};

use crate::Error;
use crate::generated::telemetry as wire_telemetry;
use crate::wire::{choice, length};

/// Something of the machine that does not work, as it tells itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// Nothing comes back from it: its bus or its computer is silent.
    Unreachable,
    /// It obeys somebody else: a person at it, a switch on it.
    Refused,
    /// An emergency button on it is pressed.
    EmergencyButton,
    /// The steering does not follow.
    Steering,
    /// The drive does not follow.
    Drive,
    /// The brake does not follow.
    Brake,
    /// The gear does not follow.
    Gear,
    /// Its speed is not known.
    Speed,
    /// Something else, which its own fault memory names.
    Other,
}

choice!(
    Fault,
    wire_telemetry::Fault,
    "faults",
    [Unreachable, Refused, EmergencyButton, Steering, Drive, Brake, Gear, Speed, Other]
);

impl Fault {
    /// The most of one message: each kind once.
    pub const COUNT_MAX: usize = 9;

    pub(crate) fn write_all(
        faults: &[Self],
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<Vector<'static, wire_telemetry::Fault>> {
        let faults: Vec<_> = faults.iter().map(|fault| fault.to_wire()).collect();
        builder.create_vector(&faults)
    }

    /// Reads faults; one that only a later version knows is another one.
    pub(crate) fn read_all(faults: Vector<'_, wire_telemetry::Fault>) -> Result<Vec<Self>, Error> {
        length("faults", faults.len(), Self::COUNT_MAX)?;
        let read = |fault| Self::from_wire(fault).unwrap_or(Self::Other);
        Ok(faults.iter().map(read).collect())
    }
}
