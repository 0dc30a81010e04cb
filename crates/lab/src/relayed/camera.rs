use tautline_units::{Bitrate, ByteCount, Duration};

/// Is a source of pictures, each a unit, or of slices, if it has so many a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Camera {
    pub(crate) per_second: u64,
    /// The mean of what it sends, key pictures included.
    pub(crate) rate: Bitrate,
    /// Every so many units one is a key picture.
    pub(crate) key_every: u64,
    /// As many times as large as another.
    pub(crate) key_factor: f64,
    /// Whether it heeds the session's budget, above `rate` and below it.
    pub(crate) adapts: bool,
}

impl Camera {
    /// A camera as a tele-operated vehicle of 2011 may have had it; the paper does not say. Ours:
    /// 15 pictures a second, 480 kbit/s, a key picture every other second that is three times as
    /// large; its rate is set by hand.
    pub(crate) fn of_2011() -> Self {
        Self {
            per_second: 15,
            rate: Bitrate::from_kbps(480),
            key_every: 30,
            key_factor: 3.0,
            adapts: false,
        }
    }

    /// Returns the time between two units.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_nanos(1_000_000_000 / self.per_second)
    }

    /// Returns the size of unit `number` under `budget`; `None`: a pause.
    pub(super) fn unit_bytes(&self, number: u64, budget: Bitrate) -> Option<ByteCount> {
        if budget == Bitrate::ZERO {
            return None;
        }
        let rate = if self.adapts { budget.min(self.rate) } else { self.rate };
        let every = self.key_every as f64;
        // Of `every` units, one counts `key_factor` times.
        let plain = (rate * self.interval()).get() as f64 * every / (every - 1.0 + self.key_factor);
        let factor = if number.is_multiple_of(self.key_every) { self.key_factor } else { 1.0 };
        Some(ByteCount::new((plain * factor) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_have_the_rate_in_the_mean() {
        let camera = Camera::of_2011();
        let bytes = |number| camera.unit_bytes(number, Bitrate::from_mbps(9)).unwrap().get();
        let total: u64 = (0..150).map(bytes).sum();
        assert!(total.abs_diff(600_000) < 600, "{total}");
        assert!(bytes(30).abs_diff(3 * bytes(31)) <= 3);
        assert_eq!(camera.unit_bytes(0, Bitrate::ZERO), None);
    }

    #[test]
    fn only_a_camera_that_adapts_heeds_the_budget() {
        let camera = Camera { adapts: true, ..Camera::of_2011() };
        let small = camera.unit_bytes(1, Bitrate::from_kbps(48)).unwrap();
        let large = camera.unit_bytes(1, Bitrate::from_mbps(48)).unwrap();
        assert!(large.get() / small.get() >= 9);
        assert_eq!(Some(large), Camera::of_2011().unit_bytes(1, Bitrate::from_kbps(48)));
    }
}
