/// Returns the probability 1 - 256^-`unknowns` that a repair packet with uniformly random
/// coefficients in GF(256) is innovative while `unknowns` unknowns are undetermined.
///
/// `unknowns`: lost packets minus the equations already held. The theory assumes 1, as in a large
/// field: GF(256) adds about 1 % to the mean delay. Source: of the 256^D vectors of coefficients
/// that remain after elimination, only the zero vector is not innovative. Coefficients that are
/// never zero, as in the streaming code, do better: they never miss a single unknown.
pub fn innovative_probability(unknowns: u32) -> f64 {
    -(-f64::from(unknowns) * 256_f64.ln()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unknown_is_missed_once_in_256() {
        assert_eq!(innovative_probability(0), 0.0);
        assert!((innovative_probability(1) - 255.0 / 256.0).abs() < 1e-15);
        assert!((innovative_probability(2) - 65_535.0 / 65_536.0).abs() < 1e-15);
        assert_eq!(innovative_probability(100), 1.0);
    }
}
