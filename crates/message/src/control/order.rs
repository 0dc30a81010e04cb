use crate::fields::choice;
use crate::generated::control as wire_control;

/// An order of an administrator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Return a copy of the stored state.
    Backup,
    /// Report listed and connected machines, and who drives which vehicle since when.
    Who,
    /// Create a one-time code that enrols a machine.
    Invite {
        /// Role of the machine.
        role: Role,
        /// Name of the machine, at most 64 bytes.
        name: String,
    },
    /// Remove a machine that was enrolled by a code.
    Revoke {
        /// Role of the machine.
        role: Role,
        /// Name of the machine, at most 64 bytes.
        name: String,
    },
    /// End the lease of a vehicle, and forward the supervisor's signed order to the vehicle.
    End {
        /// Name of the vehicle, at most 64 bytes.
        name: String,
        /// Signed order for the vehicle, at most 256 bytes.
        signed: Vec<u8>,
    },
}

choice! {
    /// Role of a machine towards the switchboard.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Role of wire_control::Role, "role" {
        /// A machine that is driven.
        Vehicle,
        /// A machine that drives a vehicle.
        Operator,
    }
}
