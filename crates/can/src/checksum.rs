use crate::frame::Id;

/// A checksum of one byte over the other bytes of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Checksum {
    /// XOR of all other bytes.
    Xor,
    /// Sum of all other bytes modulo 256.
    Sum,
    /// CRC-8 of SAE J1850 over all other bytes.
    J1850,
    /// AUTOSAR's end-to-end protection, profile 1: CRC-8 over the data id and all other bytes.
    Profile1 {
        /// Number of 16 bits that both ends know, and that is not sent as a whole.
        data_id: u16,
        /// Bytes of the data id that the checksum includes.
        mode: Mode,
    },
    /// Profile 2: CRC-8 of polynomial 0x2F over all other bytes and one of 16 data ids, by counter.
    Profile2 {
        /// Data ids that both ends know, one for each value of the counter.
        data_ids: [u8; 16],
    },
    /// Toyota's: the sum of identifier, length and all other bytes modulo 256.
    Toyota,
}

/// Bytes of the data id that the checksum of profile 1 includes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Both bytes of the data id, the low one first.
    Both,
    /// Low byte of the data id for an even counter, high byte for an odd one.
    Alternating,
    /// Low byte of the data id only.
    Low,
    /// Low byte of the data id and a zero; the low four bits of the high byte are a signal in the
    /// data.
    Nibble,
}

impl Checksum {
    /// Computes the checksum over `data`, except the byte `at`, which holds it, of a message with
    /// this identifier and counter.
    pub(crate) fn compute(&self, id: Id, data: &[u8], at: usize, counter: u64) -> u8 {
        let others =
            || data.iter().enumerate().filter(|(byte, _)| *byte != at).map(|(_, byte)| *byte);
        match self {
            Self::Xor => others().fold(0, |sum, byte| sum ^ byte),
            Self::Sum => others().fold(0, u8::wrapping_add),
            Self::J1850 => !others().fold(0xFF, |crc, byte| step(crc, byte, 0x1D)),
            Self::Profile1 { data_id, mode } => {
                let [high, low] = data_id.to_be_bytes();
                let included: &[u8] = match mode {
                    Mode::Both => &[low, high],
                    Mode::Alternating if counter % 2 == 1 => &[high],
                    Mode::Alternating | Mode::Low => &[low],
                    Mode::Nibble => &[low, 0],
                };
                let all = included.iter().copied().chain(others());
                all.fold(0, |crc, byte| step(crc, byte, 0x1D))
            }
            Self::Profile2 { data_ids } => {
                let data_id = data_ids[(counter % 16) as usize];
                !others().chain([data_id]).fold(0xFF, |crc, byte| step(crc, byte, 0x2F))
            }
            Self::Toyota => {
                let length = u8::try_from(data.len()).unwrap_or_default();
                let id = id.number().to_be_bytes();
                id.into_iter().chain([length]).chain(others()).fold(0, u8::wrapping_add)
            }
        }
    }
}

/// Returns the CRC after one more byte.
fn step(crc: u8, byte: u8, polynomial: u8) -> u8 {
    (0..8).fold(crc ^ byte, |crc, _| crc << 1 ^ if crc & 0x80 != 0 { polynomial } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes 2 to 7 of the vectors.
    const DATA: [u8; 6] = [0x22, 0x33, 0x44, 0x55, 0x66, 0x77];

    fn of(checksum: &Checksum, second: u8, counter: u64) -> u8 {
        let data = [&[0xEE, second], &DATA[..]].concat();
        checksum.compute(Id::Standard(0), &data, 0, counter)
    }

    #[test]
    fn crcs_have_the_check_values_of_their_catalogue() {
        let check = |checksum: Checksum| {
            let data = [b"123456789", &[0][..]].concat();
            checksum.compute(Id::Standard(0), &data, 9, 0)
        };
        assert_eq!(check(Checksum::J1850), 0x4B);
        let crc = b"123456789".iter().fold(0xFF, |crc, byte| step(crc, *byte, 0x2F));
        assert_eq!(!crc, 0xDF);
        assert_eq!(check(Checksum::Xor), 0x31);
        assert_eq!(check(Checksum::Sum), 0xDD);
    }

    /// As computed by the library `autosar-e2e`.
    #[test]
    fn profile_1_agrees_with_another_implementation() {
        let vectors = [
            (Mode::Both, [0xB2, 0xEF, 0xB3]),
            (Mode::Alternating, [0xE9, 0x44, 0xE8]),
            (Mode::Low, [0xE9, 0xB4, 0xE8]),
        ];
        for (mode, expected) in vectors {
            let checksum = Checksum::Profile1 { data_id: 0x1234, mode };
            assert_eq!([0, 1, 14].map(|counter| of(&checksum, counter as u8, counter)), expected);
        }
        let nibble = Checksum::Profile1 { data_id: 0x1234, mode: Mode::Nibble };
        assert_eq!([0, 1, 14].map(|it| of(&nibble, 0x20 | it as u8, it)), [0xFA, 0xA7, 0xFB]);
        let zeros = Checksum::Profile1 { data_id: 0x123, mode: Mode::Both };
        assert_eq!(zeros.compute(Id::Standard(0), &[0; 8], 0, 0), 0xCC, "AUTOSAR's own example");
    }

    /// As computed by the library `autosar-e2e`.
    #[test]
    fn profile_2_agrees_with_another_implementation() {
        let data_ids = std::array::from_fn(|index| 0x10 + index as u8);
        let checksum = Checksum::Profile2 { data_ids };
        assert_eq!([0, 5, 15].map(|it| of(&checksum, it as u8, it)), [0x34, 0x7C, 0xEC]);
    }

    #[test]
    fn toyotas_sum_is_that_of_its_frames() {
        // STEER_TORQUE_SENSOR and GEAR_PACKET of a RAV4.
        let frame = [0x08, 0xFF, 0xFB, 0, 0, 0, 0x18, 0x84];
        assert_eq!(Checksum::Toyota.compute(Id::Standard(0x260), &frame, 7, 0), 0x84);
    }
}
