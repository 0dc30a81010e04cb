use std::collections::VecDeque;
use std::time::Duration;

use tautline_message::StripReport;
use tautline_units::{ByteCount, Instant};
use tautline_video::{Backend, Encoded, Encoder, Error, Layout, Refresh, Rows, SliceKind, avc};

use super::plan::Plan;

/// Encoder of one strip, with the arrival state of its slices.
pub struct StripCoder {
    index: usize,
    codec: Codec,
    idr_at: Option<Instant>,
    /// True while the operator has reported a loss, or a slice was not sent, from which no recovery
    /// has begun.
    corrupt: bool,
    /// First picture of the latest recovery; `None` before the first recovery.
    recovering_from: Option<u32>,
    /// Newest reported loss that needed no recovery, because later pictures do not refer to the
    /// lost one; `spared_is_new` is true until that loss is counted.
    spared: Option<u32>,
    spared_is_new: bool,
}

enum Codec {
    /// Tautline's own encoder: it shares the picture's budget and learns which slices arrived.
    Own { encoder: Box<avc::StripEncoder>, coded: VecDeque<Coded> },
    /// Encoder that knows its own strip only.
    Other(Box<dyn Encoder>),
}

/// Request for a strip's next picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// No request: the encoder decides.
    Nothing,
    /// Recover from a loss by the encoder's own method.
    Recover,
    /// An IDR requested by the vehicle itself.
    Idr,
    /// An IDR requested by the receiver, which repeats the request until one arrives.
    IdrByReceiver,
}

/// Numbers of one picture: the camera's, and the encoder's, which does not count pictures it never
/// got.
struct Coded {
    picture: u32,
    number: u64,
}

impl StripCoder {
    /// Creates the encoder of strip `index` of the layout, for `backend`.
    ///
    /// # Errors
    /// Fails if an encoder of that size cannot be created.
    pub fn new(
        backend: Backend,
        layout: &Layout,
        index: usize,
        pictures_per_second: u32,
    ) -> Result<Self, Error> {
        let (width, height) = (layout.width(), layout.strip_rows(index).len());
        let codec = match backend {
            Backend::Avc(loss_recovery) | Backend::JoinableAvc(loss_recovery) => {
                let config = avc::Config {
                    width,
                    height,
                    cropped: layout.cropped(index),
                    pictures_per_second,
                    loss_recovery,
                    joinable: matches!(backend, Backend::JoinableAvc(_)),
                };
                let encoder = Box::new(avc::StripEncoder::new(config)?);
                Codec::Own { encoder, coded: VecDeque::with_capacity(CODED_MAX) }
            }
            other => Codec::Other(other.open(width, height, pictures_per_second)?),
        };
        Ok(Self {
            index,
            codec,
            idr_at: None,
            corrupt: false,
            recovering_from: None,
            spared: None,
            spared_is_new: false,
        })
    }

    /// Handles the operator's latest report of this strip: the newest clean picture counts as
    /// acknowledged. If the strip is corrupt by a loss without a recovery since, the next picture
    /// begins one. A loss that needed no recovery is noted, once, for the cost of losses.
    pub fn handle_report(&mut self, report: &StripReport) {
        let back = |before: Option<u8>| Some(report.newest.wrapping_sub(before?.into()));
        if let (Codec::Own { encoder, coded }, Some(clean)) =
            (&mut self.codec, back(report.clean_before))
            && let Some(coded) = coded.iter().find(|coded| coded.picture == clean)
        {
            encoder.acknowledge(coded.number);
        }
        let lost = back(report.lost_before).filter(|lost| self.is_not_recovered(*lost));
        self.corrupt = lost.is_some() && report.is_corrupt();
        let is_new = |lost: u32| self.spared.is_none_or(|spared| is_before(spared, lost));
        if let Some(lost) = lost.filter(|lost| !report.is_corrupt() && is_new(*lost)) {
            (self.spared_is_new, self.spared) = (true, Some(lost));
        }
    }

    /// Marks the strip corrupt if no recovery has begun since `picture`, the newest one whose slice
    /// was coded and never sent.
    pub fn handle_refused(&mut self, picture: u32) {
        self.corrupt |= self.is_not_recovered(picture);
    }

    fn is_not_recovered(&self, lost: u32) -> bool {
        self.recovering_from.is_none_or(|from| !is_before(lost, from))
    }

