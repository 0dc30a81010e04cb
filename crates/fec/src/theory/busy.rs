use super::{Stream, binomial};

/// The distribution of the busy time S: the intervals from the one that begins with nothing missing
/// and loses a source packet to the repair packet after which nothing is missing again.
///
/// S = 0 is an interval in which no source packet is lost. The renewal period S+ = max(S, 1) counts
/// that interval as well. Source: \[STREAM\] Theorem 1 and Corollary 1; the busy time is that of a
/// queue with constant service, \[TANNER\].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusyTime {
    stream: Stream,
}

impl BusyTime {
    pub(super) fn new(stream: Stream) -> BusyTime {
        BusyTime { stream }
    }

    /// Returns P(S = intervals).
    ///
    /// p(0) = (1 - e)^(l - 1); for s >= 1, p(s) = (l - 1)/s e^s (1 - e)^(s (l - 1)) C((s - 1) l,
    /// s - 1). The relative error is about 1e-13 for all relevant s: computed in logarithms. O(1).
    /// Source: \[STREAM\] eq. (2).
    pub fn pmf(&self, intervals: u64) -> f64 {
        let Stream { erasure_rate: e, .. } = self.stream;
        let others = self.stream.l() - 1.0;
        if intervals == 0 {
            return self.stream.kept(others);
        }
        let trials = (intervals - 1).saturating_mul(u64::from(self.stream.interval));
        let repeated = binomial::ln_pmf(intervals - 1, trials, e).exp();
        others / intervals as f64 * e * self.stream.kept(others) * repeated
    }

    /// Returns P(S > intervals).
    ///
    /// O(intervals) if the result is not small, otherwise O(1 / (1 - z)^2). Relative error about
    /// 1e-11; for loads within about 1e-4 of 1, absolute error about 1e-12.
    pub fn survival(&self, intervals: u64) -> f64 {
        let decay = self.tail_decay();
        let upper_terms = 50.0 / (-decay.ln()).max(f64::MIN_POSITIVE);
        if (intervals as f64) < upper_terms {
            let rest = 1.0 - (0..=intervals).map(|s| self.pmf(s)).sum::<f64>();
            if rest > DIFFERENCE_MIN || upper_terms > UPPER_TERMS_MAX {
                return rest.max(0.0);
            }
        }
        let mut sum = 0.0;
        for s in intervals + 1.. {
            let term = self.pmf(s);
            sum += term;
            // The terms fall at least as fast as `decay`.
            if term * decay <= sum * f64::EPSILON * (1.0 - decay) {
                break;
            }
        }
        sum
    }

    /// Returns E\[S\] = (l - 1) e (1 - e)^(l - 1) / (1 - z). Source: \[STREAM\] eq. (3).
    pub fn mean(&self) -> f64 {
        let Stream { erasure_rate: e, .. } = self.stream;
        let others = self.stream.l() - 1.0;
        others * e * self.stream.kept(others) / self.slack()
    }

    /// Returns E\[S^2\] = E\[S\] + l (l - 1) e^2 (1 - e)^l / (1 - z)^3. Source: \[STREAM\] eq. (4).
    pub fn second_moment(&self) -> f64 {
        self.mean() + self.bunching() / self.slack().powi(3)
    }

    /// Returns
    /// E\[S^3\] = E\[S^2\] + l (l - 1) e^2 (1 - e)^l (2 - 2e - l e^2 + l^2 e^2) / (1 - z)^5.
    ///
    /// It follows from the relation of the moments, E\[S^(n+1)\] = e (1 - e) / (1 - z) d/de
    /// E\[S^n\]. \[STREAM\] eq. (8) has a different polynomial:
    /// [`third_moment_printed`](Self::third_moment_printed).
    pub fn third_moment(&self) -> f64 {
        let (l, e) = (self.stream.l(), self.stream.erasure_rate);
        let polynomial = 2.0 - 2.0 * e - l * e * e + l * l * e * e;
        self.second_moment() + self.bunching() * polynomial / self.slack().powi(5)
    }

    /// Returns E\[S^3\] as printed in \[STREAM\] eq. (8), with 2 - 2e - 2 l e^2 + l e + l^2 e^3.
    ///
    /// It is 3 to 10 % too high at the loads and rates of the paper's Table I, which it reproduces.
    pub fn third_moment_printed(&self) -> f64 {
        let (l, e) = (self.stream.l(), self.stream.erasure_rate);
        let polynomial = 2.0 - 2.0 * e - 2.0 * l * e * e + l * e + l * l * e * e * e;
        self.second_moment() + self.bunching() * polynomial / self.slack().powi(5)
    }

    /// Returns E\[S+\] = (1 - e)^l / (1 - z), the mean renewal period in intervals.
    ///
    /// Its inverse is the share of intervals that begin with nothing missing.
    /// Source: \[STREAM\] eq. (5).
    pub fn period_mean(&self) -> f64 {
        self.stream.kept(self.stream.l()) / self.slack()
    }

    /// Returns E\[(S+)^2\] = E\[S^2\] + p(0).
    pub fn period_second_moment(&self) -> f64 {
        self.second_moment() + self.pmf(0)
    }

    /// Returns E\[(S+)^3\] = E\[S^3\] + p(0).
    pub fn period_third_moment(&self) -> f64 {
        self.third_moment() + self.pmf(0)
    }

    /// Returns P(S+ = 1) = (1 - e)^(l - 1) (1 - e + z): \[STREAM\] Corollary 1.
    pub fn period_one_probability(&self) -> f64 {
        let kept = self.stream.kept(self.stream.l() - 1.0);
        kept * (1.0 - self.stream.erasure_rate + self.stream.load())
    }

    /// Returns the factor by which P(S > s) falls per interval asymptotically: e (1 - e)^(l - 1)
    /// l^l / (l - 1)^(l - 1), by Stirling's formula from the pmf.
    pub fn tail_decay(&self) -> f64 {
        let (l, e) = (self.stream.l(), self.stream.erasure_rate);
        self.stream.load() * ((l - 1.0) * ((-e).ln_1p() - (-1.0 / l).ln_1p())).exp()
    }

    /// Returns an upper bound: P(S > intervals) <= exp(-intervals (1 - z)^2 / (1 + z)).
    ///
    /// This is Chernoff's bound on the losses in that number of intervals. The bound with the
    /// normal tail Q in the proof of \[STREAM\] Theorem 1 is an approximation that fails for many
    /// intervals.
    pub fn chernoff(&self, intervals: u64) -> f64 {
        (-(intervals as f64) / self.chernoff_scale()).exp()
    }

    /// Returns (1 + z) / (1 - z)^2: the intervals in which Chernoff's bound falls by a factor of e.
    pub(super) fn chernoff_scale(&self) -> f64 {
        (1.0 + self.stream.load()) / self.slack().powi(2)
    }

    /// Returns l (l - 1) e^2 (1 - e)^l, common to the higher moments.
    fn bunching(&self) -> f64 {
        let (l, e) = (self.stream.l(), self.stream.erasure_rate);
        l * (l - 1.0) * e * e * self.stream.kept(l)
    }

    fn slack(&self) -> f64 {
        1.0 - self.stream.load()
    }
}

/// Result below which P(S > s), computed as 1 minus the sum of the other probabilities, has lost
/// too many digits, so that summing the tail is worth its time.
const DIFFERENCE_MIN: f64 = 1e-4;

/// Number of terms above which the tail is not summed: it would take more than about one second.
const UPPER_TERMS_MAX: f64 = 1e7;
