use std::fmt;

use tautline_units::ByteCount;

use super::bins::Bins;

/// Maximum datagram size in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// From vehicle to operator.
    pub up: ByteCount,
    /// From operator to vehicle.
    pub down: ByteCount,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B up, {} B down", self.up.get(), self.down.get())
    }
}

/// Observations of one round of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Messages on the vehicle's leg: to the switchboard, or to the operator if there is none
    /// between them.
    pub vehicle: Bins,
    /// Messages on the operator's leg: to the switchboard, or to the vehicle if there is none
    /// between them.
    pub operator: Bins,
    /// End-to-end messages.
    pub end_to_end: Bins,
    /// Bytes on the wire in both directions, IP and UDP headers included.
    pub wire: ByteCount,
    /// Application bytes among the bytes on the wire.
    pub payload: ByteCount,
}

/// One size with its results, round by round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The size tried.
    pub size: Size,
    /// Observations of each round with this size; at least one.
    pub rounds: Vec<Round>,
}

impl Trial {
    /// Returns the sum of all rounds.
    pub fn total(&self) -> Round {
        let mut total = Round::default();
        for round in &self.rounds {
            total.vehicle.append(&round.vehicle);
            total.operator.append(&round.operator);
            total.end_to_end.append(&round.end_to_end);
            total.wire += round.wire;
            total.payload += round.payload;
        }
        total
    }
}

impl Round {
    /// Returns the three kinds of messages, with the paper's names for them.
    pub fn ways(&self) -> [(&'static str, &Bins); 3] {
        [
            ("vehicle only", &self.vehicle),
            ("operator only", &self.operator),
            ("end to end", &self.end_to_end),
        ]
    }

    /// Returns the share of the bytes on the wire that are not application data: headers, repair
    /// packets and probes. `None` if nothing was sent.
    pub fn overhead_share(&self) -> Option<f64> {
        let wire = self.wire.get();
        (wire > 0).then(|| 1.0 - self.payload.get() as f64 / wire as f64)
    }
}
