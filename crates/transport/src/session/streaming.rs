//! The streaming code in a session: when repair packets leave beyond those that are due.

use tautline_units::Instant;

use super::Shared;
use super::active::Active;
use super::rescue::{Carrying, give};
use crate::link::Entry;
use crate::sender::Tracker;

impl Active {
    /// Lets what can no longer be in time leave the stream's coding window.
    pub(super) fn expire_stream(&mut self, carrying: Carrying, now: Instant) {
        let clock = self.clock(now);
        let links = self.links.iter().filter(|link| carrying.allows(link));
        let least = links.map(|link| link.owd_out_least(clock)).min();
        if let Some(stream) = &mut self.outgoing.stream {
            stream.expire(now + least.unwrap_or_default());
        }
    }

    /// Sends repair packets of the stream while what is on its way will not do, each over the link
    /// that delivers it first.
    pub(super) fn repair_stream(&mut self, shared: &mut Shared, now: Instant) {
        // Where every packet goes over every link, a lost one says little.
        let copies = self.outgoing.policy.as_ref().is_some_and(|policy| policy.copies());
        if self.outgoing.stream.is_none() || copies || !shared.config.retransmit {
            return;
        }
        let clock = self.clock(now);
        let carrying = Carrying::of(&self.links);
        self.expire_stream(carrying, now);
        let Some(mut stream) = self.outgoing.stream.take() else { return };
        for _ in 0..AT_ONCE {
            let Some(deadline) = stream.deadline().filter(|_| stream.lacks()) else { break };
            let mut plaintext = self.outgoing.buffer();
            stream.write_asked(&mut plaintext);
            let unit = Tracker::NO_UNIT;
            let entry = Entry { plaintext, deadline, unit, standing: 0, again: false };
            let refused = give(&mut self.links, entry, carrying, clock, &shared.config, now);
            if let Some(refused) = refused {
                stream.on_dropped(&refused.plaintext);
                self.outgoing.recycle(refused.plaintext);
                break;
            }
            shared.counters.repairs_asked += 1;
        }
        self.outgoing.stream = Some(stream);
    }
}

/// More at once would keep the next unit waiting: 64 of 700 bytes are 45 ms of 8 Mbit/s.
const AT_ONCE: usize = 64;
