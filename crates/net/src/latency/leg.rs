/// The two ends of a measurement; a variant's name begins with the sender of the probes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Leg {
    /// Between switchboard and vehicle, over the control connection: TLS over TCP.
    SwitchboardVehicle,
    /// Between switchboard and operator, over the control connection: TLS over TCP.
    SwitchboardOperator,
    /// Between relay and vehicle, over the leg of the datagrams that the relay forwards.
    RelayVehicle,
    /// Between relay and operator, over the leg of the datagrams that the relay forwards.
    RelayOperator,
    /// Between operator and vehicle, over one link of the session.
    OperatorVehicle,
}

impl Leg {
    /// All legs.
    pub const ALL: [Self; 5] = [
        Self::SwitchboardVehicle,
        Self::SwitchboardOperator,
        Self::RelayVehicle,
        Self::RelayOperator,
        Self::OperatorVehicle,
    ];

    /// Returns the leg's name in the files: `switchboard-vehicle`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SwitchboardVehicle => "switchboard-vehicle",
            Self::SwitchboardOperator => "switchboard-operator",
            Self::RelayVehicle => "relay-vehicle",
            Self::RelayOperator => "relay-operator",
            Self::OperatorVehicle => "operator-vehicle",
        }
    }
}
