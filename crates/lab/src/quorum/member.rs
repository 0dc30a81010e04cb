use std::collections::VecDeque;
use std::time::Duration;

use raft::eraftpb::{ConfState, Entry, HardState, Message, MessageType};
use raft::storage::MemStorage;
use raft::{RawNode, StateRole};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_message::{Builder, QuorumStep};
use tautline_units::Instant;

use super::step::{from_wire, round, round_of, to_wire};
use super::{Error, Kept};

/// Parameters of a member.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Number of this member, from 1 to `members`.
    pub id: u8,
    /// Number of members; three tolerate the loss of one.
    pub members: u8,
    /// Interval between two rounds of the leader's heartbeats.
    pub heartbeat: Duration,
    /// Number of missed heartbeats before a member calls an election; at least 3.
    pub timeout_heartbeats: u8,
    /// Seed of this member's random delays; members need different seeds.
    pub seed: u64,
}

/// Counters of ignored or dropped messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Datagrams that are not valid steps of this quorum.
    pub malformed: u64,
    /// Vote requests that arrived soon after a leader's message or after this member's start.
    pub too_early: u64,
    /// Steps that Raft rejected, or that no correct member can have sent, such as those of unknown
    /// members.
    pub refused: u64,
    /// Datagrams that were not queued for sending, because the queue was full.
    pub unsent: u64,
}

/// One of several computers, of which only one acts at a time.
pub struct Member {
    config: Config,
    node: RawNode<MemStorage>,
    builder: Builder,
    /// Time until which this member grants no vote.
    silent_until: Instant,
    tick_due: Instant,
    heartbeat_due: Instant,
    /// End of this member's lease by its own clock, which may have passed; `None` if it holds none.
    leads_until: Option<Instant>,
    kept: Kept,
    unkept: bool,
    outbox: VecDeque<(u8, Vec<u8>)>,
    counters: Counters,
}

impl Member {
    /// Creates a member that starts at `now` from its persisted state.
    ///
    /// # Errors
    /// If the configuration is invalid, or does not fit the persisted state.
    pub fn new(config: Config, kept: Kept, now: Instant) -> Result<Self, Error> {
        let Config { id, members, timeout_heartbeats, .. } = config;
        if id == 0 || id > members {
            return Err(Error::NoSuchMember { id, members });
        }
        if timeout_heartbeats < TIMEOUT_HEARTBEATS_MIN {
            return Err(Error::TooFewHeartbeats { heartbeats: timeout_heartbeats });
        }
        let ticks = usize::from(timeout_heartbeats) * TICKS;
        let raft_config = raft::Config {
            id: id.into(),
            election_tick: ticks,
            // The rounds that renew the lease are heartbeats too; Raft's own only fill gaps.
            heartbeat_tick: ticks - 1,
            min_election_tick: ticks,
            // Raft uses an unseeded generator: `reseed` overrides its random timeout.
            max_election_tick: 2 * ticks,
            check_quorum: true,
            pre_vote: true,
            max_inflight_msgs: INFLIGHT_MAX,
            ..raft::Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&raft_config, storage(members, &kept), &logger)
            .map_err(|error| Error::Raft(error.to_string()))?;
        let mut member = Self {
            config,
            node,
            builder: Builder::new(),
            silent_until: now,
            tick_due: now + config.heartbeat / TICKS as u32,
            heartbeat_due: now,
            leads_until: None,
            kept,
            unkept: false,
            outbox: VecDeque::new(),
            counters: Counters::default(),
        };
        // Before a crash it may have answered a leader, which it no longer knows.
        member.silent_until = now + member.leader_timeout();
        member.reseed();
        Ok(member)
    }

    /// Returns whether this member may act at `now`, that is, whether it holds a lease.
    pub fn may_act(&self, now: Instant) -> bool {
        self.leads_until.is_some_and(|until| now < until)
    }

    /// Returns the end of this member's lease by its own clock, which may have passed since the
    /// last call; `None` if it holds none.
    pub fn leads_until(&self) -> Option<Instant> {
        self.leads_until
    }

