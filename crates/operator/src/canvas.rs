//! The page's canvas: its layout follows the received pictures.

use std::collections::VecDeque;

use axum::body::Bytes;
use tautline_video::Layout;

use crate::console::{Hub, SliceHead};
use crate::downlink::Downlink;

/// Layout of the console's page, with the slices that wait until it is known.
///
/// The strips' parameter sets contain their sizes. At the start of a session, or after a change of
/// the vehicle's camera, slices are held until the size of every strip is known. So no slice is
/// drawn in the wrong place. Memory: at most [`HELD_MAX`] slices.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    layout: Option<Layout>,
    held: VecDeque<(SliceHead, Bytes)>,
    dropped: u64,
}

impl Canvas {
    /// Shows a slice that `downlink` has put in order on the consoles of `hub`, or holds it until
    /// the sizes of all strips are known and fit together. Then `hub` gets the new layout first,
    /// and the held slices after it. The oldest is dropped when too many are held. `message` is the
    /// output of [`SliceHead::message`].
    pub(crate) fn show(&mut self, head: SliceHead, message: Bytes, downlink: &Downlink, hub: &Hub) {
        let strip = usize::from(head.strip);
        if self.layout.is_some_and(|layout| downlink.fits(strip, &layout)) {
            hub.show_slice(head, message);
            return;
        }
        if self.held.len() == HELD_MAX {
            self.held.pop_front();
            self.dropped += 1;
        }
        self.held.push_back((head, message));
        let (Some(layout), Some(codec)) = (downlink.layout(), downlink.codec()) else { return };
        self.layout = Some(layout);
        hub.set_picture(&layout, &codec);
        for (head, message) in self.held.drain(..) {
            hub.show_slice(head, message);
        }
    }

    /// Discards the held slices of an earlier session and counts them as dropped; the layout stays.
    pub(crate) fn handle_new_session(&mut self) {
        self.dropped += self.held.len() as u64;
        self.held.clear();
    }

    /// Forgets the layout of an earlier vehicle's pictures, and discards the held slices and counts
    /// them as dropped.
    pub(crate) fn handle_new_vehicle(&mut self) {
        self.handle_new_session();
        self.layout = None;
    }

    /// Returns how many slices were dropped since the start because the pictures' layout was
    /// unknown.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Maximum number of held slices, after which the oldest is dropped: a third of a second of six
/// strips at 60 pictures per second. By then a lost IDR has been sent again.
const HELD_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use tautline_units::{ByteCount, Instant};
    use tautline_video::avc::LossRecovery;
    use tautline_video::{Backend, Encoder, Picture, Refresh, Slice, SliceKind};
    use tokio::sync::mpsc;

    use super::*;
    use crate::console::Message;
    use crate::downlink::Shown;

    /// Encoders of a vehicle, the downlink and canvas that process their slices, and the page's
    /// messages.
    struct Stand {
        encoders: Vec<Box<dyn Encoder>>,
        layout: Layout,
        picture: u32,
        downlink: Downlink,
        canvas: Canvas,
        hub: Hub,
    }

    impl Stand {
        fn new(width: usize, height: usize) -> Self {
            let (requests, _) = mpsc::channel(1);
            let layout = Layout::of(width, height).unwrap();
            Self {
                encoders: Self::encoders(&layout),
                layout,
                picture: 0,
                downlink: Downlink::new(Duration::ZERO),
                canvas: Canvas::default(),
                hub: Hub::new("car-1", requests, || 0),
            }
        }

        fn encoders(layout: &Layout) -> Vec<Box<dyn Encoder>> {
            let backend = Backend::Avc(LossRecovery::Idr);
            let height = |strip| layout.strip_rows(strip).len();
            let open = |strip| backend.open(layout.width(), height(strip), 30).unwrap();
            (0..Layout::STRIP_COUNT).map(open).collect()
        }

        /// Restarts the vehicle with pictures of another size.
        fn restart(&mut self, width: usize, height: usize) {
            self.layout = Layout::of(width, height).unwrap();
            (self.encoders, self.picture) = (Self::encoders(&self.layout), 0);
            self.downlink.reset();
            self.canvas.handle_new_session();
        }

