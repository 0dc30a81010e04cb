//! Retransmission without coding.

use std::collections::VecDeque;

use anyhow::Result;

use super::link::{Log, RTT_SLOTS, Scheme};

/// A scheme that retransmits every lost packet before all new ones, as soon as the loss is known.
#[derive(Debug, Default)]
pub(super) struct Arq {
    /// Number of the source packet that is sent next for the first time.
    next: u64,
    /// For each slot of the last round trip, the source packet lost in it; `None` if none was.
    lost: VecDeque<Option<u64>>,
    /// Flags of known source packets, from the first unknown one on.
    known: VecDeque<bool>,
}

impl Scheme for Arq {
    fn slot(&mut self, now: u64, erased: bool, log: &mut Log) -> Result<()> {
        let reported =
            if self.lost.len() as u64 == RTT_SLOTS { self.lost.pop_front() } else { None };
        let sent = if let Some(id) = reported.flatten() {
            log.sent_more();
            Some(id)
        } else if self.next < log.source_count() {
            log.sent_first(now);
            self.known.push_back(false);
            self.next += 1;
            Some(self.next - 1)
        } else {
            None
        };
        self.lost.push_back(sent.filter(|_| erased));
        if let Some(id) = sent.filter(|_| !erased) {
            self.known[(id - log.edge()) as usize] = true;
            let run = self.known.iter().take_while(|known| **known).count();
            self.known.drain(..run);
            log.deliver_below(log.edge() + run as u64, now);
        }
        Ok(())
    }
}
