use tautline_transport::LinkNumber;
use tautline_units::{ByteCount, Instant};

/// A sealed datagram: its link in the session and its number there.
pub(in crate::sweeps) type Sealed = (LinkNumber, u32);

/// A datagram that left on a link.
#[derive(Clone, Copy, Debug)]
pub(in crate::sweeps) struct Departure {
    pub(in crate::sweeps) at: Instant,
    /// The link's place among those of the run.
    pub(in crate::sweeps) link: u8,
    pub(in crate::sweeps) sealed: Sealed,
    pub(in crate::sweeps) bytes: ByteCount,
    /// Whether it held a media packet.
    pub(in crate::sweeps) media: bool,
}
