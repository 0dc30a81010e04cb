use std::net::SocketAddr;

/// An address at which an end may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// Where it comes from.
    pub kind: Kind,
    /// Which of the end's sockets it leads to: candidates of one are ways of one link.
    pub end: u8,
    /// The address.
    pub address: SocketAddr,
}

/// Where a candidate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An interface has it.
    Host,
    /// A server saw it: that of a NAT before the end.
    Reflexive,
    /// A relay's, which forwards what comes there.
    Relayed,
}

impl Candidate {
    /// Returns what a way to it is worth: direct before relayed, IPv6 before IPv4, no NAT before one.
    pub fn rank(&self) -> u8 {
        let four = u8::from(self.address.is_ipv4());
        match self.kind {
            Kind::Host => four,
            Kind::Reflexive => 2 + four,
            Kind::Relayed => RANK_RELAYED + four,
        }
    }
}

/// What a relayed way is worth: behind every direct one.
pub(super) const RANK_RELAYED: u8 = 5;
