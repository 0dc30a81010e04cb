//! The bridge to the browsers: messages to each console and from it.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use serde::Serialize;
use tautline_guard::frame::Status;
use tautline_message::{Command, LinkAction, VideoFeedback};
use tautline_units::Instant;
use tautline_video::{Layout, SliceKind};
use tokio::sync::{mpsc, watch};

use super::access::{Browser, Right};
use super::holder::{Change, ConsoleId, Holder, Reason, Role};
use super::lane::{Lane, Taken};
use super::named::named;
use super::wire::{self, SliceHead, kind, tagged};

/// Request of a browser's console to the operator's process.
#[derive(Debug)]
pub enum Request {
    /// Command of the driving console or its successor, or of another console with an emergency
    /// stop.
    Command(Command),
    /// Cut or restore an emulated link.
    Link(LinkAction),
    /// Pick the vehicle of this name, to drive it.
    Pick(String),
    /// Release the vehicle, to pick another.
    Leave,
}

impl Request {
    /// Returns whether a console of this role may make the request. The driving console may make
    /// each, a successor may command, and any other may make an emergency stop unless it only
    /// watches.
    fn is_taken_from(&self, role: Role) -> bool {
        match (self, role) {
            (_, Role::Drives) | (Self::Command(_), Role::Succeeds) => true,
            (Self::Command(command), Role::Waits | Role::Asks | Role::Refused) => {
                command.emergency_stop_number != 0
            }
            (_, Role::Watches) => false,
            (
                Self::Link(_) | Self::Pick(_) | Self::Leave,
                Role::Waits | Role::Asks | Role::Refused | Role::Succeeds,
            ) => false,
        }
    }
}

/// Hub that distributes slices, telemetry and status to the connected consoles.
///
/// One console drives at a time, and sees the picture, as does its agreed successor. The others see
/// who drives, telemetry and status, and may ask to drive. Consoles that may only watch have no
/// effect on anything.
pub struct Hub {
    consoles: Mutex<Consoles>,
    /// Name of the vehicle; empty before one is picked.
    vehicle: Mutex<String>,
    hello: Mutex<Bytes>,
    /// Latest list of vehicles to pick from; empty before the first list.
    fleet: Mutex<Bytes>,
    metrics: Mutex<String>,
    requests: mpsc::Sender<Request>,
    /// Console that drives and its successor, for the operator's input.
    holding: watch::Sender<Holding>,
    /// Decoder that a page reported last; `None` before the first report.
    decoder: Mutex<Option<Decoder>>,
    /// Requests of the driving console and of this hub to the encoders, since they were last taken.
    feedback: Mutex<VideoFeedback>,
    unix_micros: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Number of slices dropped because a console's queue was full: the browser was too slow.
    pub slices_dropped: AtomicU64,
    /// Number of malformed messages that browsers have sent.
    pub messages_malformed: AtomicU64,
    /// Requests dropped because the queue to the operator's input was full; half full for all but
    /// acts and emergency stops.
    pub requests_dropped: AtomicU64,
    /// Requests refused because the console's role does not permit them, and all messages of
    /// consoles that only watch, except clock messages.
    pub requests_refused: AtomicU64,
    /// Commands dropped because they exceeded the rate limits of their console.
    pub commands_flooded: AtomicU64,
    /// Commands refused because they took too long from the browser to here.
    pub commands_stale: AtomicU64,
    /// Commands refused because the browser dated them ahead of this clock.
    pub commands_ahead: AtomicU64,
}

named! {
    /// Decoder of a page's browser, as reported by the page.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Decoder {
        /// The browser decodes with hardware.
        Hardware: "hardware",
        /// The browser decodes in software.
        Processor: "processor",
        /// The page does not know how its browser decodes.
        Unknown: "unknown",
    }
}

impl Decoder {
    /// All decoders, in the order of the page's numbers.
    pub(crate) const ALL: [Self; 3] = [Self::Hardware, Self::Processor, Self::Unknown];
}

/// Console that drives, and console that may take over from it at any moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Holding {
    pub(crate) console: Option<ConsoleId>,
    pub(crate) successor: Option<ConsoleId>,
}

