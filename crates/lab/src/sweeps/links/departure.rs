use tautline_transport::LinkNumber;
use tautline_units::{ByteCount, Instant};

/// A sealed datagram: its link in the session and its number there.
pub(super) type Sealed = (LinkNumber, u32);

/// A datagram that left on a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) at: Instant,
    /// The link's place among those of the run.
    pub(super) link: u8,
    pub(super) sealed: Sealed,
    pub(super) bytes: ByteCount,
    /// Whether it held a media packet.
    pub(super) media: bool,
}
