//! Slices become pictures, on a thread of their own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tautline_net::clock::Clock;
use tautline_units::Instant;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Decoder, Picture, SliceKind};
use tungstenite::Bytes;

use super::chain::Chain;
use super::wire::{Format, STRIPS_MAX, SliceHead};

/// A whole picture: each of its strips was decoded.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) format: Arc<Format>,
    pub(super) strips: Vec<Arc<Picture>>,
    pub(super) number: u32,
    /// Guard's tick of the oldest clean content in the picture; 0 without one.
    pub(super) tick: u32,
    /// Capture of that content, in Unix time of the operator's clock; `None` if unknown.
    pub(super) captured: Option<Instant>,
    /// True if every strip is as its encoder has it.
    pub(super) is_clean: bool,
}

/// Counts of slices that gave no picture, and requests to the encoders.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) awaiting_idr: AtomicU64,
    pub(super) behind: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) unknown_strip: AtomicU64,
    /// Strips whose IDR is wanted, as bits.
    pub(super) wanted: AtomicU8,
    /// Strips of which a slice did not fit into the queue, as bits.
    overflowed: AtomicU8,
}

/// End of the decoders' queue at the connection; its drop ends their thread.
#[derive(Debug)]
pub(super) struct Slices {
    queue: SyncSender<Work>,
    losses: Arc<Losses>,
}

enum Work {
    /// Pictures of this format of a vehicle begin; `None`: no more pictures come.
    Begin(Option<Arc<Format>>),
    /// A slice's message.
    Slice(SliceHead, Bytes),
}

impl Slices {
    /// Starts the decoders' thread, which passes every whole picture to `show`.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start(
        losses: Arc<Losses>,
        clock: Clock,
        show: impl FnMut(Whole) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (queue, work) = sync_channel(QUEUE_MAX);
        let decoding = Decoding {
            losses: losses.clone(),
            clock,
            show,
            strips: Vec::new(),
            format: None,
            open: VecDeque::new(),
        };
        std::thread::Builder::new()
            .name("tautline decoder".to_owned())
            .spawn(move || decoding.run(&work))?;
        Ok(Self { queue, losses })
    }

    /// Begins pictures of this format; `None` if none come.
    pub(super) fn begin(&self, format: Option<Format>) {
        // Waits for at most the queue's slices; without it, slices would go to wrong decoders.
        let _ = self.queue.send(Work::Begin(format.map(Arc::new)));
    }

    /// Queues a slice; if the decoders are behind, its strip begins anew with an IDR.
    pub(super) fn feed(&self, head: SliceHead, message: Bytes) {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Work::Slice(head, message)) {
            self.losses.behind.fetch_add(1, Ordering::Relaxed);
            self.losses.overflowed.fetch_or(bit(head.strip), Ordering::Relaxed);
        }
    }
}

struct Decoding<F> {
    losses: Arc<Losses>,
    clock: Clock,
    show: F,
    strips: Vec<Strip>,
    format: Option<Arc<Format>>,
    /// Strips of each incomplete picture as bits, by picture.
    open: VecDeque<(u32, u8)>,
}

#[derive(Default)]
struct Strip {
    decoder: Option<StripDecoder>,
    chain: Chain,
    newest: Option<Arc<Picture>>,
    /// Newest clean content; `None` before the first.
    clean: Option<Clean>,
    is_clean: bool,
    asked_at: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Clean {
    picture: u32,
    tick: u32,
    captured: Option<Instant>,
}

impl<F: FnMut(Whole)> Decoding<F> {
    fn run(mut self, work: &Receiver<Work>) {
        for work in work {
            match work {
                Work::Begin(format) => self.begin(format),
                Work::Slice(head, message) => {
                    self.decode(&head, &message[SliceHead::BYTES..]);
                }
            }
        }
    }

    /// Opens decoders. Content that was seen still counts if the format is the same, as on the
    /// page.
    fn begin(&mut self, format: Option<Arc<Format>>) {
        let count = format.as_ref().map_or(0, |format| format.strips.len());
        let is_same = self.format.is_some() && self.format == format;
        let former = std::mem::take(&mut self.strips);
        self.strips = (0..count).map(|_| Strip::default()).collect();
        if is_same {
            for (strip, former) in self.strips.iter_mut().zip(former) {
                strip.clean = former.clean;
            }
        }
        self.format = format;
        self.open.clear();
    }

