//! Table of quantizers by slice size.

use tautline_units::ByteCount;
use tautline_video::Quantizers;

/// Look-up table from slice size to quantizers ([LTE] IV.B).
///
/// Built from the mean sizes of real video; a single slice differs by a factor of up to 2.7 (99th
/// percentile).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QpTable {
    /// Entries by size, ascending; never empty.
    entries: Vec<(ByteCount, Quantizers)>,
}

impl QpTable {
    /// Builds a table of mean sizes; returns `None` without any. Of equal sizes the first is used.
    pub fn new(mut entries: Vec<(ByteCount, Quantizers)>) -> Option<Self> {
        entries.sort_by_key(|(bytes, _)| *bytes);
        entries.dedup_by_key(|(bytes, _)| *bytes);
        (!entries.is_empty()).then_some(Self { entries })
    }

    /// Returns the quantizers of the largest size that does not exceed `budget`, or otherwise of
    /// the smallest.
    pub fn look_up(&self, budget: ByteCount) -> Quantizers {
        let above = self.entries.partition_point(|(bytes, _)| *bytes <= budget);
        self.entries[above.saturating_sub(1)].1
    }

    /// Returns the sizes and their quantizers, ascending by size.
    pub fn entries(&self) -> impl Iterator<Item = (ByteCount, Quantizers)> {
        self.entries.iter().copied()
    }

    /// Returns the table as CSV: a header line, then lines of bytes and the quantizers of I and P.
    pub fn to_csv(&self) -> String {
        let mut csv = format!("{HEAD}\n");
        for (bytes, Quantizers { intra, predicted }) in self.entries() {
            csv.push_str(&format!("{},{intra},{predicted}\n", bytes.get()));
        }
        csv
    }
}

const HEAD: &str = "slice_bytes,qp_intra,qp_predicted";

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> QpTable {
        let entry = |bytes, qp| (ByteCount::new(bytes), Quantizers::both(qp));
        QpTable::new(vec![entry(4_000, 24), entry(500, 44), entry(1_500, 34)]).unwrap()
    }

    #[test]
    fn a_size_between_two_takes_the_smaller() {
        let table = table();
        let qp = |bytes| table.look_up(ByteCount::new(bytes)).predicted;
        assert_eq!(
            [0, 499, 500, 1_499, 1_500, 3_999, 4_000, u64::MAX].map(qp),
            [44, 44, 44, 44, 34, 34, 24, 24]
        );
    }

    #[test]
    fn a_table_is_written_by_size() {
        let csv = "slice_bytes,qp_intra,qp_predicted\n500,44,44\n1500,34,34\n4000,24,24\n";
        assert_eq!(table().to_csv(), csv);
    }
}