#[derive(Debug, Default)]
struct Consoles {
    holder: Holder,
    places: Vec<Place>,
    places_made: u64,
    /// Latest change of the driving console, with its time in Unix microseconds; `None` before the
    /// first.
    changed: Option<(Change, u64)>,
    /// Time of the vehicle's latest report, in Unix microseconds, if it said that the vehicle
    /// stands still; `None` otherwise.
    stood_still_at: Option<u64>,
    /// Console that the vehicle's guard lets drive by its latest report, and the time of that
    /// report in Unix microseconds; `None` if it lets none.
    guarded: Option<(ConsoleId, u64)>,
    /// Time at which the driving console last agreed to hand over, Unix microseconds; 0 before.
    agreed_at: u64,
    /// Operator of these consoles, as shown on them; `None` until [`Hub::of`] sets it.
    operator: Option<Known>,
}

/// Name and public key of the operator of these consoles, as the pages show them.
#[derive(Debug, Serialize)]
struct Known {
    name: String,
    key: String,
}

/// Client connection of a console, as the hub knows it.
#[derive(Debug)]
struct Place {
    number: u64,
    id: ConsoleId,
    visitor: Visitor,
    messages: mpsc::Sender<Bytes>,
    /// Role message of this console, which overtakes all other messages. Dropping the sender ends
    /// the connection.
    standing: watch::Sender<Bytes>,
    /// True until the newest hello (the vehicle's name, the pictures' layout and codec) is queued;
    /// no slice is queued before it.
    hello_is_due: bool,
    /// Strips, bit n for strip n, of which this console gets no slice before their next IDR,
    /// because it missed one or has only begun to see the pictures.
    waiting_for_idr: u8,
    /// State of the rate limits on this console's commands; commands beyond them are dropped and
    /// counted.
    lane: Lane,
}

/// Origin of a console: browser, right and address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Visitor {
    pub(crate) browser: Browser,
    pub(crate) right: Right,
    pub(crate) address: IpAddr,
}

/// Reason for refusing a client connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// The maximum number of consoles is connected, or that of consoles that may only watch, for
    /// one more of these.
    Full,
    /// A page of another browser uses this number: knowing a number does not take over its
    /// connection.
    Taken,
}

impl Refused {
    /// Returns the reason that the browser gets, in words.
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::Full => "too many consoles are open",
            Self::Taken => "a console in another browser has this number",
        }
    }
}

/// The connection's end of a console that has joined the hub: its number and its queues.
#[derive(Debug)]
pub(crate) struct Joined {
    /// Number of the console's client connection.
    pub(crate) number: u64,
    /// Queue of messages to the console, bounded; a message that does not fit is dropped.
    pub(crate) messages: mpsc::Receiver<Bytes>,
    /// Newest role message; closed when the same page has reconnected.
    pub(crate) standing: watch::Receiver<Bytes>,
}

impl Hub {
    /// Creates a hub without consoles for the pictures of `vehicle`, which is empty if one has to
    /// be picked. Requests of browsers go to `requests`; `unix_micros` reads the operator's clock.
    pub fn new(
        vehicle: &str,
        requests: mpsc::Sender<Request>,
        unix_micros: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self {
            consoles: Mutex::default(),
            vehicle: Mutex::new(vehicle.to_owned()),
            hello: Mutex::new(wire::hello(vehicle, None)),
            fleet: Mutex::default(),
            metrics: Mutex::new(String::new()),
            requests,
            holding: watch::Sender::new(Holding::default()),
            decoder: Mutex::new(None),
            feedback: Mutex::default(),
            unix_micros: Box::new(unix_micros),
            slices_dropped: AtomicU64::new(0),
            messages_malformed: AtomicU64::new(0),
            requests_dropped: AtomicU64::new(0),
            requests_refused: AtomicU64::new(0),
            commands_flooded: AtomicU64::new(0),
            commands_stale: AtomicU64::new(0),
            commands_ahead: AtomicU64::new(0),
        }
    }

    /// Sets the operator shown on the consoles: its name, and its public key as text.
    #[must_use]
    pub fn of(self, name: &str, key: &str) -> Self {
        let known = Known { name: name.to_owned(), key: key.to_owned() };
        lock(&self.consoles).operator = Some(known);
        self
    }

    /// Sets the layout and codec of the pictures, which consoles get before the next slice. Every
    /// strip restarts from an IDR.
    pub fn set_picture(&self, layout: &Layout, codec: &str) {
        *lock(&self.hello) = wire::hello(&lock(&self.vehicle), Some((layout, codec)));
        self.greet_all();
    }

