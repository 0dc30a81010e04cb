use super::{Error, Stream, binomial};

/// The distribution of the in-order delay D of a source packet, in slots: from the slot that
/// carries it to the slot after which it and all packets before it are known.
///
/// D = 0 for a packet that arrives when nothing before it is missing; the propagation time of a
/// slot is not counted. A delayed packet always waits for a repair packet, so D is never a nonzero
/// multiple of l. A receiver that uses source packets as soon as they are known, out of order,
/// waits less than this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    stream: Stream,
}

impl Delay {
    pub(super) fn new(stream: Stream) -> Delay {
        Delay { stream }
    }

    /// Returns E\[D\] in slots, exactly. O(l).
    ///
    /// Every packet of a busy time of S intervals waits for its last slot, except those before the
    /// first loss:
    ///
    /// ```text
    /// E[D] = { l(l-1)/2 E[S^2]
    ///          - sum over j = 2..l-1 of e(1-e)^(j-1) [(j-1) l (1 + (l-j) e/(1-z)) - j(j-1)/2] }
    ///        / ((l-1) E[S+])
    /// ```
    ///
    /// \[STREAM\] does not have this formula, only [`bound`](Self::bound).
    pub fn mean(&self) -> f64 {
        let (l, e, z) = (self.stream.l(), self.stream.erasure_rate, self.stream.load());
        if e == 0.0 {
            return 0.0;
        }
        let busy = self.stream.busy_time();
        let before_first_loss: f64 = (2..self.stream.interval)
            .map(|first_loss| {
                let j = f64::from(first_loss);
                let saved = (j - 1.0) * l * (1.0 + (l - j) * e / (1.0 - z)) - j * (j - 1.0) / 2.0;
                e * self.stream.kept(j - 1.0) * saved
            })
            .sum();
        let all = l * (l - 1.0) / 2.0 * busy.second_moment();
        (all - before_first_loss) / ((l - 1.0) * busy.period_mean())
    }

    /// Returns the probability that a source packet is not delayed:
    /// P(D = 0) = (1 - e) (1 - (1 - e)^(l - 1)) / (e (l - 1) E\[S+\]).
    pub fn zero_probability(&self) -> f64 {
        let e = self.stream.erasure_rate;
        if e == 0.0 {
            return 1.0;
        }
        let others = self.stream.l() - 1.0;
        let loss_among_others = -(others * (-e).ln_1p()).exp_m1();
        let periods = others * self.stream.busy_time().period_mean();
        (1.0 - e) * loss_among_others / (e * periods)
    }

    /// Returns l E\[S^2\] / (2 E\[S+\]) slots, an upper bound on the mean delay: \[STREAM\] Theorem
    /// 2, corrected.
    ///
    /// The theorem divides the delays of a busy time by its slots, of which only l - 1 in l hold
    /// source packets: [`bound_printed`](Self::bound_printed) is too small by the factor (l - 1) /
    /// l.
    pub fn bound(&self) -> f64 {
        let busy = self.stream.busy_time();
        self.stream.l() * busy.second_moment() / (2.0 * busy.period_mean())
    }

    /// Returns (l - 1) E\[S^2\] / (2 E\[S+\]) slots: \[STREAM\] Theorem 2 as printed.
    ///
    /// This does not bound a source packet's mean delay: at l = 2, e = 0.1 the mean is 0.1424, this
    /// 0.0712.
    pub fn bound_printed(&self) -> f64 {
        self.bound() * self.stream.code_rate()
    }

    /// Returns P(D = slots). O(slots / l).
    pub fn pmf(&self, slots: u64) -> f64 {
        if slots == 0 {
            return self.zero_probability();
        }
        let l = u64::from(self.stream.interval);
        let (intervals, rest) = (slots / l, slots % l);
        if rest == 0 {
            return 0.0;
        }
        let mut walk = Walk::new(self.stream);
        for _ in 0..intervals {
            walk.next_interval();
        }
        walk.probability(rest as u32)
    }

