//! The bridge to the browser: the page, its one WebSocket, and what goes over it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{self, CloseFrame, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use futures_util::{SinkExt, StreamExt};
use rust_embed::RustEmbed;
use tautline_message::{Command, LinkAction, VideoFeedback};
use tautline_video::{AccessUnit, Layout, SliceKind};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// What the browser asks for.
#[derive(Debug)]
pub enum Request {
    /// Where the wheel and the pedals are.
    Command(Command),
    /// Cut or restore an emulated link.
    Link(LinkAction),
}

/// The place where slices, telemetry and status go, and the viewer that they go to.
///
/// One browser drives at a time: a newer one takes over, and the older one is told so.
pub struct Hub {
    viewer: Mutex<Option<Viewer>>,
    vehicle: String,
    hello: Mutex<Bytes>,
    metrics: Mutex<String>,
    requests: mpsc::Sender<Request>,
    /// What the browser asks of the encoders.
    feedback: Mutex<VideoFeedback>,
    unix_micros: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Slices that the browser was too slow to take.
    pub slices_dropped: AtomicU64,
    /// Messages of the browser that made no sense.
    pub messages_malformed: AtomicU64,
    /// Requests that came faster than they could be carried out.
    pub requests_dropped: AtomicU64,
    /// Commands that were held up between the browser and here.
    pub commands_stale: AtomicU64,
}

#[derive(Debug)]
struct Viewer {
    messages: mpsc::Sender<Bytes>,
    /// Dropping it tells the connection that another has taken over.
    _replaced: oneshot::Sender<()>,
    /// Whether the newest hello has yet to be sent: nothing else goes before it.
    hello_is_due: bool,
    /// Strips whose stream has a hole for this viewer until their next IDR.
    waiting_for_idr: u8,
}

/// The head of a slice's message to the browser.
#[derive(Clone, Copy, Debug)]
pub struct SliceHead {
    /// Number of the strip, from the top.
    pub strip: u8,
    /// What kind of slice.
    pub kind: SliceKind,
    /// Number of the picture.
    pub picture: u32,
    /// Start of the strip's readout: Unix time in microseconds by the operator's clock.
    pub captured_unix_micros: u64,
    /// From there to the end of its encoding.
    pub encoded_after: Duration,
    /// From there until it was handed on to the browser.
    pub handed_on_after: Duration,
}

impl Hub {
    /// Makes a hub nobody looks at yet, of `vehicle`'s pictures. Requests of the browser go to
    /// `requests`; `unix_micros` reads the operator's clock.
    pub fn new(
        vehicle: &str,
        requests: mpsc::Sender<Request>,
        unix_micros: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self {
            viewer: Mutex::new(None),
            vehicle: vehicle.to_owned(),
            hello: Mutex::new(hello(vehicle, None)),
            metrics: Mutex::new(String::new()),
            requests,
            feedback: Mutex::default(),
            unix_micros: Box::new(unix_micros),
            slices_dropped: AtomicU64::new(0),
            messages_malformed: AtomicU64::new(0),
            requests_dropped: AtomicU64::new(0),
            commands_stale: AtomicU64::new(0),
        }
    }

