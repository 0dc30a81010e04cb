//! Binomial probabilities that stay precise for millions of trials.

use std::f64::consts::TAU;

/// Returns the natural logarithm of the probability of exactly `hits` hits in `trials` independent
/// trials, each a hit with `probability`; minus infinity if that is impossible.
///
/// The logarithm's absolute error is near 1e-14 unless the probability vanishes: the formula
/// cancels the large parts of the factorials' logarithms, which would cost all digits. Source:
/// \[LOADER\], the saddle-point form of the binomial.
pub(super) fn ln_pmf(hits: u64, trials: u64, probability: f64) -> f64 {
    let (k, n) = (hits as f64, trials as f64);
    let misses = match trials.checked_sub(hits) {
        None => return f64::NEG_INFINITY,
        Some(_) if probability <= 0.0 => return if hits == 0 { 0.0 } else { f64::NEG_INFINITY },
        Some(misses) => misses,
    };
    if hits == 0 {
        return n * (-probability).ln_1p();
    }
    if misses == 0 {
        return n * probability.ln();
    }
    let m = misses as f64;
    let corrections = stirling_rest(trials) - stirling_rest(hits) - stirling_rest(misses);
    let deviances = deviance(k, n * probability) + deviance(m, n * (1.0 - probability));
    corrections - deviances + 0.5 * (n / (TAU * k * m)).ln()
}

/// Returns `x ln(x / mean) + mean - x`, which is small if `x` is near `mean`.
fn deviance(x: f64, mean: f64) -> f64 {
    let difference = x - mean;
    x * (difference / mean).ln_1p() - difference
}

/// Returns ln(n!) minus Stirling's formula, (n + 1/2) ln(n) - n + ln(2 pi) / 2, for n >= 1.
fn stirling_rest(n: u64) -> f64 {
    let x = n as f64;
    if n < SERIES_FROM {
        // Up to 20!, the factorial is exact enough to compute its logarithm directly.
        let factorial: f64 = (1..=n).map(|factor| factor as f64).product();
        return factorial.ln() - (x + 0.5) * x.ln() + x - 0.5 * TAU.ln();
    }
    let inverse = 1.0 / (x * x);
    let series = STIRLING.iter().rev().fold(0.0, |sum, coefficient| sum * inverse + coefficient);
    series / x
}

/// Least n for which the six terms of Stirling's series give ln(n!) exactly to 1e-17.
const SERIES_FROM: u64 = 20;

/// Coefficients of Stirling's series, B(2i) / (2i (2i - 1)).
const STIRLING: [f64; 6] =
    [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1_260.0, -1.0 / 1_680.0, 1.0 / 1_188.0, -691.0 / 360_360.0];

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    #[test]
    fn small_cases_are_the_textbook_ones() {
        for (hits, trials, p, expected) in [
            (0, 0, 0.3, 1.0),
            (0, 4, 0.5, 0.0625),
            (2, 4, 0.5, 0.375),
            (4, 4, 0.5, 0.0625),
            (3, 10, 0.1, 0.057395628),
            (10, 30, 0.2, 0.035470892953328934),
        ] {
            let given = ln_pmf(hits, trials, p).exp();
            assert!((given / expected - 1.0).abs() < 1e-13, "{hits} of {trials}: {given}");
        }
        assert_eq!(ln_pmf(5, 4, 0.5), f64::NEG_INFINITY);
        assert_eq!(ln_pmf(1, 4, 0.0), f64::NEG_INFINITY);
        assert_eq!(ln_pmf(0, 4, 0.0), 0.0);
    }

    #[test]
    fn neighbours_have_the_ratio_of_the_definition() {
        for (trials, p) in [(50_u64, 0.2), (5_000, 0.1), (10_000_000, 0.01), (1 << 40, 0.25)] {
            let mean = (trials as f64 * p) as u64;
            for hits in [mean / 2 + 1, mean, mean + mean / 100] {
                let ratio = (ln_pmf(hits + 1, trials, p) - ln_pmf(hits, trials, p)).exp();
                let expected = (trials - hits) as f64 / (hits + 1) as f64 * p / (1.0 - p);
                let tolerance = 1e-12_f64.max(trials as f64 * 2e-16);
                assert!((ratio / expected - 1.0).abs() < tolerance, "{hits} of {trials}: {ratio}");
            }
        }
    }

    #[test]
    fn a_whole_distribution_sums_to_one() {
        for (trials, p) in [(19_u64, 0.4), (21, 0.05), (100_000, 0.3)] {
            let sum: f64 = (0..=trials).map(|hits| ln_pmf(hits, trials, p).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-11, "{trials}: {sum}");
        }
    }
}
