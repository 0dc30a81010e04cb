use std::collections::{BTreeMap, VecDeque};

use tautline_sim::world;
use tautline_transport::{Class, Event, Route, Session};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::{Camera, LATEST, Sent, digest};

/// Is either end: what it sends and what came.
pub(super) struct End {
    role: Role,
    camera: Option<(Camera, Duration)>,
    message_interval: Duration,
    /// Nothing is sent from then on.
    end: Instant,
    budget: Bitrate,
    media_at: Instant,
    message_at: Instant,
    pub(super) messages: Vec<Sent>,
    pub(super) media: Vec<Sent>,
    /// Datagrams that left, with their digests.
    pub(super) departed: Vec<(u64, Sent)>,
    pub(super) came: Came,
    /// When media was due and the gate closed.
    pub(super) pauses: Vec<Instant>,
}

/// What came from the other end: the numbers of units, and when.
#[derive(Default)]
pub(super) struct Came {
    pub(super) messages: BTreeMap<u64, Instant>,
    pub(super) media: BTreeMap<u64, Instant>,
}

/// Is what stands between the applications and the link.
pub(super) enum Role {
    Session(Box<Session>),
    Plain(Plain),
}

/// Cuts units into datagrams and sends them, whatever comes back.
pub(super) struct Plain {
    datagram_bytes_max: usize,
    route: Route,
    outbox: VecDeque<Vec<u8>>,
    /// Datagrams that came of media units that are not whole yet.
    parts: BTreeMap<u64, u32>,
}

impl Role {
    pub(super) fn session(session: Session) -> Self {
        Self::Session(Box::new(session))
    }

    pub(super) fn plain(datagram_bytes_max: ByteCount, route: Route) -> Self {
        Self::Plain(Plain {
            datagram_bytes_max: datagram_bytes_max.get() as usize,
            route,
            outbox: VecDeque::new(),
            parts: BTreeMap::new(),
        })
    }
}

impl End {
    pub(super) fn new(
        role: Role,
        camera: Option<(Camera, Duration)>,
        message_interval: Duration,
        length: Duration,
    ) -> Self {
        // A plain sender asks nobody.
        let budget = match role {
            Role::Session(_) => Bitrate::ZERO,
            Role::Plain(_) => Bitrate::from_bps(u64::MAX),
        };
        Self {
            role,
            camera,
            message_interval,
            end: Instant::ZERO + length,
            budget,
            media_at: Instant::ZERO,
            message_at: Instant::ZERO,
            messages: Vec::new(),
            media: Vec::new(),
            departed: Vec::new(),
            came: Came::default(),
            pauses: Vec::new(),
        }
    }

    pub(super) fn handle_datagram(&mut self, route: world::Route, datagram: &[u8], now: Instant) {
        let route = Route { socket: route.socket, remote: route.remote };
        match &mut self.role {
            Role::Session(session) => session.handle_datagram(route, datagram, now),
            Role::Plain(plain) => plain.handle_datagram(datagram, &mut self.came, now),
        }
        self.observe(now);
    }

    pub(super) fn poll_transmit(
        &mut self,
        buffer: &mut Vec<u8>,
        now: Instant,
    ) -> Option<world::Route> {
        let route = match &mut self.role {
            Role::Session(session) => session.poll_transmit(buffer, now)?,
            Role::Plain(plain) => {
                buffer.extend_from_slice(&plain.outbox.pop_front()?);
                plain.route
            }
        };
        let sent = Sent { at: now, bytes: ByteCount::of(buffer.as_slice()), arrived: None };
        self.departed.push((digest(buffer), sent));
        Some(world::Route { socket: route.socket, remote: route.remote })
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let session = match &self.role {
            Role::Session(session) => session.poll_timeout().map(|(at, _)| at),
            Role::Plain(_) => None,
        };
        let media = self.camera.map(|_| self.media_at).filter(|at| *at < self.end);
        let message = Some(self.message_at).filter(|at| *at < self.end);
        [session, media, message].into_iter().flatten().min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Role::Session(session) = &mut self.role {
            session.handle_timeout(now);
        }
        self.observe(now);
        if now >= self.message_at && now < self.end {
            self.message_at += self.message_interval;
            self.send_message(now);
        }
        if let Some((camera, deadline)) = self.camera
            && now >= self.media_at
            && now < self.end
        {
            self.media_at += camera.interval();
            self.send_media(&camera, deadline, now);
        }
        self.observe(now);
    }

