use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::act::{Act, Blocker, Outcome};

/// A request to the machine for one of its actions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Number by which the machine distinguishes a new request from a repeated one: never 0, and
    /// different from that of the previous request.
    pub number: u32,
    /// Number of the action, from 0.
    pub action: u8,
}

/// Answer of a machine to a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// Number of the request.
    pub number: u32,
    /// `true` if the machine does it, `false` if it refuses.
    pub is_accepted: bool,
}

/// A request that the machine has not answered yet.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) request: Request,
    /// Act by which a person asked.
    pub(crate) act: Act,
    /// Time at which the guard first sent the request.
    since: Instant,
}

impl Pending {
    pub(crate) fn new(request: Request, act: Act, now: Instant) -> Self {
        Self { request, act, since: now }
    }

    /// Returns the outcome of the act, given the machine's newest answer; `None` while it is open.
    pub(crate) fn outcome(&self, answered: Option<Answered>, now: Instant) -> Option<Outcome> {
        match answered.filter(|answered| answered.number == self.request.number) {
            Some(Answered { is_accepted: true, .. }) => Some(Outcome::Done),
            Some(_) => Some(Outcome::Refused(Blocker::MachineRefused)),
            None if now.since(self.since) >= ANSWER_MAX => {
                Some(Outcome::Refused(Blocker::NoAnswer))
            }
            None => None,
        }
    }
}

/// Time after which a request that the machine has not answered counts as refused: a hundred
/// frames, and short enough for a person to ask again.
const ANSWER_MAX: Duration = Duration::from_secs(1);
