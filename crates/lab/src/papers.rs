//! The registry: every table and figure of the papers that the lab reproduces.
//!
//! Each paper has a folder, and each experiment a file, with its key, title and source at the top.
//! Files without one contain code shared by several experiments of a paper.

use strsim::levenshtein;

use crate::experiment::Experiment;

pub use lte::qp_table::of_clip as qp_table;
pub use ugv::gate::leave_gate_alone;

/// \[LTE\]: remote driving over several LTE modems, with block codes against loss and delay.
pub(crate) mod lte {
    mod block;
    pub(super) mod block_latency;
    pub(super) mod block_speed;
    pub(super) mod budget_steps;
    pub(super) mod cones;
    pub(super) mod constant_rate;
    mod curves;
    pub(super) mod cuts;
    pub(super) mod encoders;
    pub(super) mod end_to_end;
    pub(super) mod intra_refresh;
    pub(super) mod joint_coding;
    mod latencies;
    mod loss_recovery;
    pub(super) mod modem_count;
    pub(super) mod ping_pong;
    pub(super) mod qp_table;
    pub(super) mod rate_control;
    mod recorded;
    mod recovery;
    pub(super) mod refresh;
    pub(super) mod refresh_pattern;
    mod rig;
    pub(super) mod slice_times;
    mod slices;
    pub(super) mod stages;
    pub(super) mod summary;
    pub(super) mod survival;
    mod system;
    mod trials;
}

/// \[UGV\]: an unmanned ground vehicle, its operator, and a switchboard between two 3G links.
pub(crate) mod ugv {
    pub(super) mod bins;
    pub(super) mod further;
    pub(super) mod gate;
    pub(super) mod gate_files;
    pub(super) mod key_frames;
    mod published;
    pub(super) mod size_files;
    mod stand;
    mod waits;
}

/// \[STREAM\]: a streaming code compared to retransmission and block codes, in delay and rate.
///
/// The paper measured real transfers between servers. Here a link is simulated: slot by slot with
/// this project's own coders at its ends, and in virtual time with two sessions of the transport.
/// Definitions are in `link`, `arq`, `block`, `coded` and `sessions`.
pub(crate) mod streaming {
    mod arq;
    mod block;
    pub(super) mod block_size;
    pub(super) mod bound;
    pub(super) mod busy_time;
    pub(super) mod closed_loop;
    mod coded;
    pub(super) mod complexity;
    mod delays;
    pub(super) mod goodput;
    mod intervals;
    mod link;
    pub(super) mod open_loop;
    mod residual;
    pub(super) mod retransmission;
    mod rows;
    mod sessions;
    pub(super) mod speed;
    mod trial;
}

/// \[CAR\]: transports for media in a car, on a lossy wire and in a wireless network.
pub(crate) mod car {
    pub(super) mod conclusion;
    pub(super) mod delays;
    pub(super) mod throughput;
    mod transports;
    pub(super) mod videos;
    pub(super) mod wireless;
}

/// \[TIMING\]: the cost of serialization, and its consequences for safety.
pub(crate) mod serialization {
    mod codecs;
    pub(super) mod here;
    pub(super) mod leader;
    pub(super) mod reaction;
    pub(super) mod round_trip;
    pub(super) mod table;
}

/// Returns every experiment, paper by paper, in the order of the papers.
pub fn all() -> impl Iterator<Item = &'static Experiment> {
    ALL.iter()
}

/// Returns the experiment with this key, or `None` if there is none.
pub fn find(key: &str) -> Option<&'static Experiment> {
    all().find(|experiment| experiment.key == key)
}

/// Returns up to three keys similar to a mistyped one, the closest first: at most three edits away
/// or, for a key of three letters and more, containing it.
pub fn near(key: &str) -> Vec<&'static str> {
    let mut near: Vec<(usize, &str)> = all()
        .map(|experiment| (levenshtein(key, experiment.key), experiment.key))
        .filter(|(distance, known)| *distance <= 3 || (key.len() >= 3 && known.contains(key)))
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, key)| key).take(NEAR_MAX).collect()
}

