use std::net::SocketAddr;

/// An address at which an end may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// Origin of the address.
    pub kind: Kind,
    /// Index of the end's socket that the address leads to; candidates of one socket are
    /// alternatives.
    pub end: u8,
    /// IP address and port to send to.
    pub address: SocketAddr,
}

/// The origin of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Address of an interface of the end's machine.
    Host,
    /// Address seen by a server: that of a NAT in front of the end.
    Reflexive,
    /// Address of a relay that forwards what arrives there.
    Relayed,
}

impl Candidate {
    /// Returns the candidate's rank, lower is better: direct before relayed, no NAT before NAT,
    /// IPv6 before IPv4.
    pub fn rank(&self) -> u8 {
        let four = u8::from(self.address.is_ipv4());
        match self.kind {
            Kind::Host => four,
            Kind::Reflexive => 2 + four,
            Kind::Relayed => RANK_RELAYED + four,
        }
    }
}

/// Rank of a relayed IPv6 candidate: behind every direct one.
pub(super) const RANK_RELAYED: u8 = 5;