    /// Sets the name of the vehicle, empty if one has to be picked, and sends it to the consoles.
    /// Forgets the former vehicle's layout and its reports of standstill and guard; each strip
    /// waits for an IDR.
    pub(crate) fn set_vehicle(&self, vehicle: &str) {
        vehicle.clone_into(&mut lock(&self.vehicle));
        *lock(&self.hello) = wire::hello(vehicle, None);
        let mut consoles = lock(&self.consoles);
        (consoles.stood_still_at, consoles.guarded) = (None, None);
        drop(consoles);
        self.greet_all();
    }

    fn greet_all(&self) {
        for place in &mut lock(&self.consoles).places {
            (place.hello_is_due, place.waiting_for_idr) = (true, ALL_STRIPS);
            self.greet(place);
        }
    }

    /// Sets the text that `/metrics` shows.
    pub fn set_metrics(&self, text: String) {
        *lock(&self.metrics) = text;
    }

    /// Returns the text that `/metrics` shows.
    pub fn metrics(&self) -> String {
        lock(&self.metrics).clone()
    }

    /// Shows a slice to the driving console, and to its successor, if there are any. A console that
    /// missed a slice of a strip gets that strip again from its next IDR on, which is requested;
    /// for a successor one strip after another.
    pub fn show_slice(&self, head: SliceHead, message: Bytes) {
        let mut consoles = lock(&self.consoles);
        let successor = consoles.holder.successor();
        if let Some(place) = consoles.place_of(successor) {
            // One strip after another: all at once would delay the pictures of the driving console.
            let next = 1_u8 << place.waiting_for_idr.trailing_zeros().min(7);
            self.show_slice_to(place, head, message.clone(), next);
        }
        if let Some(place) = consoles.holding_place() {
            self.show_slice_to(place, head, message, ALL_STRIPS);
        }
    }

