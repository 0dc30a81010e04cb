use super::Stream;

impl Stream {
    /// Returns the number of multiplications and additions on coefficients that Gaussian
    /// elimination takes per source packet: (2/3) E\[S^3\] (1 - z) / ((l - 1) (1 - e)^l).
    ///
    /// A busy time of S intervals solves S equations in (2/3) S^3 operations, and every renewal
    /// period has (l - 1) E\[S+\] source packets. Source: \[STREAM\] Theorem 4, whose printed form
    /// is [`operations_printed`](Self::operations_printed). This estimates only the order of
    /// magnitude: a decoder that eliminates as packets arrive does different work, on packets
    /// rather than on coefficients.
    pub fn operations(&self) -> f64 {
        2.0 / 3.0 * self.busy_time().third_moment() / self.packets_per_period()
    }

    /// Returns the value printed in \[STREAM\] eq. (7) and its Table I: 3/2 instead of 2/3, and the
    /// third moment of [eq. (8)](super::BusyTime::third_moment_printed).
    pub fn operations_printed(&self) -> f64 {
        3.0 / 2.0 * self.busy_time().third_moment_printed() / self.packets_per_period()
    }

    fn packets_per_period(&self) -> f64 {
        (self.l() - 1.0) * self.busy_time().period_mean()
    }
}
