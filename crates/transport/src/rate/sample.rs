use tautline_units::Bitrate;

/// Rates over a tenth of a second, from reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Rate at which the datagrams were sent.
    pub sent: Bitrate,
    /// Rate at which they arrived.
    pub received: Bitrate,
}