    fn decode(&mut self, head: &SliceHead, access_unit: &[u8]) {
        let now = self.clock.now();
        let Some(strip) = self.strips.get_mut(head.strip) else {
            self.losses.unknown_strip.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let bit = bit(head.strip);
        let overflowed = self.losses.overflowed.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        if overflowed {
            strip.decoder = None;
        }
        if strip.decoder.is_none() && head.kind != SliceKind::Idr {
            self.losses.awaiting_idr.fetch_add(1, Ordering::Relaxed);
            strip.want_idr(&self.losses, bit, now);
            return;
        }
        if strip.decoder.is_none() {
            (strip.decoder, strip.chain) = (StripDecoder::new().ok(), Chain::default());
        }
        let decoded = strip.decoder.as_mut().map(|decoder| decoder.decode(access_unit));
        let Some(Ok(Some(picture))) = decoded else {
            self.losses.failed.fetch_add(1, Ordering::Relaxed);
            strip.decoder = None;
            strip.want_idr(&self.losses, bit, now);
            return;
        };
        strip.is_clean = strip.chain.take(head.kind, head.history, head.is_corrupt);
        strip.newest = Some(Arc::new(picture));
        if strip.is_clean {
            let (picture, tick, captured) = (head.picture, head.tick, head.captured);
            let is_restarted = strip.clean.is_some_and(|clean| is_after(clean.picture, picture));
            strip.clean = Some(Clean { picture, tick, captured });
            if is_restarted {
                self.forget_others(head.strip);
            }
        }
        self.note(head.picture, bit);
    }

    /// Forgets what the other strips showed: the picture numbers have started again.
    fn forget_others(&mut self, strip: usize) {
        for (number, other) in self.strips.iter_mut().enumerate() {
            if number != strip {
                other.clean = None;
            }
        }
    }

    /// Notes a decoded strip of a picture, and shows the picture once it is whole.
    fn note(&mut self, picture: u32, bit: u8) {
        let all = u8::MAX >> (STRIPS_MAX - self.strips.len());
        let at = self.open.iter().position(|(number, _)| *number == picture);
        let at = at.unwrap_or_else(|| {
            if self.open.len() == OPEN_MAX {
                self.open.pop_front();
            }
            self.open.push_back((picture, 0));
            self.open.len() - 1
        });
        self.open[at].1 |= bit;
        if self.open[at].1 != all {
            return;
        }
        self.open.remove(at);
        let strips = self.strips.iter().map(|strip| strip.newest.clone());
        let (Some(strips), Some(format)) = (strips.collect(), self.format.clone()) else { return };
        let clean = self.strips.iter().map(|strip| strip.clean).collect::<Option<Vec<_>>>();
        let oldest = clean.and_then(|clean| {
            clean.into_iter().reduce(|one, next| match is_after(one.picture, next.picture) {
                true => next,
                false => one,
            })
        });
        (self.show)(Whole {
            format,
            strips,
            number: picture,
            tick: oldest.map_or(0, |oldest| oldest.tick),
            captured: oldest.and_then(|oldest| oldest.captured),
            is_clean: self.strips.iter().all(|strip| strip.is_clean),
        });
    }
}

impl Strip {
    /// Asks for an IDR of this strip, unless that was done just before.
    fn want_idr(&mut self, losses: &Losses, bit: u8, now: Instant) {
        if self.asked_at.is_none_or(|at| now.since(at) >= ASK_EVERY) {
            self.asked_at = Some(now);
            losses.wanted.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

impl Whole {
    /// Writes the pixels as rows of red, green and blue; `rgb` has three bytes a pixel. The samples
    /// are BT.601 in video range.
    pub(super) fn write_rgb(&self, rgb: &mut [u8]) {
        let width = self.format.width;
        for ((first, rows), strip) in self.format.strips.iter().zip(&self.strips) {
            let rows = (*rows).min(strip.height());
            let to = &mut rgb[first * width * 3..(first + rows) * width * 3];
            for (row, to) in to.chunks_exact_mut(width * 3).enumerate() {
                write_row(strip, row, to);
            }
        }
    }
}

fn write_row(strip: &Picture, row: usize, rgb: &mut [u8]) {
    let (luma_at, chroma_at) = (row * strip.width(), row / 2 * (strip.width() / 2));
    let luma = &strip.luma()[luma_at..luma_at + strip.width()];
    let chroma = chroma_at..chroma_at + strip.width() / 2;
    let (cb, cr) = (&strip.cb()[chroma.clone()], &strip.cr()[chroma]);
    let part = |value: i32| (value >> 8).clamp(0, 255) as u8;
    // Pictures have an even width.
    let pairs = rgb.chunks_exact_mut(6).zip(luma.chunks_exact(2)).zip(cb.iter().zip(cr));
    for ((pixels, luma), (cb, cr)) in pairs {
        let (u, v) = (i32::from(*cb) - 128, i32::from(*cr) - 128);
        let (red, green, blue) = (409 * v, -100 * u - 208 * v, 516 * u);
        let [one, next] = [luma[0], luma[1]].map(|luma| 298 * (i32::from(luma) - 16) + 128);
        pixels.copy_from_slice(&[
            part(one + red),
            part(one + green),
            part(one + blue),
            part(next + red),
            part(next + green),
            part(next + blue),
        ]);
    }
}

/// Returns whether picture `a` comes after picture `b`, on a counter that wraps.
fn is_after(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

/// Returns the strip's bit; none for a number that no strip has.
fn bit(strip: usize) -> u8 {
    if strip < STRIPS_MAX { 1 << strip } else { 0 }
}

/// Slices that wait to be decoded: those of one second at 60 pictures per second.
const QUEUE_MAX: usize = 360;
/// Incomplete pictures to keep; older ones never complete.
const OPEN_MAX: usize = 32;
/// Shortest time between two requests for an IDR of a strip.
const ASK_EVERY: Duration = Duration::from_millis(250);
