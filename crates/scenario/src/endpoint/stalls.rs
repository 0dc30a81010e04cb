use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tautline_units::{Duration, Instant};

/// Times in which an endpoint's process does not run, because the machine or its host is busy.
///
/// Incoming datagrams wait in the sockets; until the end nothing is sent and no timer fires.
#[derive(Clone, Debug)]
pub struct Stalls {
    rng: ChaCha20Rng,
    every: Duration,
    length_max: Duration,
    from: Instant,
    until: Instant,
}

impl Stalls {
    /// Creates stalls with uniformly drawn gaps of up to twice `every` and uniform lengths of up to
    /// `length_max`, from `seed`.
    pub fn new(every: Duration, length_max: Duration, seed: u64) -> Self {
        let rng = ChaCha20Rng::seed_from_u64(seed);
        let mut stalls = Self { rng, every, length_max, from: Instant::ZERO, until: Instant::ZERO };
        stalls.draw();
        stalls
    }

    /// Returns the end of the stall in progress at `now`, if any.
    pub(super) fn end_at(&mut self, now: Instant) -> Option<Instant> {
        while now >= self.until {
            self.draw();
        }
        (now >= self.from).then_some(self.until)
    }

    fn draw(&mut self) {
        let mut share = || self.rng.next_u32() as f64 / u32::MAX as f64;
        let (gap, length) = (2.0 * share(), share());
        self.from = self.until + self.every.mul_f64(gap);
        self.until = self.from + self.length_max.mul_f64(length).max(Duration::from_nanos(1));
    }
}
