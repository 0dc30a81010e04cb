/// A code word: its bits, right-aligned, and their number; length 0 if there is none.
#[derive(Clone, Copy)]
pub(super) struct Code {
    pub(super) bits: u16,
    pub(super) length: u8,
}
