/// The place of a signal in a frame's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bits {
    /// First bit: the least significant one of a little-endian signal, and the most significant
    /// one of a big-endian signal counted from the first byte's highest bit.
    first: u16,
    length: u8,
    order: Order,
}

/// Order of a signal's bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Intel's: the start bit is the least significant.
    Little,
    /// Motorola's: the start bit is the most significant.
    Big,
}

impl Bits {
    /// Returns the place of `length` bits from `start`, as a DBC numbers them, in `bytes` of data;
    /// `None` if they do not fit or are not 1 to 64.
    pub(crate) fn new(start: u64, length: u64, order: Order, bytes: usize) -> Option<Self> {
        let start = u16::try_from(start).ok()?;
        let first = match order {
            Order::Little => start,
            Order::Big => start / 8 * 8 + (7 - start % 8),
        };
        let length = u8::try_from(length).ok().filter(|length| (1..=64).contains(length))?;
        let end = usize::from(first) + usize::from(length);
        (end <= 8 * bytes).then_some(Self { first, length, order })
    }

    /// Returns the number of bits.
    pub(crate) fn length(self) -> u32 {
        self.length.into()
    }

    /// Returns the byte that the signal fills, if it fills exactly one.
    pub(crate) fn byte(self) -> Option<usize> {
        (self.length == 8 && self.first.is_multiple_of(8)).then_some(usize::from(self.first / 8))
    }

    /// Returns whether the two places have a bit in common.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.places().any(|place| other.places().any(|its| its == place))
    }

    /// Returns the value in `data`; bits beyond its end are 0.
    pub(crate) fn get(self, data: &[u8]) -> u64 {
        self.places().enumerate().fold(0, |value, (index, (byte, bit))| {
            let byte = data.get(byte).copied().unwrap_or(0);
            value | u64::from(byte >> bit & 1) << index
        })
    }

    /// Writes the lowest bits of `value` into `data`; bits beyond its end are left out.
    pub(crate) fn set(self, data: &mut [u8], value: u64) {
        for (index, (byte, bit)) in self.places().enumerate() {
            if let Some(byte) = data.get_mut(byte) {
                *byte = *byte & !(1 << bit) | ((value >> index & 1) as u8) << bit;
            }
        }
    }

    /// Returns byte and bit of each bit, the least significant first.
    fn places(self) -> impl Iterator<Item = (usize, u32)> {
        let Self { first, length, order } = self;
        (0..u16::from(length)).map(move |index| match order {
            Order::Little => {
                let at = first + index;
                (usize::from(at / 8), u32::from(at % 8))
            }
            Order::Big => {
                let at = first + u16::from(length) - 1 - index;
                (usize::from(at / 8), u32::from(7 - at % 8))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bits_are_where_a_dbc_says() {
        let little = Bits::new(4, 12, Order::Little, 8).unwrap();
        assert_eq!(little.get(&[0xA0, 0xBC]), 0xBCA);
        // Toyota's STEER_ANGLE, 3|12@0, and WHEEL_SPEED_FR, 6|15@0.
        let big = Bits::new(3, 12, Order::Big, 8).unwrap();
        assert_eq!(big.get(&[0xFA, 0xBC]), 0xABC);
        assert_eq!(Bits::new(6, 15, Order::Big, 2).unwrap().get(&[0xFF, 0xFE]), 0x7FFE);
        assert_eq!(Bits::new(63, 8, Order::Big, 8).unwrap().byte(), Some(7));
        assert_eq!(Bits::new(8, 8, Order::Little, 8).unwrap().byte(), Some(1));
        assert_eq!(Bits::new(9, 8, Order::Little, 8).unwrap().byte(), None);
    }

    #[test]
    fn bits_outside_the_data_are_refused() {
        assert!(Bits::new(56, 9, Order::Little, 8).is_none());
        assert!(Bits::new(56, 2, Order::Big, 8).is_none(), "the last bit but one is bit 57");
        assert!(Bits::new(57, 2, Order::Big, 8).is_some());
        assert!(Bits::new(0, 0, Order::Little, 8).is_none());
        assert!(Bits::new(0, 65, Order::Little, 64).is_none());
        assert!(Bits::new(u64::MAX, 8, Order::Little, 64).is_none());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else_changes(
            start in 0_u64..512,
            length in 1_u64..=64,
            is_little: bool,
            value: u64,
            before in proptest::collection::vec(any::<u8>(), 64),
        ) {
            let order = if is_little { Order::Little } else { Order::Big };
            let Some(bits) = Bits::new(start, length, order, 64) else { return Ok(()) };
            let mut data = before.clone();
            bits.set(&mut data, value);
            let mask = u64::MAX >> (64 - length);
            prop_assert_eq!(bits.get(&data), value & mask);
            bits.set(&mut data, bits.get(&before));
            prop_assert_eq!(&data, &before);
            // Data that is too short is read and written as far as it goes.
            bits.set(&mut data[..3], value);
            prop_assert_eq!(bits.get(&[]), 0);
        }
    }
}
