/// Edition of the testbed, recorded in each cell's file and in each line. Any change to the log of
/// a cell (the guest's kernel, its network, a transport's settings, the content of a packet or a
/// video) raises it. `testbed cell` shows the log's digest, which then differs from the one in the
/// cell's file.
pub(crate) const EDITION: u32 = 1;

/// Returns the edition of cells and lines written before the edition was recorded.
pub(crate) fn first() -> u32 {
    1
}
