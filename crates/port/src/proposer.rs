use tautline_guard::frame::{BYTES_MAX, Fact, Proposal, Receiver, Sender, Status};
use tautline_net::datagram::{Address, Client};

/// A vehicle's end towards its guard: sends proposals and facts, and receives the guard's status.
#[derive(Debug)]
pub struct Proposer {
    client: Client,
    sender: Sender,
    facts: Sender,
    receiver: Receiver<Status>,
    unsent_count: u64,
}

impl Proposer {
    /// Creates an end towards the guard at `address`, which need not run yet.
    pub fn new(address: &Address) -> Self {
        Self {
            client: Client::new(address),
            sender: Sender::default(),
            facts: Sender::default(),
            receiver: Receiver::default(),
            unsent_count: 0,
        }
    }

    /// Sends a proposal; a failure is counted, and the next proposal replaces it.
    pub fn propose(&mut self, proposal: &Proposal) {
        if !self.client.send(&self.sender.encode(proposal)) {
            self.unsent_count += 1;
        }
    }

    /// Sends a fact to the guard's black box; a failure is counted, and the caller repeats the fact
    /// later.
    pub fn tell(&mut self, fact: &Fact) {
        if !self.client.send(&self.facts.encode(fact)) {
            self.unsent_count += 1;
        }
    }

    /// Receives all waiting frames of the guard; returns the bytes of the newest valid status, if
    /// there is one.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; BYTES_MAX + 1];
        let mut newest = None;
        for _ in 0..DATAGRAMS_MAX {
            let Some(length) = self.client.receive(&mut buffer) else { break };
            let bytes = &buffer[..length];
            newest = self.receiver.receive(bytes).ok().map(|_| bytes.to_vec()).or(newest);
        }
        newest
    }

    /// Returns the number of proposals and facts that the system did not send.
    pub fn unsent_count(&self) -> u64 {
        self.unsent_count
    }

    /// Returns the number of invalid frames from the guard.
    pub fn refused_count(&self) -> u64 {
        self.receiver.refused_count()
    }

    /// Returns the number of frames with trailing numbers unknown to this build.
    pub fn skipped_count(&self) -> u64 {
        self.receiver.skipped_count()
    }
}

const DATAGRAMS_MAX: usize = 32;
