/// Reason why the bytes from this offset on are not a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Break {
    /// The file ends before the record does.
    Short,
    /// The record is malformed, or not one that this crate writes.
    Foreign,
}

pub(super) fn take<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], Break> {
    let (first, rest) = from.split_first_chunk().ok_or(Break::Short)?;
    *from = rest;
    Ok(*first)
}

pub(super) fn take_text<'a>(from: &mut &'a [u8]) -> Result<&'a str, Break> {
    let length = u32::from_le_bytes(take(from)?) as usize;
    let (text, rest) = from.split_at_checked(length).ok_or(Break::Short)?;
    *from = rest;
    std::str::from_utf8(text).map_err(|_| Break::Foreign)
}

pub(super) fn write(opcode: u8, to: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    to.push(opcode);
    let length_at = to.len();
    to.extend([0; 8]);
    content(to);
    let length = (to.len() - length_at - 8) as u64;
    to[length_at..length_at + 8].copy_from_slice(&length.to_le_bytes());
}

pub(super) fn write_text(text: &str, to: &mut Vec<u8>) {
    to.extend((text.len() as u32).to_le_bytes());
    to.extend(text.as_bytes());
}

pub(super) const HEADER: u8 = 0x01;
pub(super) const FOOTER: u8 = 0x02;
pub(super) const SCHEMA: u8 = 0x03;
pub(super) const CHANNEL: u8 = 0x04;
pub(super) const MESSAGE: u8 = 0x05;
pub(super) const CHUNK: u8 = 0x06;
pub(super) const DATA_END: u8 = 0x0f;
