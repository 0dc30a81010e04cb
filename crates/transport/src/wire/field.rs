//! Fields of packets: reading from and appending to bytes.

use super::malformed::Malformed;

/// Removes `N` bytes from the front of `rest` and returns them; an error if there are fewer.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(Malformed("truncated packet"))?;
    *rest = tail;
    Ok(*head)
}

/// Removes a big-endian 48-bit number from the front of `rest` and returns it; an error if there
/// are fewer than six bytes.
pub(super) fn take_u48(rest: &mut &[u8]) -> Result<u64, Malformed> {
    let [a, b, c, d, e, f] = take::<6>(rest)?;
    Ok(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// Appends the length field of a packet: two bytes, big-endian. Panics above 65535.
pub(super) fn put_length(out: &mut Vec<u8>, length: usize) {
    let length = u16::try_from(length).expect("a packet is shorter than a datagram");
    out.extend_from_slice(&length.to_be_bytes());
}

/// Appends the low 48 bits of `value`, big-endian.
pub(super) fn put_u48(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes()[2..]);
}
