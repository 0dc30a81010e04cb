/// A reason why a run could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A session configuration is invalid.
    #[error(transparent)]
    Session(#[from] tautline_transport::Error),
    /// A link configuration is invalid.
    #[error(transparent)]
    Link(#[from] tautline_sim::Error),
    /// There are more links than socket numbers.
    #[error("a run has at most 255 links, got {found}")]
    Links {
        /// The requested number of links.
        found: usize,
    },
}
