use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tautline_units::{Duration, Instant};

/// The times in which an endpoint's process does not run: its machine has other work, or its host does.
///
/// What comes meanwhile waits in the sockets; nothing is sent and no timer fires until the end.
#[derive(Clone, Debug)]
pub struct Stalls {
    rng: ChaCha20Rng,
    every: Duration,
    length_max: Duration,
    from: Instant,
    until: Instant,
}

impl Stalls {
    /// Returns stalls that begin up to twice `every` apart and last up to `length_max`, each as likely as
    /// another, drawn from `seed`.
    pub fn new(every: Duration, length_max: Duration, seed: u64) -> Self {
        let rng = ChaCha20Rng::seed_from_u64(seed);
        let mut stalls = Self { rng, every, length_max, from: Instant::ZERO, until: Instant::ZERO };
        stalls.draw();
        stalls
    }

    /// Returns the end of the stall that lasts at `now`, if one does.
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
