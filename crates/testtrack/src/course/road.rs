/// Distance from the centre line to the edge of the asphalt, m.
pub const ROAD_HALF_WIDTH: f64 = 4.0;

/// Width of the kerb beyond the asphalt in bends, m.
pub const KERB_WIDTH: f64 = 0.7;
