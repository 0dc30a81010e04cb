//! Results of an independent measurement of the same kernel, and the comparison with ours.

use anyhow::{Result, ensure};

use crate::measures::Outcome;
use crate::summary::Mean;
use crate::transport::Transport;

/// Figures of one transport at 10 ms each way, from one run per loss rate in [`LOSSES`].
struct Expected {
    transport: Transport,
    /// Throughput received in kB/s, by [`LOSSES`] and then by [`RATES`].
    throughput: [[f64; 4]; 3],
    /// Standard deviation of the packet interarrival times at 1200 kB/s in ms, by [`LOSSES`].
    interarrival_sd: [f64; 3],
}

/// One expected figure and our measurement of it.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) what: String,
    pub(crate) expected: f64,
    pub(crate) measured: Mean,
    /// Allowed deviation of the expected figure, a single run, from our mean; in the unit of the
    /// figure.
    pub(crate) allowed: f64,
}

impl Comparison {
    pub(crate) fn holds(&self) -> bool {
        (self.measured.value - self.expected).abs() <= self.allowed
    }
}

/// Returns the expected throughput in kB/s at a rate in kB/s and a loss in percent, if the
/// independent measurement has it.
pub(crate) fn throughput(transport: Transport, rate: u32, loss: f64) -> Option<f64> {
    let expected = EXPECTED.iter().find(|it| it.transport == transport)?;
    let loss = LOSSES.iter().position(|it| *it == loss)?;
    let rate = RATES.iter().position(|it| *it == rate)?;
    Some(expected.throughput[loss][rate])
}

/// Compares every figure that has several runs in `outcomes`.
pub(crate) fn compare(outcomes: &[Outcome]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for expected in &EXPECTED {
        let transport = expected.transport;
        for (loss_at, loss) in LOSSES.into_iter().enumerate() {
            let of = |rate: u32, value: fn(&Outcome) -> f64| -> Vec<f64> {
                let is = |it: &&Outcome| {
                    let cell = it.cell;
                    (cell.transport, cell.rate(), cell.rtt_ms) == (transport, Some(rate), RTT_MS)
                        && cell.loss_percent == loss
                };
                outcomes.iter().filter(is).map(value).collect()
            };
            for (rate_at, rate) in RATES.into_iter().enumerate() {
                let values = of(rate, |it| it.measures.throughput_kbyte_per_s);
                let what = format!("{transport}, {rate} kB/s, {loss} %: kB/s");
                let figure = expected.throughput[loss_at][rate_at];
                comparisons.extend(comparison(what, figure, &values, figure * SHARE));
            }
            let values = of(SD_RATE, |it| it.measures.interarrival_sd_ms);
            let what = format!("{transport}, {SD_RATE} kB/s, {loss} %: sd of inter-arrival, ms");
            let figure = expected.interarrival_sd[loss_at];
            comparisons.extend(comparison(what, figure, &values, SD_ROUNDED + figure * SHARE));
        }
    }
    comparisons
}

/// Fails if more figures differ than chance allows.
pub(crate) fn judge(comparisons: &[Comparison]) -> Result<()> {
    let out: Vec<&Comparison> = comparisons.iter().filter(|it| !it.holds()).collect();
    let allowed = allowed_out(comparisons.len());
    ensure!(
        out.len() <= allowed,
        "{} of {} figures differ from the independent measurement, {allowed} may",
        out.len(),
        comparisons.len()
    );
    Ok(())
}

/// Returns how many of this number of figures may differ. Each differs with a probability of 0.01,
/// and more than this number together with a probability below 0.01.
fn allowed_out(figures: usize) -> usize {
    let (n, p) = (figures as f64, 0.01_f64);
    let mut term = (1.0 - p).powf(n);
    let (mut below, mut count) = (term, 0);
    while below < 0.99 && count < figures {
        term *= (n - count as f64) / (count as f64 + 1.0) * p / (1.0 - p);
        below += term;
        count += 1;
    }
    count
}