    /// Codes the strip's next picture within its share of `budget`. A corrupt strip, or one
    /// requested to recover, recovers by its encoder's own method unless an IDR is coded.
    ///
    /// An IDR requested by the vehicle is coded unless one was coded in the last 200 ms. One
    /// requested by the receiver is coded if the strip is corrupt or the last IDR is at least 1 s
    /// old: a receiver repeats its request for a round trip, until the IDR arrives.
    ///
    /// # Errors
    /// Returns the encoder's error.
    pub fn encode(
        &mut self,
        rows: &mut dyn Rows,
        picture: u32,
        budget: ByteCount,
        plan: &Plan,
        requested: Request,
        now: Instant,
    ) -> Result<Encoded, Error> {
        let after = |time| self.idr_at.is_none_or(|at| now.since(at) >= time);
        let refresh = match requested {
            Request::Idr if after(IDR_INTERVAL_MIN) => Refresh::Idr,
            Request::IdrByReceiver if self.corrupt || after(REQUEST_AGE_MAX) => Refresh::Idr,
            Request::Recover => Refresh::Recover,
            _ if self.corrupt => Refresh::Recover,
            Request::Idr | Request::IdrByReceiver | Request::Nothing => Refresh::No,
        };
        let encoded = match &mut self.codec {
            Codec::Own { encoder, coded } => {
                let given = plan.give(picture, self.index, budget);
                if coded.len() == CODED_MAX {
                    coded.pop_front();
                }
                coded.push_back(Coded { picture, number: encoder.next_picture() });
                let pays = refresh == Refresh::Recover || std::mem::take(&mut self.spared_is_new);
                let many = plan.note_recovery(pays.then(|| encoder.unacknowledged()));
                encoder.provide_for_losses(many);
                let encoded = encoder.encode_rows(rows, given, refresh)?;
                let sizes = [given, ByteCount::of(&encoded.bytes)];
                plan.done(picture, self.index, sizes, encoder.weight());
                encoded
            }
            Codec::Other(encoder) => encoder.encode_rows(rows, plan.equal(budget), refresh)?,
        };
        if encoded.kind == SliceKind::Idr {
            self.idr_at = Some(now);
        }
        if encoded.kind == SliceKind::Idr || refresh == Refresh::Recover {
            (self.corrupt, self.recovering_from) = (false, Some(picture));
        }
        Ok(encoded)
    }

    /// Returns whether the encoder is Tautline's own, which reports the size that pictures need.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.codec, Codec::Own { .. })
    }

    /// Completes the reconstruction, which the next picture needs and the last slice did not.
    pub(super) fn finish_reconstruction(&mut self) {
        match &mut self.codec {
            Codec::Own { encoder, .. } => encoder.finish_reconstruction(),
            Codec::Other(encoder) => encoder.finish_reconstruction(),
        }
    }
}

/// Returns whether picture `a` comes before picture `b`, on a counter that wraps.
fn is_before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