    /// Sets how the pictures are laid out and coded, which the browser is told before the next slice:
    /// it begins each strip anew, from an IDR.
    pub fn set_picture(&self, layout: &Layout, codec: &str) {
        *lock(&self.hello) = hello(&self.vehicle, Some((layout, codec)));
        if let Some(viewer) = lock(&self.viewer).as_mut() {
            (viewer.hello_is_due, viewer.waiting_for_idr) = (true, ALL_STRIPS);
            self.greet(viewer);
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

    /// Shows a slice. A viewer that missed one of a strip sees that strip again from its next
    /// IDR on, which is asked for.
    pub fn show_slice(&self, head: SliceHead, message: Bytes) {
        let mut viewer = lock(&self.viewer);
        let Some(viewer) = viewer.as_mut() else { return };
        let bit = 1_u8 << head.strip;
        if viewer.waiting_for_idr & bit != 0 && head.kind != SliceKind::Idr {
            lock(&self.feedback).keyframe_strips |= bit;
            return;
        }
        if self.greet(viewer) && viewer.messages.try_send(message).is_ok() {
            viewer.waiting_for_idr &= !bit;
        } else {
            viewer.waiting_for_idr |= bit;
            lock(&self.feedback).keyframe_strips |= bit;
            self.slices_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Passes on a vehicle's telemetry as it came.
    pub fn show_telemetry(&self, bytes: &[u8]) {
        self.show(kind::TELEMETRY, bytes);
    }

    /// Shows the operator's own status.
    pub fn show_status(&self, bytes: &[u8]) {
        self.show(kind::STATUS, bytes);
    }

    /// Shows a snapshot, of either end.
    pub fn show_snapshot(&self, bytes: &[u8]) {
        self.show(kind::SNAPSHOT, bytes);
    }

    /// Returns what the browser asks of the encoders; its keyframe requests are given once.
    pub fn take_feedback(&self) -> VideoFeedback {
        let mut feedback = lock(&self.feedback);
        let taken = *feedback;
        feedback.keyframe_strips = 0;
        taken
    }

    fn show(&self, kind: u8, bytes: &[u8]) {
        if let Some(viewer) = lock(&self.viewer).as_mut() {
            self.greet(viewer);
            // Newer news follows within a tenth of a second.
            let _ = viewer.messages.try_send(tagged(kind, bytes));
        }
    }

    /// Sends the newest hello if it is due and there is room for it; returns whether it has been sent.
    fn greet(&self, viewer: &mut Viewer) -> bool {
        if viewer.hello_is_due {
            let hello = lock(&self.hello).clone();
            viewer.hello_is_due = viewer.messages.try_send(hello).is_err();
        }
        !viewer.hello_is_due
    }

    /// Puts a new viewer in the place of the one before.
    pub(crate) fn attach(&self) -> (mpsc::Receiver<Bytes>, oneshot::Receiver<()>) {
        let (messages, receiver) = mpsc::channel(MESSAGES_MAX);
        let (replaced, replacement) = oneshot::channel();
        *lock(&self.feedback) =
            VideoFeedback { keyframe_strips: ALL_STRIPS, ..VideoFeedback::default() };
        let mut viewer = Viewer {
            messages,
            _replaced: replaced,
            hello_is_due: true,
            waiting_for_idr: ALL_STRIPS,
        };
        let mut place = lock(&self.viewer);
        self.greet(&mut viewer);
        *place = Some(viewer);
        (receiver, replacement)
    }

    /// Acts on a message of the browser; gives the answer if it needs one.
    fn handle(&self, message: &[u8]) -> Option<Bytes> {
        let request = match message.split_first() {
            Some((&kind::COMMAND, rest)) => Command::decode(rest).ok().map(Request::Command),
            Some((&kind::LINK, rest)) => LinkAction::decode(rest).ok().map(Request::Link),
            Some((&kind::CLOCK, rest)) if rest.len() == 8 => {
                let mut pong = Vec::with_capacity(17);
                pong.push(kind::CLOCK_PONG);
                pong.extend_from_slice(rest);
                pong.extend_from_slice(&(self.unix_micros)().to_be_bytes());
                return Some(pong.into());
            }
            Some((&kind::VIDEO_FEEDBACK, rest)) => {
                let Ok(told) = VideoFeedback::decode(rest) else {
                    self.messages_malformed.fetch_add(1, Ordering::Relaxed);
                    return None;
                };
                let mut feedback = lock(&self.feedback);
                feedback.keyframe_strips |= told.keyframe_strips & ALL_STRIPS;
                feedback.picture_interval = told.picture_interval;
                return None;
            }
            Some(_) | None => None,
        };
        match request.map(|request| self.requests.try_send(request)) {
            Some(Ok(())) => {}
            Some(Err(_)) => {
                self.requests_dropped.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                self.messages_malformed.fetch_add(1, Ordering::Relaxed);
            }
        }
        None
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("viewer", &self.viewer).finish_non_exhaustive()
    }
}

impl SliceHead {
    /// Writes the head before a slice's access unit, in its own buffer.
    pub fn message(&self, access_unit: AccessUnit) -> Bytes {
        let slice_kind = match self.kind {
            SliceKind::Idr => 0,
            SliceKind::Predicted => 1,
            SliceKind::Skip => 2,
        };
        let micros = |after: Duration| u32::try_from(after.as_micros()).unwrap_or(u32::MAX);
        let mut head = [0; AccessUnit::ROOM];
        head[..4].copy_from_slice(&[kind::SLICE, self.strip, slice_kind, 0]);
        head[4..8].copy_from_slice(&self.picture.to_be_bytes());
        head[8..16].copy_from_slice(&self.captured_unix_micros.to_be_bytes());
        head[16..20].copy_from_slice(&micros(self.encoded_after).to_be_bytes());
        head[20..].copy_from_slice(&micros(self.handed_on_after).to_be_bytes());
        access_unit.behind(head).into()
    }
}

/// Opens the page's address.
///
/// # Errors
/// One line that says that the port is taken and what to do.
pub async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("the console cannot listen on {address}: choose another with --console")
    })
}

/// Serves the page, its WebSocket and the routes of `beside` until the listener fails.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, hub: Arc<Hub>, beside: Router) -> anyhow::Result<()> {
    let router = Router::new()
        .route("/", get(|| async { asset("index.html") }))
        .route("/ws", get(upgrade))
        .route("/{*path}", get(|Path(path): Path<String>| async move { asset(&path) }))
        .with_state(hub)
        .merge(beside);
    // A slice is one message: nothing is gained by holding its end back for more to come.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a console's slices may wait for its acknowledgements");
        }
    });
    axum::serve(listener, router).await.context("the console's listener failed")
}

