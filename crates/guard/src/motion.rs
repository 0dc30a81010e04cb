use crate::set::numbered;

numbered! {
    /// A kind of motion: which set points move a machine, and what it must not do.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
    pub enum Motion {
        /// Wheels that steer, pedals and a gear, as in a car.
        #[default]
        #[serde(rename = "ackermann")]
        Ackermann = 0,
        /// Two wheels or tracks whose speeds differ: forward speed and yaw rate.
        #[serde(rename = "differential")]
        Differential = 1,
        /// Wheels that also roll sideways: forward and sideways speed, and yaw rate.
        #[serde(rename = "omni")]
        Omni = 2,
    }
}

impl Motion {
    /// Returns the kind's name in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ackermann => "ackermann",
            Self::Differential => "differential",
            Self::Omni => "omni",
        }
    }
}
