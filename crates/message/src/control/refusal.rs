use crate::fields::choice;
use crate::generated::control as wire_control;

choice! {
    /// A reason for a refusal by the switchboard.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Refusal of wire_control::Refusal, "reason_code" {
        /// No vehicle of this name is known.
        UnknownVehicle,
        /// Another operator has the vehicle, or a supervisor has just ended the requesting
        /// operator's drive of it.
        VehicleTaken,
        /// The vehicle is not connected. The operator holds it, and is introduced when it returns.
        VehicleAway,
        /// This key is not permitted to do this.
        NotAllowed,
        /// The request requires registration.
        NotRegistered,
        /// Another machine uses the same key, or the same process has connected again and this is
        /// its old connection.
        NameTaken,
        /// The request is invalid, or invalid in the present state.
        BadRequest,
        /// A limit is reached: of wrong codes per minute, or of the epochs of a vehicle.
        Full,
    }
}
