use tautline_units::Instant;

/// Prefix of a unit inside its block; the code protects it too.
///
/// ```text
///  0                       3                                       8
/// +-------+-------+-------+-------+-------+-------+-------+-------+
/// | the unit's length     | handed over at, us mod 2^40, sender's  |
/// +-----------------------+----------------------------------------+
/// | unit ..  zeros to k symbols of equal length
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The unit's length in bytes, below 2^24.
    pub length: u32,
    /// Hand-over time of the unit: the sender's clock in microseconds, modulo 2^40 (12.7 days).
    pub sent_at_low: u64,
}

impl Prefix {
    /// Length of the prefix in bytes.
    pub const BYTES: usize = 8;

    /// Creates the prefix of a unit of `length` bytes, handed over at `sent_at`.
    ///
    /// # Panics
    /// If `length` is 2^24 or more.
    pub fn new(length: usize, sent_at: Instant) -> Self {
        assert!(length < 1 << 24, "units are bounded far below 2^24 bytes");
        Self { length: length as u32, sent_at_low: sent_at.as_micros() & SENT_MASK }
    }

    /// Returns the encoded prefix, in the layout of [`Prefix`].
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        (u64::from(self.length) << SENT_BITS | self.sent_at_low).to_be_bytes()
    }

    /// Reads the prefix of `block`; `None` if the block is shorter.
    pub fn parse(block: &[u8]) -> Option<Self> {
        let bits = u64::from_be_bytes(*block.first_chunk()?);
        Some(Self { length: (bits >> SENT_BITS) as u32, sent_at_low: bits & SENT_MASK })
    }

    /// Returns the hand-over time on the sender's clock: of all times with these low 40 bits, the
    /// one closest to `peer_now`, the present time on that clock.
    pub fn sent_at(self, peer_now: Instant) -> Instant {
        let now = peer_now.as_micros();
        let micros = (now & !SENT_MASK) | self.sent_at_low;
        let half = 1_u64 << (SENT_BITS - 1);
        let nearest = if micros > now.saturating_add(half) && micros > SENT_MASK {
            micros - (SENT_MASK + 1)
        } else if micros.saturating_add(half) < now {
            micros.saturating_add(SENT_MASK + 1)
        } else {
            micros
        };
        Instant::from_micros(nearest)
    }
}

const SENT_BITS: u32 = 40;
const SENT_MASK: u64 = (1 << SENT_BITS) - 1;