    /// Shows a slice to one console. A console that waits for an IDR of the slice's strip gets no
    /// other slice of it; the IDR is then requested only if the strip's bit is set in `asked`. If
    /// the console's queue has no room for the slice, or for a hello due before it, the slice is
    /// dropped and counted; the console then waits for an IDR, which is requested in any case.
    fn show_slice_to(&self, place: &mut Place, head: SliceHead, message: Bytes, asked: u8) {
        let bit = 1_u8 << head.strip;
        if place.waiting_for_idr & bit != 0 && head.kind != SliceKind::Idr {
            lock(&self.feedback).keyframe_strips |= bit & asked;
            return;
        }
        if self.greet(place) && place.messages.try_send(message).is_ok() {
            place.waiting_for_idr &= !bit;
        } else {
            place.waiting_for_idr |= bit;
            lock(&self.feedback).keyframe_strips |= bit;
            self.slices_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Forwards a vehicle's telemetry unchanged to all consoles. While the vehicle stands still, a
    /// console that asks to drive gets the role. An agreed successor gets it once the vehicle's
    /// guard lets it drive: `holder` is the number of the console that the guard lets drive, 0 for
    /// none. An agreement that has not led to that within 10 s is revoked.
    pub fn show_telemetry(&self, bytes: &[u8], stands_still: bool, holder: u64) {
        self.follow_guard(NonZeroU64::new(holder).map(ConsoleId));
        if stands_still {
            let mut consoles = lock(&self.consoles);
            consoles.stood_still_at = Some((self.unix_micros)());
            let change = consoles.holder.handle_standstill();
            self.apply(&mut consoles, change);
        } else {
            lock(&self.consoles).stood_still_at = None;
        }
        self.show(kind::TELEMETRY, bytes);
    }

    fn follow_guard(&self, holder: Option<ConsoleId>) {
        let mut consoles = lock(&self.consoles);
        let now = (self.unix_micros)();
        consoles.guarded = holder.map(|holder| (holder, now));
        let change = holder.and_then(|holder| consoles.holder.handle_guard(holder));
        let agreed_for = Duration::from_micros(now.saturating_sub(consoles.agreed_at));
        if change.is_some() {
            self.apply(&mut consoles, change);
        } else if consoles.holder.successor().is_some() && agreed_for >= HANDOVER_MAX {
            consoles.holder.handle_timeout();
            self.tell_holding(&consoles);
            consoles.tell_standing();
        }
    }

    /// Shows the encoded status of the operator's process to all consoles.
    pub fn show_status(&self, bytes: &[u8]) {
        self.show(kind::STATUS, bytes);
    }

    /// Shows an encoded snapshot of either end to all consoles.
    pub fn show_snapshot(&self, bytes: &[u8]) {
        self.show(kind::SNAPSHOT, bytes);
    }

    /// Shows the encoded description of the vehicle's machine to all consoles.
    pub(crate) fn show_description(&self, bytes: &[u8]) {
        self.show(kind::DESCRIPTION, bytes);
    }

    /// Shows the encoded values of the vehicle's machine to all consoles.
    pub(crate) fn show_values(&self, bytes: &[u8]) {
        self.show(kind::VALUES, bytes);
    }

    /// Shows the topics of other programs, as JSON, to all consoles.
    pub(crate) fn show_topics(&self, json: &[u8]) {
        self.show(kind::TOPICS, json);
    }

    /// Shows the list of vehicles to pick from, as JSON, now and to each new console.
    pub(crate) fn show_fleet(&self, json: &str) {
        *lock(&self.fleet) = tagged(kind::FLEET, json.as_bytes());
        self.repeat_fleet();
    }

    /// Shows the latest list of vehicles again, since a slow console may have missed it.
    pub(crate) fn repeat_fleet(&self) {
        let fleet = lock(&self.fleet).clone();
        if !fleet.is_empty() {
            self.show_message(&fleet);
        }
    }

    /// Returns the requests to the encoders; keyframe requests are cleared by that, the rest
    /// persists.
    pub fn take_feedback(&self) -> VideoFeedback {
        let mut feedback = lock(&self.feedback);
        let taken = *feedback;
        feedback.keyframe_strips = 0;
        taken
    }

    /// Returns the decoder that a page reported last; `None` before the first report.
    pub(crate) fn decoder(&self) -> Option<Decoder> {
        *lock(&self.decoder)
    }

    /// Returns a receiver of which console drives and which may take over, now and after each
    /// change.
    pub(crate) fn holding(&self) -> watch::Receiver<Holding> {
        self.holding.subscribe()
    }

    /// Adds a console, which drives if it may and no other does. If one with the same id is
    /// connected, the page has reconnected, and its former connection is closed; if it drives, its
    /// pictures restart from IDRs. Returns the number and the queues of the new connection.
    ///
    /// # Errors
    /// Fails if there are too many consoles, or if a console of another browser has the same id.
    pub(crate) fn join(&self, id: ConsoleId, visitor: Visitor) -> Result<Joined, Refused> {
        let mut consoles = lock(&self.consoles);
        let former = consoles.places.iter().find(|place| place.id == id);
        if former.is_some_and(|place| place.visitor.browser != visitor.browser) {
            return Err(Refused::Taken);
        }
        consoles.places.retain(|place| place.id != id);
        let watching = consoles.places.iter().filter(|place| place.visitor.right == Right::Watch);
        let is_one_too_many = visitor.right == Right::Watch && watching.count() == WATCHING_MAX;
        if consoles.places.len() == CONSOLES_MAX || is_one_too_many {
            return Err(Refused::Full);
        }
        let number = consoles.places_made;
        consoles.places_made += 1;
        let (messages, receiver) = mpsc::channel(MESSAGES_MAX);
        let (sender, standing) = watch::channel(Bytes::new());
        consoles.places.push(Place {
            number,
            id,
            visitor,
            messages,
            standing: sender,
            hello_is_due: true,
            waiting_for_idr: ALL_STRIPS,
            lane: Lane::new(),
        });
        let again = consoles.holder.holding() == Some(id);
        if visitor.right == Right::Drive {
            let change = consoles.holder.join(id);
            self.apply(&mut consoles, change);
        }
        if again {
            self.begin_pictures(&mut consoles);
        }
        consoles.tell_standing();
        if let Some(place) = consoles.places.last_mut() {
            self.greet(place);
            let fleet = lock(&self.fleet).clone();
            if !fleet.is_empty() {
                // If the queue is full, the page gets the next list, which follows soon.
                let _ = place.messages.try_send(fleet);
            }
        }
        Ok(Joined { number, messages: receiver, standing })
    }

    /// Removes the console of client connection `number`; does nothing if it has reconnected since.
    /// If it drove, its successor or the console that asks to drive takes over, or none drives.
    pub(crate) fn leave(&self, number: u64) {
        let mut consoles = lock(&self.consoles);
        let Some(at) = consoles.places.iter().position(|place| place.number == number) else {
            return;
        };
        let id = consoles.places.remove(at).id;
        let change = consoles.holder.leave(id);
        self.apply(&mut consoles, change);
        consoles.tell_standing();
    }

    /// Handles a message of the console of client connection `number`: answers clock messages,
    /// records its decoder and the driving console's requests to the encoders, handles requests to
    /// drive and answers to them, and passes all else on to the operator. Messages that are
    /// malformed, refused or too many are counted and dropped.
    pub(crate) fn handle(&self, number: u64, message: &[u8]) {
        let mut consoles = lock(&self.consoles);
        let Some(place) = consoles.places.iter().find(|place| place.number == number) else {
            return;
        };
        let (id, role) = (place.id, consoles.role(place));
        if role == Role::Watches && message.first() != Some(&kind::CLOCK) {
            self.requests_refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let drives = role == Role::Drives;
        let mut is_deed = false;
        let request = match message.split_first() {
            Some((&kind::COMMAND, rest)) => {
                let Ok(command) = Command::decode(rest) else { return self.count_malformed() };
                let now = Instant::from_micros((self.unix_micros)());
                let place = consoles.places.iter_mut().find(|place| place.number == number);
                match place.map(|place| place.lane.take(&command, now)) {
                    Some(Taken::Flooded) | None => {
                        self.commands_flooded.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    Some(taken) => is_deed = taken == Taken::Deed,
                }
                Some(Request::Command(Command { console: id.0.get(), ..command }))
            }
            Some((&kind::LINK, rest)) => LinkAction::decode(rest).ok().map(Request::Link),
            Some((&kind::PICK, name)) => vehicle_name(name).map(Request::Pick),
            Some((&kind::LEAVE, [])) => Some(Request::Leave),
            Some((&kind::CLOCK, rest)) if rest.len() == 8 => {
                let now = (self.unix_micros)().to_be_bytes();
                // After a lost answer, the page pings again.
                let _ = place.messages.try_send(tagged(kind::CLOCK_PONG, &[rest, &now].concat()));
                return;
            }
            Some((&kind::VIDEO_FEEDBACK, rest)) => {
                let Ok(told) = VideoFeedback::decode(rest) else { return self.count_malformed() };
                if drives {
                    let mut feedback = lock(&self.feedback);
                    feedback.keyframe_strips |= told.keyframe_strips & ALL_STRIPS;
                    feedback.picture_interval = told.picture_interval;
                    feedback.pixels_max = told.pixels_max;
                }
                return;
            }
            Some((&kind::DECODER, &[by @ 0..=2])) => {
                *lock(&self.decoder) = Some(Decoder::ALL[usize::from(by)]);
                return;
            }
            Some((&kind::ASK, &[asks @ (0 | 1)])) => {
                let stands_still = self.stands_still(&consoles);
                let change = match asks {
                    0 => {
                        consoles.holder.withdraw(id);
                        self.tell_holding(&consoles);
                        None
                    }
                    _ => consoles.holder.ask(id, stands_still),
                };
                self.apply(&mut consoles, change);
                return consoles.tell_standing();
            }
            Some((&kind::ANSWER, &[a, b, c, d, agrees @ (0 | 1)])) => {
                let number = u32::from_be_bytes([a, b, c, d]);
                let is_driving = self.lets_drive(&consoles, id);
                let before = consoles.holder.agreed();
                let change = consoles.holder.answer(id, number, agrees == 1, is_driving);
                // Another answer does not extend an agreement.
                if consoles.holder.agreed().is_some_and(|agreed| before != Some(agreed)) {
                    self.begin_succession(&mut consoles);
                }
                self.tell_holding(&consoles);
                self.apply(&mut consoles, change);
                return consoles.tell_standing();
            }
            Some(_) | None => None,
        };
        drop(consoles);
        match request {
            None => self.count_malformed(),
            Some(request) if !request.is_taken_from(role) => {
                self.requests_refused.fetch_add(1, Ordering::Relaxed);
            }
            Some(request) => {
                // Half of the queue is reserved for acts and emergency stops.
                let room = self.requests.max_capacity() / if is_deed { 1 } else { 2 };
                let waiting = self.requests.max_capacity() - self.requests.capacity();
                if waiting >= room || self.requests.try_send(request).is_err() {
                    self.requests_dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn count_malformed(&self) {
        self.messages_malformed.fetch_add(1, Ordering::Relaxed);
    }

    fn show(&self, kind: u8, bytes: &[u8]) {
        self.show_message(&tagged(kind, bytes));
    }

    fn show_message(&self, message: &Bytes) {
        for place in &mut lock(&self.consoles).places {
            self.greet(place);
            // A newer message follows within 0.1 s.
            let _ = place.messages.try_send(message.clone());
        }
    }

    /// Sends the newest hello if it is due and the queue has room; returns whether none is due any
    /// more.
    fn greet(&self, place: &mut Place) -> bool {
        if place.hello_is_due {
            let hello = lock(&self.hello).clone();
            place.hello_is_due = place.messages.try_send(hello).is_err();
        }
        !place.hello_is_due
    }

    fn stands_still(&self, consoles: &Consoles) -> bool {
        // Before a vehicle is picked, there is none that could move.
        if lock(&self.vehicle).is_empty() {
            return true;
        }
        let now = (self.unix_micros)();
        let is_fresh =
            |at: u64| Duration::from_micros(now.saturating_sub(at)) < Status::MACHINE_AGE_MAX;
        consoles.stood_still_at.is_some_and(is_fresh)
    }

    /// Applies a change of the driving console, if there is one: restarts the pictures, except
    /// after consent for a console that sees them already, and notifies the operator's input and
    /// all consoles at once.
    fn apply(&self, consoles: &mut Consoles, change: Option<Change>) {
        let Some(change) = change else { return };
        consoles.changed = Some((change, (self.unix_micros)()));
        // A console that took over while driving sees the pictures already, so they continue.
        let sees = consoles.holding_place().is_some_and(|place| place.waiting_for_idr == 0);
        if change.reason != Reason::Consent || !sees {
            self.begin_pictures(consoles);
        }
        self.tell_holding(consoles);
        let address = consoles.holding_place().map(|place| place.visitor.address);
        tracing::info!(console = ?address, reason = ?change.reason, "the driving console has \
                                                                     changed");
        consoles.tell_standing();
    }

    /// Returns whether the vehicle's guard lets this console drive, by fresh telemetry.
    fn lets_drive(&self, consoles: &Consoles, console: ConsoleId) -> bool {
        let now = (self.unix_micros)();
        let is_fresh =
            |at: u64| Duration::from_micros(now.saturating_sub(at)) < Status::MACHINE_AGE_MAX;
        consoles.guarded.is_some_and(|(holder, at)| holder == console && is_fresh(at))
    }

    /// Records the time of the agreement, and shows the pictures to the successor from now on,
    /// because it drives by them after taking over.
    fn begin_succession(&self, consoles: &mut Consoles) {
        consoles.agreed_at = (self.unix_micros)();
        let successor = consoles.holder.successor();
        if let Some(place) = consoles.place_of(successor) {
            (place.hello_is_due, place.waiting_for_idr) = (true, ALL_STRIPS);
        }
    }

    /// Passes the driving console and its successor to the operator's input, if either has changed.
    fn tell_holding(&self, consoles: &Consoles) {
        let holder = &consoles.holder;
        let holding = Holding { console: holder.holding(), successor: holder.successor() };
        self.holding.send_if_modified(|told| std::mem::replace(told, holding) != holding);
    }

    /// Requests an IDR of every strip for the driving console, if there is one; it gets a new hello
    /// and no slice before its strip's IDR. Discards the former console's requests to the encoders.
    fn begin_pictures(&self, consoles: &mut Consoles) {
        let mut feedback = VideoFeedback::default();
        if let Some(place) = consoles.holding_place() {
            (place.hello_is_due, place.waiting_for_idr) = (true, ALL_STRIPS);
            feedback.keyframe_strips = ALL_STRIPS;
        }
        *lock(&self.feedback) = feedback;
    }

    /// Joins a console for a test, which drives, and removes the first one that is connected.
    #[cfg(test)]
    pub(crate) fn attach(&self) -> (mpsc::Receiver<Bytes>, Joined) {
        let former = lock(&self.consoles).places.first().map(|place| place.number);
        former.into_iter().for_each(|number| self.leave(number));
        let mut joined = self
            .join(
                ConsoleId(std::num::NonZeroU64::MIN),
                Visitor {
                    browser: Browser(1),
                    right: Right::Drive,
                    address: IpAddr::from([127, 0, 0, 1]),
                },
            )
            .expect("there is room");
        let messages = std::mem::replace(&mut joined.messages, mpsc::channel(1).1);
        (messages, joined)
    }
}

impl Consoles {
    fn holding_place(&mut self) -> Option<&mut Place> {
        self.place_of(self.holder.holding())
    }

    fn place_of(&mut self, console: Option<ConsoleId>) -> Option<&mut Place> {
        let console = console?;
        self.places.iter_mut().find(|place| place.id == console)
    }

    /// Sends every console its role message, if that has changed.
    fn tell_standing(&self) {
        for place in &self.places {
            let told = self.standing(place.id, self.role(place));
            place.standing.send_if_modified(|standing| {
                let is_news = *standing != told;
                *standing = told;
                is_news
            });
        }
    }

    /// Returns the role of the console with this client connection.
    fn role(&self, place: &Place) -> Role {
        match place.visitor.right {
            Right::Drive => self.holder.role(place.id),
            Right::Watch => Role::Watches,
        }
    }

    fn standing(&self, to: ConsoleId, role: Role) -> Bytes {
        let address = |id: ConsoleId| {
            let place = self.places.iter().find(|place| place.id == id);
            place.map_or_else(String::new, |place| place.visitor.address.to_string())
        };
        let holder = self.holder.holding().map(|id| {
            let since = self.changed.map_or(0, |(_, at)| at / 1_000);
            serde_json::json!({ "address": address(id), "sinceUnixMs": since })
        });
        let request = self.holder.request().filter(|_| role == Role::Drives).map(|request| {
            serde_json::json!({ "number": request.number, "address": address(request.from) })
        });
        let agreed = self.holder.agreed().filter(|_| role == Role::Drives).map(|request| {
            serde_json::json!({ "number": request.number, "address": address(request.from) })
        });
        let watches = |place: &&Place| place.id != to && Some(place.id) != self.holder.holding();
        let watching = self.places.iter().filter(watches);
        let watching: Vec<String> = watching.map(|it| it.visitor.address.to_string()).collect();
        let concerns = |change: &Change| change.from == Some(to) || change.to == Some(to);
        let reason = self.changed.map(|(change, _)| change).filter(concerns);
        let json = serde_json::json!({
            "role": role.name(),
            "operator": self.operator,
            "holder": holder,
            "watching": watching,
            "request": request,
            "agreed": agreed,
            "reason": reason.map(|change| change.reason.name()),
        });
        tagged(kind::STANDING, json.to_string().as_bytes())
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("consoles", &self.consoles).finish_non_exhaustive()
    }
}

/// Parses a vehicle's name from a page's message; `None` unless it is text of 1 to 64 bytes.
fn vehicle_name(bytes: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(bytes).ok()?;
    (1..=NAME_BYTES_MAX).contains(&name.len()).then(|| name.to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const ALL_STRIPS: u8 = (1 << Layout::STRIP_COUNT) - 1;
/// Maximum number of messages queued for a console, a third of a second of slices at 60 pictures
/// per second; further messages are dropped.
const MESSAGES_MAX: usize = 128;
/// Maximum number of connected consoles, more than the people who would share one vehicle; further
/// ones are refused.
const CONSOLES_MAX: usize = 8;
/// Maximum number of connected consoles that may only watch; further ones are refused. They count
/// in [`CONSOLES_MAX`] too, so this keeps room for those that may drive.
const WATCHING_MAX: usize = 4;
/// Maximum length of a vehicle's name in bytes, the same as in messages of the control plane; a
/// longer one is malformed.
const NAME_BYTES_MAX: usize = 64;
/// Time after the driving console's agreement within which its successor must take over; afterwards
/// the agreement is revoked and the driving console continues.
const HANDOVER_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
