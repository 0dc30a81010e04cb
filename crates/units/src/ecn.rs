/// The codepoint of a packet of IP by which the network says that it is congested ([RFC3168]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecn {
    /// Its sender understands no marks: Not-ECT.
    #[default]
    NotEct = 0b00,
    /// Its sender wants low delay, and answers each mark a little ([RFC9331]): ECT(1).
    Ect1 = 0b01,
    /// Its sender answers a mark as a loss ([RFC3168]): ECT(0).
    Ect0 = 0b10,
    /// The network marked it: CE.
    Ce = 0b11,
}

impl Ecn {
    /// Returns the codepoint in the two lowest bits of `bits`, as IPv4's second byte has it.
    pub const fn of_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            0b11 => Self::Ce,
            _ => Self::NotEct,
        }
    }

    /// Returns its two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codepoint_is_its_two_bits() {
        for bits in 0..=u8::MAX {
            assert_eq!(Ecn::of_bits(bits).bits(), bits & 3);
        }
    }
}
