//! Tests of a single member, and of three with immediate delivery.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tautline_message::QuorumStep;
use tautline_units::Instant;

use super::{Config, Error, Kept, Member};

const HEARTBEAT: Duration = Duration::from_millis(10);

fn config(id: u8) -> Config {
    Config { id, members: 3, heartbeat: HEARTBEAT, timeout_heartbeats: 5, seed: id.into() }
}

fn member(id: u8) -> Member {
    Member::new(config(id), Kept::default(), Instant::ZERO).unwrap()
}

/// Delivers every datagram at once, for `millis` milliseconds.
fn run(members: &mut [Member], from: u64, millis: u64) {
    for milli in from..from + millis {
        let now = Instant::from_millis(milli);
        for member in members.iter_mut() {
            if member.poll_timeout() <= now {
                member.handle_timeout(now);
            }
        }
        while let Some((to, datagram)) = members.iter_mut().find_map(Member::poll_transmit) {
            members[usize::from(to) - 1].handle_datagram(&datagram, now);
        }
    }
}

#[test]
fn three_agree_on_one_that_acts() {
    let mut members = [member(1), member(2), member(3)];
    run(&mut members, 0, 500);
    let now = Instant::from_millis(500);
    let acting: Vec<bool> = members.iter().map(|member| member.may_act(now)).collect();
    assert_eq!(acting.iter().filter(|acts| **acts).count(), 1, "{members:?}");
    assert!(members.iter().all(|member| member.term() == members[0].term()));
}

#[test]
fn one_alone_never_acts() {
    let mut alone = member(1);
    for milli in 0..2000 {
        alone.handle_timeout(Instant::from_millis(milli));
        while alone.poll_transmit().is_some() {}
        assert!(!alone.may_act(Instant::from_millis(milli)));
    }
}

#[test]
fn a_lease_ends_by_the_leaders_own_clock() {
    let mut members = [member(1), member(2), member(3)];
    run(&mut members, 0, 500);
    let leader = members.iter().find(|member| member.leads_until().is_some()).unwrap();
    let until = leader.leads_until().unwrap();
    assert!(!leader.may_act(until));
    // Less than five heartbeats after the last round.
    assert!(until.since(Instant::from_millis(500)) < HEARTBEAT * 5);
}

#[test]
fn a_member_that_just_started_votes_for_nobody() {
    let mut candidate = member(1);
    let mut asked = None;
    for milli in 0..200 {
        candidate.handle_timeout(Instant::from_millis(milli));
        asked = asked.or(candidate.poll_transmit());
    }
    let (to, datagram) = asked.expect("it calls an election");
    let mut voter = member(to);
    voter.handle_datagram(&datagram, Instant::from_millis(1));
    assert_eq!((voter.poll_transmit(), voter.counters().too_early), (None, 1));
    voter.handle_datagram(&datagram, Instant::from_millis(100));
    assert!(voter.poll_transmit().is_some());
}

#[test]
fn a_quorum_that_cannot_be_is_refused() {
    let refused = |config| Member::new(config, Kept::default(), Instant::ZERO).err();
    assert_eq!(refused(config(4)), Some(Error::NoSuchMember { id: 4, members: 3 }));
    let hasty = Config { timeout_heartbeats: 2, ..config(1) };
    assert_eq!(refused(hasty), Some(Error::TooFewHeartbeats { heartbeats: 2 }));
}

fn step() -> impl Strategy<Value = QuorumStep> {
    let small = || prop_oneof![8 => 0u64..6, 1 => any::<u64>()];
    let numbers = (small(), small(), small(), small(), small(), small());
    (0u8..9, 0u8..5, numbers, any::<bool>(), vec(small(), 0..4), any::<Option<u16>>()).prop_map(
        |(kind, from, numbers, reject, entry_terms, round)| {
            let (term, log_term, index, commit, commit_term, reject_hint) = numbers;
            let round_at = round.map(|at| Instant::from_millis(at.into()));
            QuorumStep {
                kind,
                from,
                to: 1,
                term,
                log_term,
                index,
                commit,
                commit_term,
                reject,
                reject_hint,
                round_at,
                entry_terms,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_steps_panic(steps in vec((step(), 0u64..30), 1..60)) {
        let mut member = member(1);
        let mut now = 0;
        for (step, wait) in steps {
            now += wait;
            member.handle_timeout(Instant::from_millis(now));
            member.handle_datagram(&step.encode(), Instant::from_millis(now));
            while member.poll_transmit().is_some() {}
            if let Some(kept) = member.poll_keep() {
                prop_assert_eq!(&Kept::from_bytes(&kept.to_bytes()).unwrap(), kept);
            }
        }
    }

    /// No datagrams end the process, and the persisted state always restarts it.
    #[test]
    fn kept_state_always_restarts_a_member(
        inputs in vec((prop_oneof![step().prop_map(|step| step.encode()), vec(any::<u8>(), 0..64)], 0u64..30, 0u8..4), 1..60)
    ) {
        let (mut member, mut kept) = (member(1), Kept::default());
        let mut now = Instant::ZERO;
        for (datagram, wait, restart) in inputs {
            now += Duration::from_millis(wait);
            if restart == 0 {
                let read = Kept::from_bytes(&kept.to_bytes()).unwrap();
                prop_assert_eq!(&read, &kept);
                member = Member::new(config(1), read, now).unwrap();
            }
            if member.poll_timeout() <= now {
                member.handle_timeout(now);
            }
            member.handle_datagram(&datagram, now);
            if let Some(new) = member.poll_keep() {
                kept = new.clone();
            }
            while let Some((to, datagram)) = member.poll_transmit() {
                let step = QuorumStep::decode(&datagram).unwrap();
                prop_assert_eq!((step.from, step.to), (1, to));
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200)) {
        member(1).handle_datagram(&bytes, Instant::from_millis(1));
    }
}
