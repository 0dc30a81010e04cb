/// What can go wrong with pictures and their coding.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A picture's sides are not multiples of 16 from 16 to 8192.
    #[error(
        "a picture of {width}x{height} is not possible: both sides must be multiples of 16, 16 to 8192"
    )]
    Dimensions {
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
    },
}
