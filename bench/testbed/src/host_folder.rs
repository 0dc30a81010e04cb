//! Files that the host and its guest share.

/// Folder on the host for the guests' files. The guest sees this path, so it is the same on every
/// machine.
pub(crate) const FOLDER: &str = "/tmp/tautline-testbed";
/// Folder that the guest reads from and writes to.
pub(crate) const OUT: &str = "/tmp/tautline-testbed/out";
/// Copy of this program for the guest.
pub(crate) const PROGRAM: &str = "/tmp/tautline-testbed/testbed";

/// Name of the file of the cell, on the host and in the guest.
pub(crate) const CELL: &str = "cell.json";
/// Name of the file of the packets' due times.
pub(crate) const SCHEDULE: &str = "schedule";
