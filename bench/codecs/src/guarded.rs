//! A message directly in front of an inaccessible page: reading beyond its end is a segfault.

use std::ptr;

/// Bytes aligned to a multiple of 16, which end as close as possible to the end of readable memory.
pub(crate) struct Guarded {
    map: *mut u8,
    map_length: usize,
    start: usize,
    length: usize,
}

#[expect(unsafe_code, reason = "pages are mapped and protected by the system's own calls")]
impl Guarded {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let readable = bytes.len().next_multiple_of(PAGE).max(PAGE);
        let map_length = readable + PAGE;
        // SAFETY: an anonymous mapping at any address; the result is checked.
        let map = unsafe {
            libc::mmap(
                ptr::null_mut(),
                map_length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert!(map != libc::MAP_FAILED, "no memory for a message");
        let map: *mut u8 = map.cast();
        let start = (readable - bytes.len()) & !15;
        // SAFETY: `start` and the bytes lie within the readable part, which has no other user.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), map.add(start), bytes.len()) };
        // SAFETY: the last page of the mapping above.
        let protected = unsafe { libc::mprotect(map.add(readable).cast(), PAGE, libc::PROT_NONE) };
        assert_eq!(protected, 0, "a page cannot be protected");
        Self { map, map_length, start, length: bytes.len() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: written in `of`, mapped until `drop`.
        unsafe { std::slice::from_raw_parts(self.map.add(self.start), self.length) }
    }
}

#[expect(unsafe_code, reason = "what was mapped is unmapped")]
impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped in `of` with this length; no borrow outlives `self`.
        unsafe { libc::munmap(self.map.cast(), self.map_length) };
    }
}

const PAGE: usize = 4096;
