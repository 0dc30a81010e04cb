//! Message bytes aligned as in a network buffer: to a multiple of 64.

/// Owned bytes that begin at a multiple of 64.
#[derive(Clone)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
    length: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Aligned {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let lines = bytes
            .chunks(64)
            .map(|chunk| {
                let mut line = Line([0; 64]);
                line.0[..chunk.len()].copy_from_slice(chunk);
                line
            })
            .collect();
        Self { lines, length: bytes.len() }
    }

    #[expect(unsafe_code, reason = "a vector of lines is a run of bytes")]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: lines are 64 initialised bytes each, without gaps, and hold `length` bytes.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}