        /// Sends a picture with IDRs of the strips in `idrs`, and loses the strips in `lost`.
        fn picture(&mut self, idrs: &[usize], lost: &[usize]) {
            let Self { encoders, layout, picture, downlink, canvas, hub } = self;
            for (strip, encoder) in encoders.iter_mut().enumerate() {
                let rows = Picture::new(layout.width(), layout.strip_rows(strip).len()).unwrap();
                let refresh = if idrs.contains(&strip) { Refresh::Idr } else { Refresh::No };
                let encoded = encoder.encode(&rows, ByteCount::new(2_000), refresh).unwrap();
                let slice = Slice {
                    picture: *picture,
                    strip: strip as u8,
                    kind: encoded.kind,
                    history: encoded.history,
                    motion: encoded.motion,
                    captured_at: Instant::ZERO,
                    encoded_at: Instant::ZERO,
                    tick: 0,
                    bytes: encoded.bytes,
                };
                if lost.contains(&strip) {
                    continue;
                }
                let mut due = Vec::new();
                downlink.handle_slice(slice, Instant::ZERO, Instant::ZERO, |shown| due.push(shown));
                for Shown { slice, .. } in due {
                    let head = SliceHead {
                        strip: slice.strip,
                        kind: slice.kind,
                        picture: slice.picture,
                        history: slice.history,
                        is_corrupt: false,
                        captured_unix_micros: 0,
                        encoded_after: Duration::ZERO,
                        handed_on_after: Duration::ZERO,
                        tick: slice.tick,
                    };
                    canvas.show(head, head.message(slice.bytes), downlink, hub);
                }
            }
            *picture += 1;
        }
    }

    const ALL: [usize; 6] = [0, 1, 2, 3, 4, 5];

    /// Returns all messages waiting for the page: the picture of each hello, and each slice's
    /// strip.
    fn taken(page: &mut mpsc::Receiver<Bytes>) -> Vec<Message> {
        std::iter::from_fn(|| page.try_recv().ok()).map(|bytes| Message::read(&bytes)).collect()
    }

    fn hello(width: usize, height: usize) -> Message {
        Message::Hello { picture: Some((width, height)) }
    }

    #[test]
    fn the_page_gets_the_picture_size_before_its_first_slice() {
        let mut stand = Stand::new(640, 480);
        let (mut page, _replaced) = stand.hub.attach();
        assert_eq!(taken(&mut page), [Message::Hello { picture: None }]);
        stand.picture(&[], &[]);
        let mut expected = vec![hello(640, 480)];
        expected
            .extend(ALL.map(|strip| Message::Slice { strip: strip as u8, kind: SliceKind::Idr }));
        assert_eq!(taken(&mut page), expected);
        stand.picture(&[], &[]);
        assert_eq!(taken(&mut page).len(), 6);
        // A page opened later gets the layout at once.
        let (mut page, _replaced) = stand.hub.attach();
        assert_eq!(taken(&mut page), [hello(640, 480)]);
    }

    #[test]
    fn a_lost_idr_delays_the_size_and_nothing_else() {
        let mut stand = Stand::new(640, 480);
        let (mut page, _replaced) = stand.hub.attach();
        stand.picture(&[], &[4]);
        stand.picture(&[], &[]);
        assert_eq!(taken(&mut page), [Message::Hello { picture: None }]);
        stand.picture(&[4], &[]);
        let told = taken(&mut page);
        assert_eq!(told[0], hello(640, 480));
        assert_eq!(told.len(), 1 + 5 * 3 + 1);
        assert_eq!(stand.canvas.dropped(), 0);
    }

    #[test]
    fn a_vehicle_that_comes_back_with_another_size_is_laid_out_anew() {
        let mut stand = Stand::new(640, 480);
        let (mut page, _replaced) = stand.hub.attach();
        stand.picture(&[], &[]);
        stand.restart(1024, 768);
        taken(&mut page);
        stand.picture(&[], &[0]);
        assert_eq!(taken(&mut page), []);
        stand.picture(&[0], &[]);
        let told = taken(&mut page);
        assert_eq!(told[0], hello(1024, 768));
        assert_eq!(told.len(), 1 + 5 * 2 + 1);
        // The same size again needs no other layout, and no slice waits.
        stand.restart(1024, 768);
        stand.picture(&[], &[0]);
        assert_eq!(taken(&mut page).len(), 5);
    }

    #[test]
    fn held_slices_are_bounded_and_a_broken_strip_awaits_its_idr() {
        let mut stand = Stand::new(640, 480);
        let (mut page, _replaced) = stand.hub.attach();
        stand.hub.take_feedback();
        (0..30).for_each(|_| stand.picture(&[], &[5]));
        assert_eq!(stand.canvas.held.len(), HELD_MAX);
        assert_eq!(stand.canvas.dropped(), 30 * 5 - HELD_MAX as u64);
        stand.picture(&[5], &[]);
        assert_eq!(
            taken(&mut page)[1..],
            [hello(640, 480), Message::Slice { strip: 5, kind: SliceKind::Idr },]
        );
        assert_eq!(stand.hub.take_feedback().keyframe_strips, 0b1_1111);
        assert_eq!(stand.hub.slices_dropped.load(Ordering::Relaxed), 0);
    }
}
