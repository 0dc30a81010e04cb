use tautline_units::Ecn;

/// A packet in transit: a datagram's payload, or a complete IP packet, and its codepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    pub(super) ecn: Ecn,
}

/// Returns the codepoint in the header of an IP packet; Not-ECT for anything else.
pub(super) fn ecn_of_ip(packet: &[u8]) -> Ecn {
    match (version_of(packet), packet) {
        (Some(Version::Four), [_, second, ..]) => Ecn::of_bits(*second),
        (Some(Version::Six), [_, second, ..]) => Ecn::of_bits(*second >> 4),
        (_, _) => Ecn::NotEct,
    }
}

/// Marks an IP packet as congested, and updates its checksum if it has one ([RFC1624] 3); ignores
/// anything else.
pub(super) fn mark_ip(packet: &mut [u8]) {
    match (version_of(packet), packet) {
        (Some(Version::Four), [first, second, rest @ ..]) => {
            let before = u16::from_be_bytes([*first, *second]);
            *second |= Ecn::Ce.bits();
            let after = u16::from_be_bytes([*first, *second]);
            if let Some(checksum) = rest.get_mut(IPV4_CHECKSUM_AT - 2..IPV4_CHECKSUM_AT) {
                let sum = !u16::from_be_bytes([checksum[0], checksum[1]]);
                let sum = u32::from(sum) + u32::from(!before) + u32::from(after);
                let folded = (sum & 0xffff) + (sum >> 16);
                let folded = (folded & 0xffff) + (folded >> 16);
                checksum.copy_from_slice(&(!(folded as u16)).to_be_bytes());
            }
        }
        (Some(Version::Six), [_, second, ..]) => *second |= Ecn::Ce.bits() << 4,
        (_, _) => {}
    }
}

#[derive(Clone, Copy)]
enum Version {
    Four,
    Six,
}

fn version_of(packet: &[u8]) -> Option<Version> {
    match (packet.first()? >> 4, packet.len()) {
        (4, 20..) => Some(Version::Four),
        (6, 40..) => Some(Version::Six),
        (_, _) => None,
    }
}

/// Offset in bytes of the checksum in an IPv4 header.
const IPV4_CHECKSUM_AT: usize = 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the one's complement sum of a header: all ones if its checksum is valid.
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn marking_an_ipv4_header_changes_only_codepoint_and_checksum(
            mut packet in prop::collection::vec(any::<u8>(), 20..60),
        ) {
            packet[0] = 0x45;
            packet[10..12].copy_from_slice(&[0, 0]);
            let checksum = !sum(&packet[..20]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            let mut marked = packet.clone();
            mark_ip(&mut marked);
            prop_assert_eq!(ecn_of_ip(&marked), Ecn::Ce);
            prop_assert_eq!(sum(&marked[..20]), 0xffff);
            prop_assert_eq!(marked[1] & !3, packet[1] & !3);
            marked[1] = packet[1];
            marked[10..12].copy_from_slice(&packet[10..12]);
            prop_assert_eq!(marked, packet);
        }

        #[test]
        fn a_marked_header_of_ipv6_differs_in_its_codepoint_alone(
            mut packet in prop::collection::vec(any::<u8>(), 40..60),
            bits in 0_u8..4,
        ) {
            packet[0] = 0x60 | packet[0] & 0x0f;
            packet[1] = packet[1] & 0xcf | bits << 4;
            prop_assert_eq!(ecn_of_ip(&packet), Ecn::of_bits(bits));
            let mut marked = packet.clone();
            mark_ip(&mut marked);
            prop_assert_eq!(ecn_of_ip(&marked), Ecn::Ce);
            marked[1] = packet[1];
            prop_assert_eq!(marked, packet);
        }

        #[test]
        fn bytes_that_are_no_ip_packet_stay_unchanged(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if version_of(&bytes).is_none() {
                let before = bytes.clone();
                prop_assert_eq!(ecn_of_ip(&bytes), Ecn::NotEct);
                mark_ip(&mut bytes);
                prop_assert_eq!(bytes, before);
            } else {
                mark_ip(&mut bytes);
                prop_assert_eq!(ecn_of_ip(&bytes), Ecn::Ce);
            }
        }
    }
}
