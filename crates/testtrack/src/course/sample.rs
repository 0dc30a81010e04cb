/// A sample of the centre line, which has one every half metre.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sample {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Component of the unit vector along the road, to the east (`tx`) and to the north (`ty`).
    pub(super) tx: f64,
    pub(super) ty: f64,
    /// Curvature, 1/m, positive to the left.
    pub(super) curvature: f64,
    /// Lateral offset of a good driver's line in metres, positive to the left of the centre line.
    pub(super) line: f64,
    /// Highest speed of a careful driver at the sample, m/s.
    pub(super) speed: f64,
}
