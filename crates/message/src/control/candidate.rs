use crate::fields::choice;
use crate::generated::control as wire_control;

/// An address at which an end may be reachable, in addition to its certain addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Kind of the address, by the way in which it was found.
    pub kind: CandidateKind,
    /// Index of the end's socket to which the address leads, 0 to 15.
    pub end: u8,
    /// Address as `host:port`, at most 64 bytes.
    pub address: String,
}

choice! {
    /// Source of a candidate.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum CandidateKind of wire_control::CandidateKind, "candidates.kind" {
        /// Address of an interface.
        Host,
        /// Address of a NAT, as seen by a server.
        Reflexive,
        /// Address of a relay.
        Relayed,
    }
}
