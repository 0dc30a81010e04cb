use super::block::Added;
use crate::wire::stream::Part;

/// The source packets of one unit under the streaming code that are known so far.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Number of the unit's first source packet in the stream.
    first: u64,
    deadline_low: u16,
    /// Number of the unit's source packets; `None` until the last one is known.
    count: Option<usize>,
    /// Index within the unit, and payload, in order of becoming known.
    parts: Vec<(u8, Vec<u8>)>,
    /// One bit per index: 1 if that part was added.
    seen: [u64; 4],
    /// Highest index of an added part; 0 before the first.
    highest: u8,
    /// Total length of the payloads.
    bytes: usize,
    /// True if one of the parts was recovered.
    needed_repair: bool,
}

impl Parts {
    /// Creates the parts of a unit from `part`, which is source packet `source`. `None` if the unit
    /// would begin before the stream.
    pub(crate) fn of(source: u64, part: &Part<'_>) -> Option<Self> {
        Some(Self {
            first: source.checked_sub(u64::from(part.index))?,
            deadline_low: part.deadline_low,
            count: None,
            parts: Vec::new(),
            seen: [0; 4],
            highest: 0,
            bytes: 0,
            needed_repair: false,
        })
    }

    /// Returns the total length of the payloads held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a received or recovered part; calls `buffer` for storage if it keeps the bytes.
    pub(crate) fn add(
        &mut self,
        source: u64,
        part: &Part<'_>,
        recovered: bool,
        buffer: impl FnOnce() -> Vec<u8>,
    ) -> Added {
        let index = usize::from(part.index);
        let end = self.count.is_none_or(|count| index < count && part.last == (index + 1 == count));
        let consistent = source.checked_sub(index as u64) == Some(self.first)
            && part.deadline_low == self.deadline_low
            && end
            && (!part.last || part.index >= self.highest);
        if !consistent {
            return Added::Inconsistent;
        }
        let (word, bit) = (index / 64, 1_u64 << (index % 64));
        if self.seen[word] & bit != 0 {
            return Added::Duplicate;
        }
        self.seen[word] |= bit;
        self.highest = self.highest.max(part.index);
        if part.last {
            self.count = Some(index + 1);
        }
        let mut bytes = buffer();
        bytes.clear();
        bytes.extend_from_slice(part.payload);
        self.bytes += bytes.len();
        self.needed_repair |= recovered;
        self.parts.push((part.index, bytes));
        match self.count == Some(self.parts.len()) {
            true => Added::Complete,
            false => Added::Incomplete,
        }
    }

    /// Returns whether one of the parts was recovered.
    pub(crate) fn needed_repair(&self) -> bool {
        self.needed_repair
    }

    /// Returns the payloads, concatenated in order of their indices.
    pub(crate) fn join(&self) -> Vec<u8> {
        let mut places: Vec<&(u8, Vec<u8>)> = self.parts.iter().collect();
        places.sort_unstable_by_key(|(index, _)| *index);
        let mut content = Vec::with_capacity(self.bytes);
        places.iter().for_each(|(_, bytes)| content.extend_from_slice(bytes));
        content
    }

    /// Returns the buffers of the parts for reuse.
    pub(crate) fn into_buffers(self) -> impl Iterator<Item = Vec<u8>> {
        self.parts.into_iter().map(|(_, bytes)| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(index: u8, last: bool, payload: &[u8]) -> Part<'_> {
        Part { last, unit_low: 7, index, deadline_low: 9, payload }
    }

    fn add(parts: &mut Parts, source: u64, part: &Part<'_>) -> Added {
        parts.add(source, part, false, Vec::new)
    }

    #[test]
    fn a_unit_is_complete_with_all_up_to_its_last_in_any_order() {
        let mut parts = Parts::of(12, &part(2, true, b"f")).unwrap();
        assert_eq!(add(&mut parts, 12, &part(2, true, b"f")), Added::Incomplete);
        assert_eq!(add(&mut parts, 12, &part(2, true, b"f")), Added::Duplicate);
        assert_eq!(add(&mut parts, 10, &part(0, false, b"abc")), Added::Incomplete);
        assert!(!parts.needed_repair());
        assert_eq!(parts.add(11, &part(1, false, b"de"), true, Vec::new), Added::Complete);
        assert!(parts.needed_repair());
        assert_eq!((parts.join(), parts.bytes()), (b"abcdef".to_vec(), 6));
        let mut single = Parts::of(3, &part(0, true, b"x")).unwrap();
        assert_eq!(add(&mut single, 3, &part(0, true, b"x")), Added::Complete);
    }

    #[test]
    fn a_part_that_contradicts_the_others_is_refused() {
        assert!(Parts::of(1, &part(2, false, b"a")).is_none());
        let mut parts = Parts::of(11, &part(1, false, b"a")).unwrap();
        assert_eq!(add(&mut parts, 11, &part(1, false, b"a")), Added::Incomplete);
        let other_deadline = Part { deadline_low: 8, ..part(2, false, b"a") };
        assert_eq!(add(&mut parts, 12, &other_deadline), Added::Inconsistent);
        assert_eq!(add(&mut parts, 13, &part(2, false, b"a")), Added::Inconsistent);
        // A part behind the last one, and a last part before a known one.
        assert_eq!(add(&mut parts, 10, &part(0, true, b"a")), Added::Inconsistent);
        assert_eq!(add(&mut parts, 13, &part(3, true, b"a")), Added::Incomplete);
        assert_eq!(add(&mut parts, 14, &part(4, false, b"a")), Added::Inconsistent);
        assert_eq!(add(&mut parts, 12, &part(2, true, b"a")), Added::Inconsistent);
        assert_eq!(add(&mut parts, 13, &part(3, false, b"a")), Added::Inconsistent);
        assert_eq!(add(&mut parts, 12, &part(2, false, b"a")), Added::Incomplete);
        assert_eq!(add(&mut parts, 10, &part(0, false, b"a")), Added::Complete);
    }
}
