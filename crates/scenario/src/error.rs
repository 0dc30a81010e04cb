/// A reason why a run could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A session could not be configured so.
    #[error(transparent)]
    Session(#[from] tautline_transport::Error),
    /// A link could not be configured so.
    #[error(transparent)]
    Link(#[from] tautline_sim::Error),
    /// There are more links than sockets can be numbered.
    #[error("a run has at most 256 links, got {found}")]
    Links {
        /// Links asked for.
        found: usize,
    },
}
