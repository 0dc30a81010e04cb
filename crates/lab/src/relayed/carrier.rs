use std::collections::{BTreeMap, VecDeque};

use tautline_scenario::endpoint::Transport;
use tautline_transport::{ChannelNumber, Event, Route, SendError, Session, UnitNumber};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// Transport between an application and its link.
pub(super) enum Carrier {
    Session(Box<Session>),
    Plain(Plain),
}

/// A sender that fragments units into datagrams and sends them, without regard to feedback.
pub(super) struct Plain {
    datagram_bytes_max: usize,
    route: Route,
    /// Number of units sent so far, by channel.
    sent: [u64; 2],
    outbox: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
    /// Received parts of incomplete units, by channel and number of the unit.
    parts: BTreeMap<(u8, u64), BTreeMap<u32, Vec<u8>>>,
}

impl Plain {
    pub(super) fn new(datagram_bytes_max: ByteCount, route: Route) -> Self {
        // No rate control: everything is sent.
        let budget = Event::Budget { media: Bitrate::from_bps(u64::MAX), shown: Bitrate::ZERO };
        Self {
            datagram_bytes_max: datagram_bytes_max.get() as usize,
            route,
            sent: [0; 2],
            outbox: VecDeque::new(),
            events: VecDeque::from([budget]),
            parts: BTreeMap::new(),
        }
    }

    /// Fragments a unit into datagrams, which begin with the channel, the unit's number, the number
    /// of the unit's datagrams, and the datagram's place among them.
    fn send(&mut self, channel: ChannelNumber, unit: &[u8]) -> UnitNumber {
        let number = self.sent[usize::from(channel.get())];
        self.sent[usize::from(channel.get())] += 1;
        let parts = unit.chunks(self.datagram_bytes_max - HEAD_BYTES);
        let count = parts.len() as u32;
        for (part, content) in (0_u32..).zip(parts) {
            let mut datagram = vec![channel.get()];
            datagram.extend_from_slice(&number.to_be_bytes());
            datagram.extend_from_slice(&count.to_be_bytes());
            datagram.extend_from_slice(&part.to_be_bytes());
            datagram.extend_from_slice(content);
            self.outbox.push_back(datagram);
        }
        UnitNumber::new(number)
    }

    fn handle_datagram(&mut self, datagram: &[u8]) {
        let Some((head, content)) = datagram.split_at_checked(HEAD_BYTES) else { return };
        let field = |from: usize, to: usize| {
            head[from..to].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        let (number, count, part) = (field(1, 9), field(9, 13), field(13, 17));
        let channel = ChannelNumber::new(head[0]);
        let parts = self.parts.entry((head[0], number)).or_default();
        parts.insert(part as u32, content.to_vec());
        if parts.len() as u64 == count {
            let parts = self.parts.remove(&(head[0], number)).unwrap_or_default();
            let bytes = parts.into_values().flatten().collect();
            let number = UnitNumber::new(number);
            let unit = Event::Unit { channel, number, bytes, sent_at: None, repaired: false };
            self.events.push_back(unit);
        }
    }
}

impl Transport for Carrier {
    fn send(
        &mut self,
        channel: ChannelNumber,
        unit: &[u8],
        deadline: Duration,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        match self {
            Self::Session(session) => session.send(channel, unit, deadline, now),
            Self::Plain(plain) => Ok(plain.send(channel, unit)),
        }
    }

    fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) {
        match self {
            Self::Session(session) => session.handle_datagram(route, datagram, now),
            Self::Plain(plain) => plain.handle_datagram(datagram),
        }
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        match self {
            Self::Session(session) => session.poll_transmit(buffer, now),
            Self::Plain(plain) => {
                buffer.extend_from_slice(&plain.outbox.pop_front()?);
                Some(plain.route)
            }
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Session(session) => session.poll_event(),
            Self::Plain(plain) => plain.events.pop_front(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Session(session) => session.poll_timeout().map(|(at, _)| at),
            Self::Plain(_) => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Session(session) => session.handle_timeout(now),
            Self::Plain(_) => {}
        }
    }
}

/// Size of what precedes the content of a datagram: channel, unit, number of parts, part.
const HEAD_BYTES: usize = 17;
