use tautline_message::{Candidate, Held, ProtocolVersions};

/// Data that an end reports with its registration.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) addresses: Vec<String>,
    pub(super) versions: Option<ProtocolVersions>,
    /// `true` if the end supports relays.
    pub(super) relays: bool,
    pub(super) candidates: Vec<Candidate>,
    /// Lease of the end's last introduction, as the end reports it; `None` if it reports none.
    pub(super) held: Option<Held>,
    /// Location of the end, in its owner's words; `None` if it reports none.
    pub(super) place: Option<String>,
}
