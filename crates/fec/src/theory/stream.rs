use super::error::Error;

/// A streaming code on a link with independent erasures: the validated pair (l, e).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    pub(super) interval: u32,
    pub(super) erasure_rate: f64,
}

impl Stream {
    /// Returns the stream with one repair packet after every `interval - 1` source packets, on a
    /// link that erases the share `erasure_rate` of all packets, repair packets included.
    ///
    /// # Errors
    /// [`Error::Interval`] below 2, [`Error::ErasureRate`] unless `0 <= erasure_rate < 1`,
    /// [`Error::Overload`] unless `interval * erasure_rate < 1`.
    pub fn new(interval: u32, erasure_rate: f64) -> Result<Stream, Error> {
        if interval < 2 {
            return Err(Error::Interval { interval });
        }
        if !(0.0..1.0).contains(&erasure_rate) {
            return Err(Error::ErasureRate { erasure_rate });
        }
        if f64::from(interval) * erasure_rate >= 1.0 {
            return Err(Error::Overload { interval, erasure_rate });
        }
        Ok(Stream { interval, erasure_rate })
    }

    /// Returns the number of slots from one repair packet to the next: l.
    pub fn interval(&self) -> u32 {
        self.interval
    }

    /// Returns the share of packets that the link erases: e.
    pub fn erasure_rate(&self) -> f64 {
        self.erasure_rate
    }

    /// Returns the share of slots that carry source packets: (l - 1) / l.
    pub fn code_rate(&self) -> f64 {
        (self.l() - 1.0) / self.l()
    }

    /// Returns the used share of the repair capacity: z = l e, below 1.
    pub fn load(&self) -> f64 {
        self.l() * self.erasure_rate
    }

    pub(super) fn l(&self) -> f64 {
        f64::from(self.interval)
    }

    /// Returns (1 - e)^exponent, exact also for small e and large exponents.
    pub(super) fn kept(&self, exponent: f64) -> f64 {
        (exponent * (-self.erasure_rate).ln_1p()).exp()
    }
}
