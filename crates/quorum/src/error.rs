use thiserror::Error;

/// A reason why a member cannot start.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Members are numbered from 1 to their count.
    #[error("member {id} of {members} cannot be")]
    NoSuchMember {
        /// What was asked for.
        id: u8,
        /// How many there are.
        members: u8,
    },
    /// The lease would be no time at all.
    #[error("an election after {heartbeats} heartbeats leaves no time to act: 3 at least")]
    TooFewHeartbeats {
        /// What was asked for.
        heartbeats: u8,
    },
    /// What was kept is not what a member wrote.
    #[error("what was kept cannot be read")]
    NotKept,
    /// Raft refuses to start with what was kept.
    #[error("raft does not start: {0}")]
    Raft(String),
}
