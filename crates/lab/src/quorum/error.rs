use thiserror::Error;

/// A reason why a member cannot start.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The member's number is outside 1 to the number of members.
    #[error("member {id} of {members} cannot be")]
    NoSuchMember {
        /// The requested number.
        id: u8,
        /// The number of members.
        members: u8,
    },
    /// The election timeout leaves no time for a lease.
    #[error("an election after {heartbeats} heartbeats leaves no time to act: 3 at least")]
    TooFewHeartbeats {
        /// The requested number of heartbeats.
        heartbeats: u8,
    },
    /// The persisted state is not one that a member wrote.
    #[error("what was kept cannot be read")]
    NotKept,
    /// Raft refuses to start with the persisted state.
    #[error("raft does not start: {0}")]
    Raft(String),
}
