//! The paper's Table 1, and the reasons for differences in today's ranking.

/// A line of the paper's Table 1.
pub(crate) struct Published {
    /// Name of the corresponding entry here.
    pub(crate) here: &'static str,
    /// Encode, decode, full projection, fixed field, repeating field: mean microseconds for 10,000
    /// points on an i5-6200U of 2015.
    pub(crate) micros: [f64; 5],
    /// Reason why its rank differs today.
    pub(crate) why: &'static str,
}

/// Returns the eleven lines, in the paper's order. The first column of the file has the paper's
/// names.
pub(crate) fn table_1() -> impl Iterator<Item = Published> {
    TABLE_1.lines().skip(1).filter_map(|line| {
        let mut words = line.splitn(8, ';');
        let (_, here) = (words.next()?, words.next()?);
        let mut micros = [0.0; 5];
        for number in &mut micros {
            *number = words.next()?.parse().ok()?;
        }
        Some(Published { here, micros, why: words.next()? })
    })
}

/// Returns the line that corresponds to the entry with this name, if the paper has one.
pub(crate) fn of(here: &str) -> Option<Published> {
    table_1().find(|line| line.here == here)
}

/// Content of the lab's file of the paper's figures.
const TABLE_1: &str = include_str!("../../../crates/lab/src/papers/serialization/published.csv");
