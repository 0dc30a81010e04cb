use tautline_units::Bitrate;

/// Rates of a tenth of a second, by its reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The rate at which those datagrams were sent.
    pub sent: Bitrate,
    /// The rate at which they arrived.
    pub received: Bitrate,
}