    /// Returns the current term. Terms increase with each election, so an actuator can reject a
    /// deposed leader.
    pub fn term(&self) -> u64 {
        self.node.raft.term
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Handles a datagram of another member; any bytes are safe. Invalid datagrams are counted and
    /// dropped, and so are vote requests while a leader may hold a lease.
    pub fn handle_datagram(&mut self, datagram: &[u8], now: Instant) {
        self.expire(now);
        let message = QuorumStep::decode(datagram).ok().filter(|step| step.to == self.config.id);
        let Some(message) = message.as_ref().and_then(from_wire) else {
            self.counters.malformed += 1;
            return;
        };
        if asks_for_a_vote(&message) && now < self.silent_until {
            self.counters.too_early += 1;
            return;
        }
        let from = message.from;
        if !self.is_sound(&message) || self.node.step(message).is_err() {
            self.counters.refused += 1;
        } else if self.node.raft.state == StateRole::Follower && self.node.raft.leader_id == from {
            // Raft forgets its leader when a later term appears; the promise to that leader still
            // holds.
            self.silent_until = now + self.leader_timeout();
        }
        self.settle(now);
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) must be called.
    pub fn poll_timeout(&self) -> Instant {
        self.tick_due.min(self.heartbeat_due)
    }

    /// Handles all expired timers. Missed ticks are not made up for.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.expire(now);
        let tick = self.config.heartbeat / TICKS as u32;
        // Missed ticks are not made up: two at once would shorten the time on which a lease relies.
        if now >= self.tick_due {
            self.node.tick();
            self.tick_due = now + tick;
        }
        if now >= self.heartbeat_due {
            if self.node.raft.state == StateRole::Leader {
                self.node.read_index(round(now));
            }
            self.heartbeat_due = (self.heartbeat_due + self.config.heartbeat).max(now);
        }
        self.settle(now);
    }

    /// Returns state that must be persisted before any further send, or `None` if nothing changed
    /// since the last call.
    pub fn poll_keep(&mut self) -> Option<&Kept> {
        std::mem::take(&mut self.unkept).then_some(&self.kept)
    }

