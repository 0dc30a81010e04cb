/// Range of protocol versions between vehicle and operator that one end supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProtocolVersions {
    /// Lowest version, at least 1.
    pub lowest: u8,
    /// Highest version, not below the lowest.
    pub highest: u8,
}
