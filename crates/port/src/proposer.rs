use tautline_guard::frame::{BYTES_MAX, Fact, Proposal, Receiver, Sender, Status};
use tautline_net::datagram::{Address, Client};

/// A vehicle's end towards its guard.
#[derive(Debug)]
pub struct Proposer {
    client: Client,
    sender: Sender,
    facts: Sender,
    receiver: Receiver<Status>,
    unsent_count: u64,
}

impl Proposer {
    /// Returns an end towards the guard at `address`, which need not be there yet.
    pub fn new(address: &Address) -> Self {
        Self {
            client: Client::new(address),
            sender: Sender::default(),
            facts: Sender::default(),
            receiver: Receiver::default(),
            unsent_count: 0,
        }
    }

    /// Sends a proposal; one that cannot be sent is counted, and the next one follows.
    pub fn propose(&mut self, proposal: &Proposal) {
        if !self.client.send(&self.sender.encode(proposal)) {
            self.unsent_count += 1;
        }
    }

    /// Tells the guard's black box something; what cannot be sent is counted, and told again by whoever
    /// tells it.
    pub fn tell(&mut self, fact: &Fact) {
        if !self.client.send(&self.facts.encode(fact)) {
            self.unsent_count += 1;
        }
    }

    /// Takes all that the guard has sent; returns the newest status, if there is one.
    pub fn receive(&mut self) -> Option<Status> {
        let mut buffer = [0; BYTES_MAX + 1];
        let mut newest = None;
        for _ in 0..DATAGRAMS_MAX {
            let Some(length) = self.client.receive(&mut buffer) else { break };
            newest = self.receiver.receive(&buffer[..length]).ok().or(newest);
        }
        newest
    }

    /// Returns how many proposals and facts the system did not take.
    pub fn unsent_count(&self) -> u64 {
        self.unsent_count
    }

    /// Returns how many of the guard's frames were not sound.
    pub fn refused_count(&self) -> u64 {
        self.receiver.refused_count()
    }

    /// Returns how many of them had more at their end than is known here.
    pub fn skipped_count(&self) -> u64 {
        self.receiver.skipped_count()
    }
}

const DATAGRAMS_MAX: usize = 32;
