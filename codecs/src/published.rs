//! The paper's Table 1, and why its codecs stand where they stand today.

/// A line of it.
pub(crate) struct Published {
    /// The entry that stands for it here.
    pub(crate) here: &'static str,
    /// Encode, decode, full projection, fixed field, repeating field: mean microseconds for 10,000
    /// points on an i5-6200U of 2015.
    pub(crate) micros: [f64; 5],
    /// Why it is where it is today.
    pub(crate) why: &'static str,
}

/// Returns all eleven, in the paper's order. What the paper calls them stands first in the file.
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

/// Returns the line that the entry of that name stands for.
pub(crate) fn of(here: &str) -> Option<Published> {
    table_1().find(|line| line.here == here)
}

/// The lab shows the same.
const TABLE_1: &str = include_str!("../../crates/lab/src/papers/serialization/published.csv");
