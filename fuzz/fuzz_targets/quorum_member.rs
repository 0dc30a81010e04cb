//! A member of a quorum handles any datagrams, valid steps among them, at any time. It never ends
//! the process, its persisted state always restarts it, and without messages from others it never
//! acts.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_message::QuorumStep;
use tautline_quorum::{Config, Kept, Member};
use tautline_units::Instant;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let heartbeat = Duration::from_millis(10);
    let config = Config { id: 1, members: 3, heartbeat, timeout_heartbeats: 5, seed: input.word() };
    let mut now = Instant::ZERO;
    let mut member = Member::new(config, Kept::default(), now).expect("the configuration is sound");
    let mut kept = Kept::default();
    // True if any message arrived that could contribute to a majority.
    let mut heard = false;
    while !input.is_empty() {
        match input.up_to(3) {
            0 => {
                let length = input.up_to(64).min(input.0.len());
                let (datagram, rest) = input.0.split_at(length);
                input.0 = rest;
                heard |= QuorumStep::decode(datagram).is_ok();
                member.handle_datagram(datagram, now);
            }
            1 => {
                heard = true;
                let datagram = step(&mut input).encode();
                member.handle_datagram(&datagram, now);
            }
            2 => now += Duration::from_millis(input.byte().into()),
            _ => {
                // Its process ends, and restarts from the persisted state.
                let read = Kept::from_bytes(&kept.to_bytes()).expect("a member wrote it");
                assert_eq!(read, kept);
                member = Member::new(config, read, now).expect("what was kept starts a member");
            }
        }
        if member.poll_timeout() <= now {
            member.handle_timeout(now);
        }
        if let Some(new) = member.poll_keep() {
            kept = new.clone();
        }
        while let Some((to, datagram)) = member.poll_transmit() {
            let step = QuorumStep::decode(&datagram).expect("a member sends steps");
            assert_eq!((step.from, step.to), (1, to));
        }
        assert!(heard || !member.may_act(now), "acts alone");
    }
});

/// Returns a step with numbers near those of a quorum's first elections, or far from them.
fn step(input: &mut Input<'_>) -> QuorumStep {
    let number = |input: &mut Input<'_>| match input.byte() {
        255 => input.word(),
        near => u64::from(near % 8),
    };
    let [term, log_term, index, commit, commit_term, reject_hint] = [(); 6].map(|()| number(input));
    QuorumStep {
        kind: input.byte() % 20,
        from: input.byte() % 5,
        to: 1,
        term,
        log_term,
        index,
        commit,
        commit_term,
        reject: input.byte() % 2 == 1,
        reject_hint,
        round_at: (input.byte() % 2 == 1).then(|| Instant::from_millis(input.byte().into())),
        entry_terms: (0..input.up_to(4)).map(|_| u64::from(input.byte() % 8)).collect(),
    }
}
