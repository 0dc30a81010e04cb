/// Thresholds and limits of the deblocking filter at an edge (8.7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::avc) struct Edge {
    pub(in crate::avc) alpha: u8,
    pub(in crate::avc) beta: u8,
    /// Values of t_C0 for each quarter of the edge, or -1 where it is not filtered; `None` with bS
    /// 4.
    pub(in crate::avc) limits: Option<[i8; 4]>,
}