async fn upgrade(
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
    State(hub): State<Arc<Hub>>,
) -> Response {
    if !is_own_page(&headers) {
        return (StatusCode::FORBIDDEN, "open the console at its own address\n").into_response();
    }
    upgrade
        .max_message_size(REQUEST_BYTES_MAX)
        .max_frame_size(REQUEST_BYTES_MAX)
        .on_upgrade(|socket| converse(socket, hub))
}

/// Returns whether a request comes from the console's own page, which alone may speak to the
/// operator: a browser names in `Origin` the page that asks. What is no browser sends none.
pub(crate) fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match (text(header::ORIGIN), text(header::HOST)) {
        (None, _) => true,
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, of)| of == host),
        (Some(_), None) => false,
    }
}

async fn converse(socket: WebSocket, hub: Arc<Hub>) {
    let (mut sink, mut stream) = socket.split();
    let (mut messages, mut replaced) = hub.attach();
    loop {
        let outgoing = tokio::select! {
            biased;
            _ = &mut replaced => {
                let reason = "another console took over".into();
                let close = ws::Message::Close(Some(CloseFrame { code: REPLACED, reason }));
                let _ = sink.send(close).await;
                return;
            }
            incoming = stream.next() => match incoming {
                Some(Ok(ws::Message::Binary(bytes))) => hub.handle(&bytes),
                Some(Ok(ws::Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(ws::Message::Text(_) | ws::Message::Ping(_) | ws::Message::Pong(_))) => None,
            },
            message = messages.recv() => message,
        };
        if let Some(bytes) = outgoing
            && sink.send(ws::Message::Binary(bytes)).await.is_err()
        {
            return;
        }
    }
}

fn asset(path: &str) -> Response {
    match Page::get(path) {
        Some(file) => {
            let kind = file.metadata.mimetype().to_owned();
            ([(header::CONTENT_TYPE, kind)], Bytes::from(file.data.into_owned())).into_response()
        }
        None => (StatusCode::NOT_FOUND, "no such file in the console\n").into_response(),
    }
}

/// Writes what a browser is told first: the vehicle's name and, once it is known, how its pictures are
/// laid out and coded.
fn hello(vehicle: &str, picture: Option<(&Layout, &str)>) -> Bytes {
    let picture = picture.map(|(layout, codec)| {
        let strips: Vec<[usize; 2]> = (0..layout.strip_count())
            .map(|strip| layout.strip_rows(strip))
            .map(|rows| [rows.start, rows.len()])
            .collect();
        serde_json::json!({
            "width": layout.width(),
            "height": layout.height(),
            "strips": strips,
            "codec": codec,
        })
    });
    let version = env!("CARGO_PKG_VERSION");
    let json = serde_json::json!({ "vehicle": vehicle, "version": version, "picture": picture });
    tagged(kind::HELLO, json.to_string().as_bytes())
}

fn tagged(kind: u8, bytes: &[u8]) -> Bytes {
    let mut message = Vec::with_capacity(1 + bytes.len());
    message.push(kind);
    message.extend_from_slice(bytes);
    message.into()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(RustEmbed)]
#[folder = "../../console/dist"]
struct Page;

/// First bytes of the messages, as console/src/wire.ts has them.
mod kind {
    pub(super) const SLICE: u8 = 1;
    pub(super) const TELEMETRY: u8 = 2;
    pub(super) const STATUS: u8 = 3;
    pub(super) const CLOCK_PONG: u8 = 4;
    pub(super) const HELLO: u8 = 5;
    pub(super) const SNAPSHOT: u8 = 6;
    pub(super) const COMMAND: u8 = 1;
    pub(super) const LINK: u8 = 2;
    pub(super) const CLOCK: u8 = 3;
    pub(super) const VIDEO_FEEDBACK: u8 = 4;
}

const ALL_STRIPS: u8 = (1 << Layout::STRIP_COUNT) - 1;
/// A third of a second of slices at 60 pictures a second.
const MESSAGES_MAX: usize = 128;
const REQUEST_BYTES_MAX: usize = 4096;
/// WebSocket close code: another console took over.
const REPLACED: u16 = 4001;

/// A message to the browser, as tests read it.
#[cfg(test)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// The size of the pictures, if it is known.
    Hello { picture: Option<(usize, usize)> },
    /// A slice.
    Slice { strip: u8, kind: SliceKind },
    /// Any other kind.
    Other(u8),
}

