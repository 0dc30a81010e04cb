use flatbuffers::FlatBufferBuilder;
use tautline_units::Instant;

use crate::Error;
use crate::codec::codec;
use crate::generated::quorum::{self as wire_quorum, QuorumStep as Root};
use crate::wire::{Kind, length};

/// A message between redundant computers that elect the one that acts.
///
/// The fields are those of Raft's messages; Raft defines their meaning.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct QuorumStep {
    /// Number of the message's type in Raft.
    pub kind: u8,
    /// Number of the sending computer, from 1.
    pub from: u8,
    /// Number of the receiving computer, from 1.
    pub to: u8,
    /// Election counter.
    pub term: u64,
    /// Term of the log entry at `index`.
    pub log_term: u64,
    /// Index of the log entry that the message refers to, as Raft defines for each `kind`.
    pub index: u64,
    /// Highest index known to be committed.
    pub commit: u64,
    /// Term of the log entry at `commit`.
    pub commit_term: u64,
    /// True if this message rejects the one that it answers.
    pub reject: bool,
    /// Next index to try, suggested by a rejection.
    pub reject_hint: u64,
    /// Start of the heartbeat round to which this message belongs, on the leader's clock; `None` if
    /// it belongs to none.
    pub round_at: Option<Instant>,
    /// Terms of the log entries after `index`; at most 1024.
    pub entry_terms: Vec<u64>,
}

codec!(QuorumStep);

impl QuorumStep {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let entry_terms =
            (!self.entry_terms.is_empty()).then(|| builder.create_vector(&self.entry_terms));
        let step = wire_quorum::Step::new(
            self.term,
            self.log_term,
            self.index,
            self.commit,
            self.commit_term,
            self.reject_hint,
            self.round_at.unwrap_or(Instant::ZERO).as_nanos(),
            self.kind,
            self.from,
            self.to,
            self.reject,
            self.round_at.is_some(),
        );
        let arguments = wire_quorum::QuorumStepArgs { step: Some(&step), entry_terms };
        let root = Root::create(builder, &arguments);
        wire_quorum::finish_quorum_step_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let step = root.step();
        let entry_terms = root.entry_terms().unwrap_or_default();
        length("entry_terms", entry_terms.len(), ENTRY_COUNT_MAX)?;
        Ok(Self {
            kind: step.kind(),
            from: step.from(),
            to: step.to(),
            term: step.term(),
            log_term: step.log_term(),
            index: step.index(),
            commit: step.commit(),
            commit_term: step.commit_term(),
            reject: step.reject(),
            reject_hint: step.reject_hint(),
            round_at: step.has_round().then(|| Instant::from_nanos(step.round_at_ns())),
            entry_terms: entry_terms.iter().collect(),
        })
    }
}

/// Maximum number of log entries in a message, beyond which it is refused: more elections than a
/// member can miss without a restart.
const ENTRY_COUNT_MAX: usize = 1024;

const KIND: Kind = Kind {
    name: "quorum step",
    identifier: Some(wire_quorum::QUORUM_STEP_IDENTIFIER),
    bytes_max: 16 * 1024,
    tables_max: 1,
    depth_max: 1,
};
