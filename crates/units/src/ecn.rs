/// The ECN codepoint of an IP packet, by which the network signals congestion ([RFC3168]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecn {
    /// Not-ECT: the sender does not support marks.
    #[default]
    NotEct = 0b00,
    /// ECT(1): the sender wants low delay and responds to each mark with a small reduction
    /// ([RFC9331]).
    Ect1 = 0b01,
    /// ECT(0): the sender responds to a mark as to a loss ([RFC3168]).
    Ect0 = 0b10,
    /// CE: the network marked the packet.
    Ce = 0b11,
}

impl Ecn {
    /// Returns the codepoint in the two lowest bits of `bits`, as in IPv4's second byte.
    pub const fn of_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            0b11 => Self::Ce,
            _ => Self::NotEct,
        }
    }

    /// Returns the two bits of the codepoint.
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
