use crate::bits::Bits;
use crate::checksum::Checksum;
use crate::frame::Id;

/// Places of counter and checksum in a message's data; `None` for the one that it does not have.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Seal {
    pub(crate) counter: Option<Counter>,
    pub(crate) checksum: Option<Check>,
}

/// A signal that grows by one with each frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Counter {
    pub(crate) bits: Bits,
    /// Highest value, after which it is 0 again.
    pub(crate) max: u64,
}

/// Kind of a message's checksum, and its place in the data.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Check {
    pub(crate) kind: Checksum,
    /// Index of the byte that holds the checksum.
    pub(crate) at: usize,
    /// Place and value of the data id's four bits that are in the data; `None` if none are.
    pub(crate) nibble: Option<(Bits, u64)>,
}

/// Mismatch of a received frame's checksum or counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mismatch {
    /// The checksum does not match: the data is not what was sent.
    Checksum,
    /// The counter is that of the frame before: this frame was received before.
    Repeated,
    /// The counter has skipped values: frames are missing before this one.
    Skipped,
}

impl Seal {
    /// Writes counter, nibble of the data id and checksum, those that the message has, into its
    /// data; `count` is the number of frames of the message sent before.
    pub(crate) fn write(&self, id: Id, data: &mut [u8], count: u64) {
        if let Some(Counter { bits, max }) = self.counter {
            bits.set(data, count % max.saturating_add(1).max(1));
        }
        let Some(check) = &self.checksum else { return };
        if let Some((bits, value)) = check.nibble {
            bits.set(data, value);
        }
        data[check.at] = check.kind.compute(id, data, check.at, self.count(data));
    }

    /// Returns the first mismatch of a message's data, the counter of the newest frame before being
    /// `last`; `None` if checksum and counter are as expected.
    pub(crate) fn mismatch(&self, id: Id, data: &[u8], last: Option<u64>) -> Option<Mismatch> {
        if let Some(check) = &self.checksum {
            let is_id = check.nibble.is_none_or(|(bits, value)| bits.get(data) == value);
            if !is_id || data[check.at] != check.kind.compute(id, data, check.at, self.count(data))
            {
                return Some(Mismatch::Checksum);
            }
        }
        let (Counter { max, .. }, last) = (self.counter?, last?);
        let count = self.count(data);
        if count == last {
            return Some(Mismatch::Repeated);
        }
        let next = if last >= max { 0 } else { last + 1 };
        (count != next).then_some(Mismatch::Skipped)
    }

    /// Returns the counter in a message's data; 0 if it has none.
    pub(crate) fn count(&self, data: &[u8]) -> u64 {
        self.counter.map_or(0, |counter| counter.bits.get(data))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits::Order;

    fn seal() -> Seal {
        let bits = Bits::new(8, 4, Order::Little, 8).unwrap();
        let kind = Checksum::Profile1 { data_id: 0x343, mode: crate::checksum::Mode::Both };
        let checksum = Some(Check { kind, at: 0, nibble: None });
        Seal { counter: Some(Counter { bits, max: 14 }), checksum }
    }

    fn written(count: u64) -> [u8; 8] {
        let mut data = [7; 8];
        seal().write(Id::Standard(1), &mut data, count);
        data
    }

    #[test]
    fn counters_go_on_after_their_highest_value() {
        let mismatch = |count, last| seal().mismatch(Id::Standard(1), &written(count), last);
        assert_eq!(mismatch(15, Some(14)), None, "15 is written as 0");
        assert_eq!(mismatch(3, None), None, "the first");
        assert_eq!(mismatch(3, Some(3)), Some(Mismatch::Repeated));
        assert_eq!(mismatch(3, Some(1)), Some(Mismatch::Skipped));
        assert_eq!(mismatch(3, Some(4)), Some(Mismatch::Skipped));
    }

    proptest! {
        #[test]
        fn any_changed_bit_is_found(count in 0_u64..15, bit in 0_usize..64) {
            let mut data = written(count);
            prop_assert_eq!(seal().mismatch(Id::Standard(1), &data, None), None);
            data[bit / 8] ^= 1 << (bit % 8);
            let found = seal().mismatch(Id::Standard(1), &data, None);
            prop_assert_eq!(found, Some(Mismatch::Checksum));
        }
    }
}
