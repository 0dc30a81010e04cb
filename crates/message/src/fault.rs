use flatbuffers::{FlatBufferBuilder, Vector, WIPOffset};
#[cfg(test)]
use proptest::prelude::*;

use crate::Error;
#[cfg(test)]
use crate::fields::Choice;
use crate::fields::{Codec, choice};
use crate::generated::telemetry as wire_telemetry;
use crate::wire::length;

/// A fault that the machine reports about itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The machine does not respond: its bus or its computer is silent.
    Unreachable,
    /// The machine is under other control: a person at it, or a switch on it.
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
    /// Its speed is unknown.
    Speed,
    /// Another fault, named in the machine's own fault memory.
    Other,
}

choice!(
    Fault,
    wire_telemetry::Fault,
    "faults",
    [Unreachable, Refused, EmergencyButton, Steering, Drive, Brake, Gear, Speed, Other]
);

impl Fault {
    /// Maximum number of faults in a message: each kind once.
    pub const COUNT_MAX: usize = 9;
}

/// Codec of faults; a fault known only to a later version is read as [`Fault::Other`].
pub(crate) struct Faults;

impl Codec<Vec<Fault>> for Faults {
    type Read<'a> = Option<Vector<'a, wire_telemetry::Fault>>;
    type Written = Option<WIPOffset<Vector<'static, wire_telemetry::Fault>>>;

    fn write(
        &self,
        faults: &Vec<Fault>,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> Self::Written {
        let faults: Vec<_> = faults.iter().map(|fault| fault.to_wire()).collect();
        Some(builder.create_vector(&faults))
    }

    fn read(&self, field: &'static str, faults: Self::Read<'_>) -> Result<Vec<Fault>, Error> {
        let faults = faults.unwrap_or_default();
        length(field, faults.len(), Fault::COUNT_MAX)?;
        let read = |fault| Fault::from_wire(fault).unwrap_or(Fault::Other);
        Ok(faults.iter().map(read).collect())
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<Vec<Fault>> {
        proptest::collection::vec(Choice.any(), 0..=Fault::COUNT_MAX).boxed()
    }

    #[cfg(test)]
    fn refused(&self) -> Vec<Vec<Fault>> {
        vec![vec![Fault::Other; Fault::COUNT_MAX + 1]]
    }
}