/// Every experiment, paper by paper, in the order of the papers. A row here registers it; its file
/// has everything else.
const ALL: &[Experiment] = &[
    lte::stages::EXPERIMENT,
    lte::block_latency::EXPERIMENT,
    lte::constant_rate::ONE_LINK,
    lte::block_speed::EXPERIMENT,
    lte::rate_control::EXPERIMENT,
    lte::survival::EXPERIMENT,
    lte::cuts::EXPERIMENT,
    lte::constant_rate::MANY_LINKS,
    lte::joint_coding::EXPERIMENT,
    lte::refresh_pattern::EXPERIMENT,
    lte::intra_refresh::EXPERIMENT,
    lte::qp_table::EXPERIMENT,
    lte::ping_pong::EXPERIMENT,
    lte::end_to_end::EXPERIMENT,
    lte::summary::EXPERIMENT,
    lte::modem_count::EXPERIMENT,
    lte::cones::EXPERIMENT,
    lte::slice_times::EXPERIMENT,
    lte::refresh::EXPERIMENT,
    lte::budget_steps::EXPERIMENT,
    lte::encoders::EXPERIMENT,
    ugv::gate::EXPERIMENT,
    ugv::gate_files::EXPERIMENT,
    ugv::key_frames::EXPERIMENT,
    ugv::bins::TABLE_1,
    ugv::bins::TABLE_2,
    ugv::size_files::EXPERIMENT,
    ugv::further::EXPERIMENT,
    car::wireless::TABLE_1,
    car::wireless::FIG_1,
    car::throughput::TABLE_2,
    car::throughput::FIG_3,
    car::wireless::FIG_4,
    car::wireless::BIT_ERRORS,
    car::videos::FIG_5,
    car::videos::TABLE_3,
    car::delays::JITTER,
    car::delays::DELAY,
    car::conclusion::EXPERIMENT,
    streaming::retransmission::EXPERIMENT,
    streaming::block_size::AGAINST_RETRANSMISSION,
    streaming::busy_time::EXPERIMENT,
    streaming::bound::EXPERIMENT,
    streaming::goodput::EXPERIMENT,
    streaming::complexity::EXPERIMENT,
    streaming::open_loop::EXPERIMENT,
    streaming::closed_loop::BURSTS,
    streaming::speed::EXPERIMENT,
    streaming::block_size::AGAINST_STREAMING,
    streaming::closed_loop::RATES,
    serialization::table::TABLE_1,
    serialization::here::EXPERIMENT,
    serialization::round_trip::EXPERIMENT,
    serialization::table::FIG_2,
    serialization::reaction::EXPERIMENT,
    serialization::leader::EXPERIMENT,
];

/// Maximum number of keys suggested for a mistyped one; more would hide the intended one.
const NEAR_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::experiment::Mutation;

    #[test]
    fn every_experiment_has_what_the_report_needs() {
        let papers = include_str!("../../../docs/papers.md");
        let mut keys = BTreeSet::new();
        for Experiment { key, title, source, mutation, .. } in all() {
            assert!(
                crate::notation::is_name(key) && keys.insert(key),
                "{key} is no key of its own"
            );
            assert!(!title.is_empty() && !title.contains('\n'), "{key}: {title:?} is not one line");
            let paper = source.split_inclusive(']').next().unwrap();
            assert!(paper.starts_with('[') && paper.len() < source.len(), "{key}: {source}");
            assert!(papers.contains(&format!("| {paper} |")), "{key}: {paper} is not in papers.md");
            let (Mutation::Named(words) | Mutation::Spared(words)) = mutation;
            assert!(!words.is_empty(), "{key} has neither a mutation nor a reason");
        }
    }

    #[test]
    fn a_mistyped_key_finds_its_neighbours() {
        for Experiment { key, .. } in all() {
            assert_eq!(near(key).first(), Some(key));
            assert!(near(&key[1..]).contains(key), "{key}");
        }
        assert!(near("something-else-entirely").is_empty());
    }
}
