use tautline_units::Bitrate;

/// Rates on one link between two of the peer's reports, a tenth of a second apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Rate at which datagrams were sent, without MTU probes.
    pub sent: Bitrate,
    /// Rate at which datagrams arrived at the peer.
    pub received: Bitrate,
}
