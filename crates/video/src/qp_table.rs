use tautline_units::ByteCount;

use crate::{Error, Quantizers};

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

    /// Parses the output of [`to_csv`](Self::to_csv).
    ///
    /// # Errors
    /// [`Error::Invalid`] with the number of the first malformed line; [`Error::Truncated`] for a
    /// table without sizes.
    pub fn parse(csv: &str) -> Result<Self, Error> {
        let mut entries = Vec::new();
        for (number, line) in csv.lines().enumerate() {
            if number == 0 && line == HEAD {
                continue;
            }
            let entry = entry(line).filter(|_| number > 0);
            let wrong =
                Error::Invalid { what: "line of a quantizer table", value: number as u64 + 1 };
            entries.push(entry.ok_or(wrong)?);
        }
        Self::new(entries).ok_or(Error::Truncated { what: "quantizer table" })
    }
}

fn entry(line: &str) -> Option<(ByteCount, Quantizers)> {
    let mut fields = line.split(',');
    let bytes = fields.next()?.parse().ok()?;
    let (intra, predicted): (u8, u8) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let possible = intra.max(predicted) <= Quantizers::MAX && fields.next().is_none();
    possible.then_some((ByteCount::new(bytes), Quantizers { intra, predicted }))
}

const HEAD: &str = "slice_bytes,qp_intra,qp_predicted";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
    fn a_table_is_read_as_written_and_nothing_else_is() {
        assert_eq!(QpTable::parse(&table().to_csv()).unwrap(), table());
        for csv in [
            "",
            HEAD,
            "1,2,3",
            "slice_bytes,qp_intra,qp_predicted\n1,52,3",
            "slice_bytes,qp_intra,qp_predicted\n1,2",
        ] {
            assert!(QpTable::parse(csv).is_err(), "{csv}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_read_or_refused(csv in "(slice_bytes,qp_intra,qp_predicted\n)?([0-9,\n-]{0,40}|.{0,40})") {
            if let Ok(table) = QpTable::parse(&csv) {
                prop_assert_eq!(QpTable::parse(&table.to_csv()).unwrap(), table);
            }
        }
    }
}
