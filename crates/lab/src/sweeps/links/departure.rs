use tautline_transport::LinkNumber;
use tautline_units::{ByteCount, Instant};

/// Identity of a sealed datagram: its link in the session and its number on that link.
pub(in crate::sweeps) type Sealed = (LinkNumber, u32);

/// A datagram sent on a link.
#[derive(Clone, Copy, Debug)]
pub(in crate::sweeps) struct Departure {
    pub(in crate::sweeps) at: Instant,
    /// Index of the link in the run.
    pub(in crate::sweeps) link: u8,
    pub(in crate::sweeps) sealed: Sealed,
    pub(in crate::sweeps) bytes: ByteCount,
    /// True if the datagram contained a media packet.
    pub(in crate::sweeps) media: bool,
}
