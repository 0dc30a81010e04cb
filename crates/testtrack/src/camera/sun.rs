/// Azimuth of the sun, rad counter-clockwise from east.
pub(super) const AZIMUTH: f64 = 0.8;
