use crate::{
    Command, Control, Description, LinkAction, OperatorStatus, PointCloud, ProbeAnswer,
    ProbeQuestion, QuorumStep, Snapshot, Telemetry, Values, VideoFeedback,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;

use super::arbitrary;

/// Passes `bytes` to every decoder and ignores the results.
fn decode_as_everything(bytes: &[u8]) {
    let _ = Command::decode(bytes);
    let _ = VideoFeedback::decode(bytes);
    let _ = LinkAction::decode(bytes);
    let _ = Telemetry::decode(bytes);
    let _ = OperatorStatus::decode(bytes);
    let _ = Control::decode(bytes);
    let _ = Snapshot::decode(bytes);
    let _ = ProbeQuestion::decode(bytes);
    let _ = ProbeAnswer::decode(bytes);
    let _ = PointCloud::decode(bytes);
    let _ = QuorumStep::decode(bytes);
    let _ = Description::decode(bytes);
    let _ = Values::decode(bytes);
}

fn any_message() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        arbitrary::command().prop_map(|message| message.encode()),
        arbitrary::video_feedback().prop_map(|message| message.encode()),
        arbitrary::link_action().prop_map(|message| message.encode()),
        arbitrary::telemetry().prop_map(|message| message.encode()),
        arbitrary::operator_status().prop_map(|message| message.encode()),
        arbitrary::control().prop_map(|message| message.encode()),
        arbitrary::snapshot().prop_map(|message| message.encode()),
        arbitrary::probe_question().prop_map(|message| message.encode()),
        arbitrary::probe_answer().prop_map(|message| message.encode()),
        arbitrary::quorum_step().prop_map(|message| message.encode()),
        arbitrary::point_cloud().prop_map(|message| message.encode()),
        arbitrary::description().prop_map(|message| message.encode()),
        arbitrary::values().prop_map(|message| message.encode()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..600)) {
        decode_as_everything(&bytes);
    }

    #[test]
    fn no_bytes_behind_an_identifier_panic(
        bytes in vec(prop_oneof![3 => 0u8..16, 1 => any::<u8>()], 8..300),
        kind in 0usize..12,
    ) {
        let mut bytes = bytes;
        let kinds = [
            "TLC2", "TLF1", "TLT3", "TLO2", "TLA1", "TLS1", "TLV2", "TLQ1", "TLN1", "TLE1", "TLD1",
            "TLV1",
        ];
        bytes[4..8].copy_from_slice(kinds[kind].as_bytes());
        bytes[1..4].fill(0);
        decode_as_everything(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_flipped_bits_panic(message in any_message(), flips in vec(any::<(Index, u8)>(), 1..8)) {
        let mut message = message;
        for (index, bit) in flips {
            let index = index.index(message.len());
            message[index] ^= 1 << (bit % 8);
            decode_as_everything(&message);
        }
    }

    #[test]
    fn no_overwritten_word_panics(message in any_message(), index in any::<Index>(), word in any::<u32>()) {
        let mut message = message;
        let start = index.index(message.len() / 4) * 4;
        message[start..start + 4].copy_from_slice(&word.to_le_bytes());
        decode_as_everything(&message);
    }

    #[test]
    fn no_cut_message_panics(message in any_message(), end in any::<Index>()) {
        decode_as_everything(&message[..end.index(message.len())]);
    }
}

/// Flips each single bit of one complete message of each kind.
#[test]
fn no_single_flipped_bit_panics() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let flip_all = |message: Vec<u8>| {
        let mut message = message;
        for bit in 0..message.len() * 8 {
            message[bit / 8] ^= 1 << (bit % 8);
            decode_as_everything(&message);
            message[bit / 8] ^= 1 << (bit % 8);
        }
    };
    flip_all(super::refusals::telemetry().encode());
    flip_all(super::refusals::operator_status().encode());
    for _ in 0..8 {
        let message = any_message().new_tree(&mut runner).unwrap().current();
        if message.len() < 4096 {
            flip_all(message);
        }
    }
}
