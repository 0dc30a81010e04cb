use super::{Error, Stream};

impl Stream {
    /// Returns a length in slots that suffices for a stream to deliver at least `goodput` source
    /// packets per slot on average, except with probability `failure`.
    ///
    /// Only the busy time cut short by the end of the stream is lost, at most f intervals except
    /// with that probability: N >= (l - 1) f / ((l - 1)/l - goodput), with f = (1 + z)/(1 - z)^2
    /// ln(1 / failure) by Chernoff's bound. The length is sufficient, not necessary. Source:
    /// \[STREAM\] Theorem 3 and its proof, which uses an approximation by Q instead of the bound.
    /// Hence the code reaches any rate below the link's capacity 1 - e.
    ///
    /// # Errors
    /// [`Error::Probability`] unless `0 < failure < 1`; [`Error::Goodput`] unless
    /// `0 <= goodput < (l - 1)/l`.
    pub fn length_for_goodput(&self, goodput: f64, failure: f64) -> Result<f64, Error> {
        if !(failure > 0.0 && failure < 1.0) {
            return Err(Error::Probability { probability: failure });
        }
        let code_rate = self.code_rate();
        if !(0.0..code_rate).contains(&goodput) {
            return Err(Error::Goodput { asked: goodput, code_rate });
        }
        let intervals = -self.busy_time().chernoff_scale() * failure.ln();
        Ok((self.l() - 1.0) * intervals / (code_rate - goodput))
    }
}