    /// Returns P(D > slots). O(slots), absolute error about 1e-13.
    pub fn tail(&self, slots: u64) -> f64 {
        let mut rest = 1.0 - self.zero_probability();
        let l = u64::from(self.stream.interval);
        let mut walk = Walk::new(self.stream);
        for intervals in 0..=slots / l {
            let last = (slots - intervals * l).min(l - 1) as u32;
            rest -= (1..=last).map(|within| walk.probability(within)).sum::<f64>();
            walk.next_interval();
        }
        rest.max(0.0)
    }

    /// Returns the smallest number of slots that the share `share` of the source packets does not
    /// exceed. O(result).
    ///
    /// # Errors
    /// [`Error::Probability`] unless `0 < share <= 1 - 1e-9`, the limit of the precision.
    /// [`Error::Beyond`] if the result exceeds [`PERCENTILE_MAX`] slots, as it may close to a load
    /// of 1.
    pub fn percentile(&self, share: f64) -> Result<u64, Error> {
        check_share(share)?;
        let mut reached = self.zero_probability();
        let mut walk = Walk::new(self.stream);
        let mut first = 0;
        if reached >= share {
            return Ok(0);
        }
        while first <= PERCENTILE_MAX {
            for within in 1..self.stream.interval {
                reached += walk.probability(within);
                if reached >= share {
                    return Ok(first + u64::from(within));
                }
            }
            first += u64::from(self.stream.interval);
            walk.next_interval();
        }
        Err(Error::Beyond { share, slots: PERCENTILE_MAX })
    }
}

/// Delay in slots up to which percentiles are searched, some seconds of work; a percentile beyond
/// it is an error.
pub const PERCENTILE_MAX: u64 = 10_000_000;

/// Checks that [`Delay::percentile`] is defined for `share`.
pub(super) fn check_share(share: f64) -> Result<(), Error> {
    if share > 0.0 && share <= 1.0 - 1e-9 {
        return Ok(());
    }
    Err(Error::Probability { probability: share })
}

/// A walk up the distribution of the delay, interval by interval.
///
/// The packet in slot j = 1..l-1 of an interval, t intervals before the one in which the busy time
/// ends, waits l - j + l t slots. In a renewal period this happens if S >= t + 2, or if S = t + 1
/// and the interval is the first one and has lost a source packet in its first j slots:
///
/// ```text
/// P(D = l - j + l t) = [P(S >= t+2) + f(j, t+1)] / ((l-1) E[S+])
/// f(j, s) = P(S = s, a loss in the first j slots) = j / (s l - j) (1-e)^j P(B(s l - j, e) = s)
/// ```
///
/// with B binomial. f follows from the ballot theorem that also yields the pmf of S, which is f(l -
/// 1, s). The sum over all j and t yields the closed forms of the mean and of P(D = 0).
struct Walk {
    stream: Stream,
    /// s = t + 1: number of intervals from the packet's own to the last of its busy time, both
    /// included.
    intervals: u64,
    /// P(S > s): the probability of a busy time of more than `intervals` intervals.
    longer: f64,
    /// (l - 1) E\[S+\]: source packets of a renewal period.
    packets: f64,
}

impl Walk {
    fn new(stream: Stream) -> Walk {
        let busy = stream.busy_time();
        // 1 - p(0), without loss of digits, minus p(1).
        let any = -((stream.l() - 1.0) * (-stream.erasure_rate).ln_1p()).exp_m1();
        let packets = (stream.l() - 1.0) * busy.period_mean();
        Walk { stream, intervals: 1, longer: (any - busy.pmf(1)).max(0.0), packets }
    }

    fn next_interval(&mut self) {
        self.intervals += 1;
        self.longer = (self.longer - self.stream.busy_time().pmf(self.intervals)).max(0.0);
    }

    /// Returns P(D = within + l (s - 1)), for `within` in 1..l.
    fn probability(&self, within: u32) -> f64 {
        let slot = u64::from(self.stream.interval - within);
        let trials = self.intervals * u64::from(self.stream.interval) - slot;
        let ballot = slot as f64 / trials as f64 * self.stream.kept(slot as f64);
        let losses = binomial::ln_pmf(self.intervals, trials, self.stream.erasure_rate).exp();
        (self.longer + ballot * losses) / self.packets
    }
}