    /// Returns the next datagram and its destination member, or `None` if there are no more.
    pub fn poll_transmit(&mut self) -> Option<(u8, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// Returns whether a correct member can have sent this message. Raft assumes so, and panics
    /// otherwise.
    fn is_sound(&self, message: &Message) -> bool {
        let Kept { commit, entry_terms, .. } = &self.kept;
        let last = entry_terms.len() as u64;
        let known = (1..=u64::from(self.config.members)).contains(&message.from);
        let committed_stand = message.entries.iter().all(|entry| {
            let own = entry.index.checked_sub(1).and_then(|at| entry_terms.get(at as usize));
            entry.index > *commit || own == Some(&entry.term)
        });
        let rising = message.entries.is_sorted_by_key(|entry| entry.term)
            && message.entries.iter().all(|entry| (1..=message.term).contains(&entry.term));
        let fits = match message.msg_type {
            MessageType::MsgHeartbeat => message.commit <= last,
            MessageType::MsgAppend => message.index <= last && message.commit < TERM_MAX,
            MessageType::MsgAppendResponse => message.index <= last && message.reject_hint <= last,
            _ => true,
        };
        let other = message.from != u64::from(self.config.id);
        known && other && (1..TERM_MAX).contains(&message.term) && committed_stand && rising && fits
    }

    /// Processes everything that Raft has ready, and ends the lease if this member no longer leads.
    fn settle(&mut self, now: Instant) {
        self.reseed();
        while self.node.has_ready() {
            let mut ready = self.node.ready();
            self.send(ready.take_messages());
            for state in ready.take_read_states() {
                self.renew(round_of(&state.request_ctx), now);
            }
            let store = self.node.store().clone();
            store.wl().append(ready.entries()).expect("the entries follow the stored ones");
            self.keep_entries(ready.entries());
            if let Some(hard) = ready.hs() {
                store.wl().set_hardstate(hard.clone());
                self.keep(hard);
            }
            self.send(ready.take_persisted_messages());
            let mut light = self.node.advance(ready);
            if let Some(commit) = light.commit_index() {
                store.wl().mut_hard_state().set_commit(commit);
                self.kept.commit = commit;
                self.unkept = true;
            }
            self.send(light.take_messages());
            self.node.advance_apply();
        }
        if self.node.raft.state != StateRole::Leader {
            self.leads_until = None;
        }
    }

    /// Extends the lease to its length after `began`, if this member leads and that is later than
    /// `now`: a majority has answered the round that began then. Does nothing without `began`, or
    /// if it is later than `now`.
    fn renew(&mut self, began: Option<Instant>, now: Instant) {
        let Some(began) = began.filter(|began| *began <= now) else { return };
        let until = began + self.lease();
        if self.node.raft.state == StateRole::Leader && until > now {
            self.leads_until = self.leads_until.max(Some(until));
        }
    }

    /// Ends an expired lease, even if Raft still believes in it.
    fn expire(&mut self, now: Instant) {
        self.leads_until = self.leads_until.filter(|until| now < *until);
    }

    /// Returns the length of a lease: the minimum time before any member votes again, less one tick
    /// that may follow immediately, less the clock drift over that time.
    fn lease(&self) -> Duration {
        let tick = self.config.heartbeat / TICKS as u32;
        let ticks = u32::from(self.config.timeout_heartbeats) * TICKS as u32 - 1;
        tick * ticks * (DRIFT - 1) / DRIFT
    }

    /// Returns how long a member withholds its vote after a message from its leader: longer than a
    /// lease.
    fn leader_timeout(&self) -> Duration {
        self.config.heartbeat * u32::from(self.config.timeout_heartbeats) * DRIFT / (DRIFT - 1)
    }

    /// Replaces Raft's random election timeout by one from this member's seed. It differs in every
    /// term, so that two simultaneous candidates do not collide again.
    fn reseed(&mut self) {
        let ticks = usize::from(self.config.timeout_heartbeats) * TICKS;
        let candidate = u64::from(self.node.raft.state == StateRole::Candidate);
        let mut random = ChaCha8Rng::seed_from_u64(self.config.seed);
        random.set_stream(2 * self.term() + candidate);
        self.node.raft.set_randomized_election_timeout(random.random_range(ticks + 1..2 * ticks));
    }

    fn keep(&mut self, hard: &HardState) {
        self.kept.term = hard.term;
        self.kept.vote = hard.vote;
        self.kept.commit = hard.commit;
        self.unkept = true;
    }

    fn keep_entries(&mut self, entries: &[Entry]) {
        for entry in entries {
            // An existing entry at that index was never committed.
            self.kept.entry_terms.truncate(entry.index.saturating_sub(1) as usize);
            self.kept.entry_terms.push(entry.term);
            self.unkept = true;
        }
    }

    fn send(&mut self, messages: Vec<Message>) {
        for message in messages {
            let Some(step) = to_wire(&message) else { continue };
            if self.outbox.len() == OUTBOX_MAX {
                self.counters.unsent += 1;
                continue;
            }
            let datagram = step.encode_into(&mut self.builder).to_vec();
            self.outbox.push_back((step.to, datagram));
        }
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member")
            .field("id", &self.config.id)
            .field("term", &self.term())
            .field("leads_until", &self.leads_until)
            .finish_non_exhaustive()
    }
}

fn asks_for_a_vote(message: &Message) -> bool {
    matches!(message.msg_type, MessageType::MsgRequestVote | MessageType::MsgRequestPreVote)
}

/// Returns Raft's view of the persisted state.
fn storage(members: u8, kept: &Kept) -> MemStorage {
    let voters: Vec<u64> = (1..=u64::from(members)).collect();
    let storage = MemStorage::new_with_conf_state(ConfState::from((voters, vec![])));
    let entries: Vec<Entry> = kept
        .entry_terms
        .iter()
        .zip(1..)
        .map(|(term, index)| Entry { term: *term, index, ..Entry::default() })
        .collect();
    storage.wl().append(&entries).expect("an empty log accepts them");
    let Kept { term, vote, commit, .. } = *kept;
    let hard = HardState { term, vote, commit, ..HardState::default() };
    storage.wl().set_hardstate(hard);
    storage
}

/// Raft ticks per heartbeat interval; election timeouts are spread in these steps.
const TICKS: usize = 4;
const TIMEOUT_HEARTBEATS_MIN: u8 = 3;
/// Inverse of the assumed difference of clock rates: less than 1 in 500. Crystals differ by 1 in
/// 5000.
const DRIFT: u32 = 500;
/// Upper limit on terms, far beyond any real number of elections: a step with this term or a later
/// one is refused.
const TERM_MAX: u64 = 1 << 62;
const INFLIGHT_MAX: usize = 16;
/// Maximum length of the send queue, beyond which messages are dropped and counted: messages to two
/// members, for several rounds.
const OUTBOX_MAX: usize = 64;