    fn send_message(&mut self, now: Instant) {
        let number = self.messages.len() as u64;
        let mut unit = [0; MESSAGE_BYTES];
        unit[..8].copy_from_slice(&number.to_be_bytes());
        self.messages.push(Sent { at: now, bytes: ByteCount::of(&unit), arrived: None });
        match &mut self.role {
            // Before the first link is up it is refused: lost, like any message that never comes.
            Role::Session(session) => {
                let _ = session.send(Class::Control, &unit, LATEST, now);
            }
            Role::Plain(plain) => plain.send(Class::Control, number, MESSAGE_BYTES),
        }
    }

    fn send_media(&mut self, camera: &Camera, deadline: Duration, now: Instant) {
        let number = self.media.len() as u64;
        let Some(bytes) = camera.unit_bytes(number, self.budget) else {
            self.pauses.push(now);
            return;
        };
        let bytes = bytes.max(ByteCount::new(MESSAGE_BYTES as u64));
        match &mut self.role {
            Role::Session(session) => {
                let mut unit = vec![0; bytes.get() as usize];
                unit[..8].copy_from_slice(&number.to_be_bytes());
                // What is refused never comes, and is counted by that.
                let _ = session.send(Class::Media, &unit, deadline, now);
            }
            Role::Plain(plain) => plain.send(Class::Media, number, bytes.get() as usize),
        }
        self.media.push(Sent { at: now, bytes, arrived: None });
    }

    fn observe(&mut self, now: Instant) {
        let Role::Session(session) = &mut self.role else { return };
        while let Some(event) = session.poll_event() {
            match event {
                Event::Budget { media } => self.budget = media,
                Event::Unit { class, bytes, .. } => {
                    let number = bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
                    let came = match class {
                        Class::Control => &mut self.came.messages,
                        Class::Media => &mut self.came.media,
                    };
                    came.extend(number.map(|number| (number, now)));
                }
                Event::UnitLost { .. } | Event::Link { .. } | Event::Established => {}
            }
        }
    }
}

impl Plain {
    /// Datagrams begin with their class, their unit's number and the count of its datagrams.
    fn send(&mut self, class: Class, number: u64, bytes: usize) {
        let content = self.datagram_bytes_max - HEAD_BYTES;
        let count = bytes.div_ceil(content);
        for part in 0..count {
            let mut datagram = vec![u8::from(class == Class::Media)];
            datagram.extend_from_slice(&number.to_be_bytes());
            datagram.extend_from_slice(&(count as u32).to_be_bytes());
            datagram.extend_from_slice(&(part as u32).to_be_bytes());
            datagram.resize(HEAD_BYTES + content.min(bytes - part * content), 0);
            self.outbox.push_back(datagram);
        }
    }

    fn handle_datagram(&mut self, datagram: &[u8], came: &mut Came, now: Instant) {
        let Some((head, _)) = datagram.split_at_checked(HEAD_BYTES) else { return };
        let number = head[1..9].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let count = head[9..13].iter().fold(0, |count, byte| count << 8 | u32::from(*byte));
        if head[0] == 0 {
            came.messages.insert(number, now);
            return;
        }
        let parts = self.parts.entry(number).or_default();
        *parts += 1;
        if *parts == count {
            self.parts.remove(&number);
            came.media.insert(number, now);
        }
    }
}

/// As large as a command.
const MESSAGE_BYTES: usize = 60;
/// Class, unit, count of parts, part.
const HEAD_BYTES: usize = 17;
