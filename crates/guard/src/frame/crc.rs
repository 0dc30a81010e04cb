/// Computes the CRC-32/P4 of the concatenated runs of bytes: reflected polynomial 0xF4ACFB13,
/// initial value and final XOR all ones.
pub(super) fn p4(runs: &[&[u8]]) -> u32 {
    end(runs.iter().fold(BEGIN, |crc, run| p4_on(crc, run)))
}

/// Continues a CRC, which starts as [`BEGIN`], over further bytes; [`end`] completes it.
pub(super) fn p4_on(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

/// Returns the complete CRC.
pub(super) const fn end(crc: u32) -> u32 {
    !crc
}

/// CRC before the first byte.
pub(super) const BEGIN: u32 = u32::MAX;

/// Contribution of each value of a byte to the CRC.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL.reverse_bits() } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Generator polynomial of [E2E], profile 4.
const POLYNOMIAL: u32 = 0xF4AC_FB13;

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values that AUTOSAR's "Specification of CRC Routines" lists for CRC32P4.
    #[test]
    fn published_check_values() {
        let values: [(&[u8], u32); 7] = [
            (&[0, 0, 0, 0], 0x6FB3_2240),
            (&[0xF2, 0x01, 0x83], 0x4F72_1A25),
            (&[0x0F, 0xAA, 0x00, 0x55], 0x2066_2DF8),
            (&[0x00, 0xFF, 0x55, 0x11], 0x9BD7_996E),
            (&[0x33, 0x22, 0x55, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF], 0xA65A_343D),
            (&[0x92, 0x6B, 0x55], 0xEE68_8A78),
            (b"123456789", 0x1697_D06A),
        ];
        for (bytes, crc) in values {
            assert_eq!(p4(&[bytes]), crc, "{bytes:02x?}");
            let (head, tail) = bytes.split_at(2);
            assert_eq!(p4(&[head, tail]), crc);
        }
    }

    /// The example of a protected frame in AUTOSAR's "E2E Protocol Specification", profile 4.
    #[test]
    fn published_frame() {
        let head = [0x00, 0x10, 0x00, 0x00, 0x0A, 0x0B, 0x0C, 0x0D];
        assert_eq!(p4(&[&head, &[0; 4]]), 0x862B_0556);
    }
}
