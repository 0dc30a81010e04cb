use super::Error;

/// Persistent state of a member. Without it, a restarted member could vote twice in one election.
///
/// ```text
/// | term u64 | vote u64 | commit u64 | terms of the log's entries u64 ... |    little-endian
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Kept {
    pub(crate) term: u64,
    pub(crate) vote: u64,
    pub(crate) commit: u64,
    /// Term of each log entry. Entries carry nothing else; there is one per election.
    pub(crate) entry_terms: Vec<u64>,
}

impl Kept {
    /// Returns the state as bytes, for a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = [self.term, self.vote, self.commit];
        head.iter().chain(&self.entry_terms).flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Parses the state from the bytes of a file.
    ///
    /// # Errors
    /// If no member can have written the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|eight| u64::from_le_bytes(*eight)).collect();
        let [term, vote, commit, entry_terms @ ..] = &numbers[..] else {
            return Err(Error::NotKept);
        };
        let rising = entry_terms.is_sorted() && entry_terms.iter().all(|entry| entry <= term);
        if !rest.is_empty() || !rising || *commit > entry_terms.len() as u64 {
            return Err(Error::NotKept);
        }
        Ok(Self { term: *term, vote: *vote, commit: *commit, entry_terms: entry_terms.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn kept_state_round_trips() {
        let kept = Kept { term: 4, vote: 2, commit: 1, entry_terms: vec![1, 4] };
        assert_eq!(Kept::from_bytes(&kept.to_bytes()), Ok(kept));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Kept::from_bytes(&bytes);
        }
    }
}
