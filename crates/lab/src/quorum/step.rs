//! Conversion between Raft's messages and Tautline's wire format.

use raft::eraftpb::{Entry, Message, MessageType};
use tautline_message::QuorumStep;
use tautline_units::Instant;

/// Returns `message` in wire format, or `None` for a kind that members never send.
pub(crate) fn to_wire(message: &Message) -> Option<QuorumStep> {
    Some(QuorumStep {
        kind: KINDS.iter().position(|kind| *kind == message.msg_type)? as u8,
        from: u8::try_from(message.from).ok()?,
        to: u8::try_from(message.to).ok()?,
        term: message.term,
        log_term: message.log_term,
        index: message.index,
        commit: message.commit,
        commit_term: message.commit_term,
        reject: message.reject,
        reject_hint: message.reject_hint,
        round_at: round_of(&message.context),
        entry_terms: message.entries.iter().map(|entry| entry.term).collect(),
    })
}

/// Returns the message in `step`. It is `None` for an unknown kind, and for entries that no valid
/// log has: terms never decrease, and none is later than the leader's.
pub(crate) fn from_wire(step: &QuorumStep) -> Option<Message> {
    let terms = || step.entry_terms.iter();
    let rises =
        terms().is_sorted() && terms().all(|term| (step.log_term..=step.term).contains(term));
    if !rises {
        return None;
    }
    let mut message = Message::default();
    message.set_msg_type(*KINDS.get(usize::from(step.kind))?);
    message.from = step.from.into();
    message.to = step.to.into();
    message.term = step.term;
    message.log_term = step.log_term;
    message.index = step.index;
    message.commit = step.commit;
    message.commit_term = step.commit_term;
    message.reject = step.reject;
    message.reject_hint = step.reject_hint;
    if let Some(round_at) = step.round_at {
        message.context = round(round_at).into();
    }
    let entries = step.entry_terms.iter().zip(1..).map(|(term, behind)| {
        let index = step.index.checked_add(behind)?;
        Some(Entry { term: *term, index, ..Entry::default() })
    });
    message.set_entries(entries.collect::<Option<Vec<Entry>>>()?.into());
    Some(message)
}

/// Returns the context of a heartbeat round, from which its answers reveal when it began.
pub(crate) fn round(began: Instant) -> Vec<u8> {
    began.as_nanos().to_le_bytes().to_vec()
}

pub(crate) fn round_of(context: &[u8]) -> Option<Instant> {
    Some(Instant::from_nanos(u64::from_le_bytes(context.try_into().ok()?)))
}

/// Message kinds in use; the index is the number on the wire.
const KINDS: [MessageType; 8] = [
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
];
