use thiserror::Error;

/// A reason why a member cannot start.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The member's number is outside 1 to the number of members.
    #[error("there is no member {id} among {members}")]
    NoSuchMember {
        /// The requested number.
        id: u8,
        /// The number of members.
        members: u8,
    },
    /// The election timeout leaves no time for a lease.
    #[error("an election after {heartbeats} heartbeats is too early to act: at least 3 are needed")]
    TooFewHeartbeats {
        /// The requested number of heartbeats.
        heartbeats: u8,
    },
    /// The persisted state is not one that a member wrote.
    #[error("cannot read the stored state")]
    NotKept,
    /// Raft refuses to start with the persisted state.
    #[error("cannot start raft: {0}")]
    Raft(String),
}