#[cfg(test)]
impl Message {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        match bytes[0] {
            kind::HELLO => {
                let json: serde_json::Value = serde_json::from_slice(&bytes[1..]).expect("JSON");
                let picture = &json["picture"];
                let side = |name: &str| picture[name].as_u64().expect("a side") as usize;
                let size = |_: &serde_json::Map<_, _>| (side("width"), side("height"));
                Self::Hello { picture: picture.as_object().map(size) }
            }
            kind::SLICE => {
                let kind = SliceKind::from_number(bytes[2]).expect("a kind");
                Self::Slice { strip: bytes[1], kind }
            }
            other => Self::Other(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> (Hub, mpsc::Receiver<Request>) {
        let (sender, receiver) = mpsc::channel(8);
        (Hub::new("car-1", sender, || 1_000_000), receiver)
    }

    fn head(strip: u8, kind: SliceKind) -> SliceHead {
        SliceHead {
            strip,
            kind,
            picture: 7,
            captured_unix_micros: 9,
            encoded_after: Duration::from_micros(3_500),
            handed_on_after: Duration::from_secs(5_000),
        }
    }

    fn show(hub: &Hub, head: SliceHead, bytes: &[u8]) {
        hub.show_slice(head, head.message(AccessUnit::from(bytes)));
    }

    #[test]
    fn a_viewer_sees_a_strip_from_its_first_idr_on() {
        let (hub, _requests) = hub();
        let (mut messages, _replaced) = hub.attach();
        let hello = messages.try_recv().unwrap();
        assert_eq!(Message::read(&hello), Message::Hello { picture: None });
        assert_eq!(hub.take_feedback().keyframe_strips, ALL_STRIPS);
        show(&hub, head(2, SliceKind::Predicted), &[1]);
        assert!(messages.try_recv().is_err());
        assert_eq!(hub.take_feedback().keyframe_strips, 1 << 2);
        show(&hub, head(2, SliceKind::Idr), &[1]);
        show(&hub, head(2, SliceKind::Predicted), &[2]);
        let message = messages.try_recv().unwrap();
        assert_eq!(message[..4], [1, 2, 0, 0]);
        // More than an hour has no room.
        assert_eq!(message[16..], [0, 0, 0x0D, 0xAC, 255, 255, 255, 255, 1]);
        assert_eq!(messages.try_recv().unwrap()[24..], [2]);
    }

    #[test]
    fn a_slow_viewer_loses_a_strip_until_its_next_idr() {
        let (hub, _requests) = hub();
        let (_messages, _replaced) = hub.attach();
        for _ in 0..=MESSAGES_MAX {
            show(&hub, head(1, SliceKind::Idr), &[0]);
        }
        assert!(hub.slices_dropped.load(Ordering::Relaxed) >= 1);
        assert_eq!(hub.take_feedback().keyframe_strips & 2, 2);
    }

    #[test]
    fn a_hello_that_finds_no_room_goes_before_the_next_slice() {
        let (hub, _requests) = hub();
        let (mut messages, _replaced) = hub.attach();
        (0..MESSAGES_MAX).for_each(|_| show(&hub, head(1, SliceKind::Idr), &[0]));
        hub.set_picture(&Layout::of(640, 480).unwrap(), "avc1.42C01F");
        while messages.try_recv().is_ok() {}
        show(&hub, head(1, SliceKind::Predicted), &[0]);
        assert!(messages.try_recv().is_err(), "each strip begins anew");
        show(&hub, head(1, SliceKind::Idr), &[0]);
        let told = [messages.try_recv().unwrap(), messages.try_recv().unwrap()];
        assert_eq!(
            told.map(|bytes| Message::read(&bytes)),
            [
                Message::Hello { picture: Some((640, 480)) },
                Message::Slice { strip: 1, kind: SliceKind::Idr },
            ]
        );
    }

    #[test]
    fn a_newer_console_takes_over() {
        let (hub, _requests) = hub();
        let (_first, mut replaced) = hub.attach();
        let _second = hub.attach();
        assert_eq!(replaced.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn malformed_messages_of_the_browser_are_counted() {
        let (hub, mut requests) = hub();
        for message in [&[][..], &[9], &[1, 2, 3], &[2], &[3, 1]] {
            assert_eq!(hub.handle(message), None);
        }
        assert_eq!(hub.messages_malformed.load(Ordering::Relaxed), 5);
        assert!(requests.try_recv().is_err());
    }

    #[test]
    fn another_sites_page_may_not_drive() {
        let from = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:8080".parse().unwrap());
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            is_own_page(&headers)
        };
        assert!(from("http://127.0.0.1:8080"));
        assert!(!from("http://evil.example"));
        assert!(!from("null"));
    }

    #[test]
    fn a_clock_ping_is_answered_with_the_operators_time() {
        let (hub, _requests) = hub();
        let pong = hub.handle(&[3, 0, 0, 0, 0, 0, 0, 0, 5]).unwrap();
        assert_eq!(pong[..9], [4, 0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(pong[9..], 1_000_000_u64.to_be_bytes());
    }
}
