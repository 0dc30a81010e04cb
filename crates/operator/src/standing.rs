use tautline_message::SessionState;

/// State of the session and its reason, as set by the switchboard's messages and the vehicle's
/// traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// State of the session with the vehicle, or of the way to it.
    pub state: SessionState,
    /// Reason for the state, in words for the operator; empty if there is none.
    pub reason: String,
}

impl Standing {
    /// Creates the standing of a session in `state`, for `reason`, which may be empty.
    pub(crate) fn new(state: SessionState, reason: &str) -> Self {
        Self { state, reason: reason.to_owned() }
    }
}
