use std::fmt;

/// A range of protocol versions supported by one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Versions {
    /// Lowest supported version, at least 1.
    pub lowest: u8,
    /// Highest supported version, not below the lowest.
    pub highest: u8,
}

impl Versions {
    /// Versions supported by this build.
    pub const OURS: Self = Self { lowest: 3, highest: 3 };
    /// Versions of a build that sends no version range.
    pub const UNSAID: Self = Self { lowest: 1, highest: 1 };

    /// Creates the range; `None` unless `1 <= lowest <= highest`.
    pub const fn new(lowest: u8, highest: u8) -> Option<Self> {
        match lowest >= 1 && lowest <= highest {
            true => Some(Self { lowest, highest }),
            false => None,
        }
    }

    /// Returns the highest version in both ranges; `None` if they have none in common.
    pub fn common(self, other: Self) -> Option<u8> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest && highest >= other.lowest).then_some(highest)
    }

    /// Returns whether `version` is in the range.
    pub const fn contains(self, version: u8) -> bool {
        self.lowest <= version && version <= self.highest
    }
}

impl Default for Versions {
    fn default() -> Self {
        Self::OURS
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lowest == self.highest {
            true => write!(f, "version {}", self.lowest),
            false => write!(f, "versions {} to {}", self.lowest, self.highest),
        }
    }
}

/// Two ends without a common version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionMismatch {
    /// Versions of this end.
    pub ours: Versions,
    /// Versions of the peer.
    pub theirs: Versions,
}

impl VersionMismatch {
    /// Returns the mismatch of `ours` and `theirs`; `None` if they have a version in common.
    pub fn of(ours: Versions, theirs: Versions) -> Option<Self> {
        ours.common(theirs).is_none().then_some(Self { ours, theirs })
    }

    /// Returns whether this end must be updated: the other supports only later versions.
    pub fn is_ours_older(self) -> bool {
        self.ours.highest < self.theirs.lowest
    }

    /// Returns the mismatch as text: the versions of both ends, and which end to update. The text
    /// calls the peer `peer`.
    pub fn told(self, peer: &str) -> String {
        let Self { ours, theirs } = self;
        let behind = if self.is_ours_older() { "this end" } else { peer };
        format!("this end speaks {ours}, {peer} {theirs}: update {behind}")
    }
}

impl fmt::Display for VersionMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told("the peer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lowest: u8, highest: u8) -> Versions {
        Versions::new(lowest, highest).unwrap()
    }

    #[test]
    fn the_highest_common_version_is_spoken() {
        assert_eq!(of(2, 5).common(of(3, 9)), Some(5));
        assert_eq!(of(2, 5).common(of(5, 5)), Some(5));
        assert_eq!(of(2, 5).common(of(1, 2)), Some(2));
        assert_eq!(of(2, 5).common(of(6, 9)), None);
        assert_eq!((Versions::new(0, 3), Versions::new(4, 3)), (None, None));
    }

    #[test]
    fn a_mismatch_says_which_end_to_update() {
        let told = |ours, theirs| VersionMismatch::of(ours, theirs).unwrap().told("the vehicle");
        assert_eq!(
            told(of(2, 2), of(1, 1)),
            "this end speaks version 2, the vehicle version 1: update the vehicle"
        );
        assert_eq!(
            told(of(2, 3), of(4, 6)),
            "this end speaks versions 2 to 3, the vehicle versions 4 to 6: update this end"
        );
        assert_eq!(VersionMismatch::of(of(2, 3), of(3, 6)), None);
    }
}