fn comparison(what: String, expected: f64, values: &[f64], least: f64) -> Option<Comparison> {
    // Two runs hardly show how far a third may deviate.
    if values.len() < 3 {
        return None;
    }
    let measured = Mean::of(values);
    Some(Comparison { what, expected, measured, allowed: measured.reach().max(least) })
}

pub(crate) const RATES: [u32; 4] = [450, 700, 1200, 2000];
pub(crate) const LOSSES: [f64; 3] = [0.4, 1.5, 5.0];
const RTT_MS: u32 = 20;
const SD_RATE: u32 = 1200;
/// Minimum allowed deviation as a share of a figure: UDP's runs vary less than the printed figures
/// are precise.
const SHARE: f64 = 0.01;
/// Additional allowed deviation of a standard deviation, in ms: the last printed digit of the
/// smallest figure.
const SD_ROUNDED: f64 = 0.01;

const EXPECTED: [Expected; 7] = [
    Expected {
        transport: Transport::Udp,
        throughput: [
            [448.0, 697.0, 1195.0, 1991.0],
            [444.0, 691.0, 1181.0, 1969.0],
            [429.0, 665.0, 1141.0, 1898.0],
        ],
        interarrival_sd: [0.07, 0.14, 0.26],
    },
    Expected {
        transport: Transport::UdpLite,
        throughput: [
            [448.0, 697.0, 1196.0, 1992.0],
            [444.0, 689.0, 1182.0, 1970.0],
            [427.0, 664.0, 1142.0, 1898.0],
        ],
        interarrival_sd: [0.07, 0.13, 0.26],
    },
    Expected {
        transport: Transport::Reno,
        throughput: [
            [450.0, 585.0, 586.0, 599.0],
            [450.0, 474.0, 482.0, 477.0],
            [302.0, 320.0, 281.0, 292.0],
        ],
        interarrival_sd: [6.0, 7.5, 17.9],
    },
    Expected {
        transport: Transport::RenoLarge,
        throughput: [
            [450.0, 700.0, 1156.0, 1341.0],
            [450.0, 655.0, 709.0, 616.0],
            [336.0, 323.0, 326.0, 339.0],
        ],
        interarrival_sd: [3.5, 5.6, 9.9],
    },
    Expected {
        transport: Transport::Westwood,
        throughput: [
            [450.0, 700.0, 1200.0, 1994.0],
            [450.0, 698.0, 1062.0, 1108.0],
            [392.0, 431.0, 451.0, 421.0],
        ],
        interarrival_sd: [1.8, 4.4, 7.5],
    },
    Expected {
        transport: Transport::Dccp,
        throughput: [
            [447.0, 697.0, 1196.0, 1440.0],
            [444.0, 689.0, 721.0, 731.0],
            [372.0, 392.0, 380.0, 394.0],
        ],
        interarrival_sd: [2.7, 5.0, 7.2],
    },
    Expected {
        transport: Transport::Sctp,
        throughput: [
            [450.0, 700.0, 1186.0, 1948.0],
            [450.0, 679.0, 899.0, 949.0],
            [312.0, 286.0, 316.0, 321.0],
        ],
        interarrival_sd: [2.9, 12.6, 56.8],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_beyond_noise_fails() {
        let of = |values: &[f64]| comparison("x".to_owned(), 100.0, values, 1.0).unwrap();
        assert!(of(&[100.5; 5]).holds());
        assert!(!of(&[102.0; 5]).holds());
        assert!(of(&[90.0, 95.0, 100.0, 85.0, 92.0]).holds());
        assert!(judge(&[of(&[102.0; 5]), of(&[102.0; 5]), of(&[102.0; 5])]).is_err());
        assert!(judge(&[of(&[100.0; 5])]).is_ok());
        assert!(comparison("x".to_owned(), 1.0, &[1.0, 1.0], 1.0).is_none());
    }

    #[test]
    fn few_may_differ_by_chance() {
        assert_eq!((allowed_out(1), allowed_out(105)), (0, 4));
    }
}