/// Maximum of pictures whose numbers are kept: as many as an encoder may refer back to, and as many
/// again for pictures that it did not get.
const CODED_MAX: usize = 32;
/// Minimum interval between IDRs that the vehicle requests itself: more of them would not pass
/// links that refuse one.
const IDR_INTERVAL_MIN: Duration = Duration::from_millis(200);
/// Time after which a receiver that still requests an IDR, without reporting a loss, has missed the
/// last one too: longer than the round-trip time of any usable link.
const REQUEST_AGE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tautline_video::Picture;
    use tautline_video::avc::LossRecovery;

    use super::*;

    /// A strip that codes grey pictures, one every 16 ms, with the outcome.
    struct Drive {
        strip: StripCoder,
        plan: Plan,
        picture: u32,
    }

    impl Drive {
        fn new(backend: Backend) -> Self {
            let layout = Layout::of(64, 96).unwrap();
            let strip = StripCoder::new(backend, &layout, 2, 60).unwrap();
            // Close to the wraparound of the camera's count.
            Self { strip, plan: Plan::new(6), picture: u32::MAX - 2 }
        }

        fn next(&mut self, requested: Request) -> (u32, Encoded) {
            let rows = Picture::new(64, 16).unwrap();
            let (picture, budget) = (self.picture, ByteCount::new(6_000));
            self.picture = picture.wrapping_add(1);
            let now = Instant::from_millis(u64::from(picture.wrapping_sub(u32::MAX - 2)) * 16);
            let plan = &self.plan;
            (picture, self.strip.encode(&mut &rows, picture, budget, plan, requested, now).unwrap())
        }

        /// Returns whether a report causes a new recovery.
        fn report(&mut self, newest: u32, clean_before: u8, lost_before: u8) -> bool {
            let report = StripReport {
                newest,
                clean_before: Some(clean_before),
                lost_before: Some(lost_before),
            };
            self.strip.handle_report(&report);
            self.strip.corrupt
        }
    }

    #[test]
    fn a_loss_reported_repeatedly_is_recovered_once() {
        for backend in
            [Backend::Avc(LossRecovery::IntraRefreshOnLoss { period: 4 }), Backend::Openh264]
        {
            let mut drive = Drive::new(backend);
            for _ in 0..4 {
                drive.next(Request::Nothing);
            }
            let (newest, _) = drive.next(Request::Nothing);
            assert!(drive.report(newest, 3, 1));
            let (began, _) = drive.next(Request::Nothing);
            assert!(!drive.report(newest, 3, 1));
            assert!(!drive.report(began, 4, 2));
            // The first picture of the recovery is lost as well.
            let (newest, _) = drive.next(Request::Nothing);
            assert!(drive.report(newest, 5, 1));
            drive.next(Request::Nothing);
            assert!(!drive.report(newest, 5, 1));
            assert!(!drive.report(newest.wrapping_add(2), 0, 3));
        }
    }

    #[test]
    fn an_unsent_slice_is_recovered_with_the_next_picture_once() {
        let mut drive =
            Drive::new(Backend::Avc(LossRecovery::ReferenceSelection { references: 16 }));
        let (first, _) = drive.next(Request::Nothing);
        let clean = StripReport { newest: first, clean_before: Some(0), lost_before: None };
        let (refused, _) = drive.next(Request::Nothing);
        let mut recovered = |refused: u32| {
            drive.strip.handle_report(&clean);
            drive.strip.handle_refused(refused);
            drive.next(Request::Nothing)
        };
        for history in [0, 1, 2] {
            assert_eq!(recovered(refused).1.history, Some(history));
        }
        // The picture after the recovery is not sent, nor is the next recovery.
        let (refused, _) = recovered(refused);
        let (refused, encoded) = recovered(refused);
        assert_eq!(encoded.history, Some(0));
        assert_eq!(recovered(refused).1.history, Some(0));
    }

    #[test]
    fn a_picture_known_to_be_clean_is_referred_to_again() {
        let mut drive =
            Drive::new(Backend::Avc(LossRecovery::ReferenceSelection { references: 16 }));
        let (first, encoded) = drive.next(Request::Nothing);
        assert_eq!(encoded.history, Some(0));
        for _ in 0..5 {
            drive.next(Request::Nothing);
        }
        assert!(drive.report(first.wrapping_add(4), 3, 1));
        let (_, encoded) = drive.next(Request::Nothing);
        assert_eq!((encoded.kind, encoded.history), (SliceKind::Predicted, Some(0)));
        assert_eq!(drive.next(Request::Nothing).1.history, Some(1));
    }

    #[test]
    fn a_loss_that_shows_in_no_later_picture_is_counted_once() {
        let references = LossRecovery::ReferencesByLoss { references: 16 };
        let mut drive = Drive::new(Backend::Avc(references));
        (0..4).for_each(|_| drop(drive.next(Request::Nothing)));
        let (newest, _) = drive.next(Request::Nothing);
        assert!(!drive.report(newest, 0, 1));
        assert!(drive.strip.spared_is_new);
        let (next, _) = drive.next(Request::Nothing);
        assert!(!drive.report(next, 0, 2) && !drive.strip.spared_is_new);
        let (newest, _) = drive.next(Request::Nothing);
        assert!(!drive.report(newest, 0, 1) && drive.strip.spared_is_new);
    }

    #[test]
    fn repeated_idr_requests_of_a_receiver_are_answered_once() {
        for (request, expected) in [(Request::Idr, 3), (Request::IdrByReceiver, 1)] {
            let mut drive =
                Drive::new(Backend::Avc(LossRecovery::IntraRefreshOnLoss { period: 4 }));
            let idrs = (0..30).filter(|_| drive.next(request).1.kind == SliceKind::Idr).count();
            assert_eq!(idrs, expected, "{request:?}");
        }
    }

    #[test]
    fn an_idr_reported_lost_is_coded_again_at_once() {
        for backend in
            [Backend::Avc(LossRecovery::ReferencesByLoss { references: 16 }), Backend::Openh264]
        {
            let mut drive = Drive::new(backend);
            let (first, encoded) = drive.next(Request::IdrByReceiver);
            assert_eq!(encoded.kind, SliceKind::Idr);
            let (second, encoded) = drive.next(Request::IdrByReceiver);
            assert_eq!(encoded.kind, SliceKind::Predicted);
            // The receiver has the second picture but nothing to decode it from.
            let told = StripReport { newest: second, clean_before: None, lost_before: Some(1) };
            assert_eq!(second.wrapping_sub(1), first);
            drive.strip.handle_report(&told);
            assert_eq!(drive.next(Request::IdrByReceiver).1.kind, SliceKind::Idr);
            drive.strip.handle_report(&told);
            assert_eq!(drive.next(Request::IdrByReceiver).1.kind, SliceKind::Predicted);
        }
    }
}
