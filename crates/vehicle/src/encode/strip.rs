use std::collections::VecDeque;
use std::time::Duration;

use tautline_message::StripReport;
use tautline_units::{ByteCount, Instant};
use tautline_video::{Backend, Encoded, Encoder, Error, Layout, Refresh, Rows, SliceKind, avc};

use super::plan::Plan;

/// One strip's encoder, and what is known of how its slices arrive.
pub struct StripCoder {
    index: usize,
    codec: Codec,
    idr_at: Option<Instant>,
    /// Whether the operator told of a loss from which no recovery has begun yet.
    corrupt: bool,
    /// The picture with which the last recovery began.
    recovering_from: Option<u32>,
    /// The newest loss that needed no recovery, since the pictures after it refer to older ones, and whether it has yet
    /// to be counted.
    spared: Option<u32>,
    spared_is_new: bool,
}

enum Codec {
    /// Tautline's own: the picture's budget is shared, and it learns what has arrived.
    Own { encoder: Box<avc::StripEncoder>, coded: VecDeque<Coded> },
    /// One that knows of its own strip alone.
    Other(Box<dyn Encoder>),
}

/// What a strip's next picture is asked to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Whatever its encoder makes of it.
    Nothing,
    /// A recovery from a loss, in the encoder's own way.
    Recover,
    /// An IDR, by the vehicle itself.
    Idr,
    /// An IDR, by the receiver, which repeats that until one is there.
    IdrByReceiver,
}

/// A picture's number by the camera, and by the encoder, which lacks those it never got.
struct Coded {
    picture: u32,
    number: u64,
}

impl StripCoder {
    /// Returns the encoder of strip `index` of the layout, by `backend`.
    ///
    /// # Errors
    /// When an encoder of that size cannot be made.
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

    /// Takes what the operator told last of this strip: of a loss that no recovery has followed yet,
    /// the next picture begins one.
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

    /// Takes the newest picture whose slice was coded and never sent, as [`handle_report`](Self::handle_report)
    /// takes one that the operator lacks.
    pub fn handle_refused(&mut self, picture: u32) {
        self.corrupt |= self.is_not_recovered(picture);
    }

    fn is_not_recovered(&self, lost: u32) -> bool {
        self.recovering_from.is_none_or(|from| !is_before(lost, from))
    }

    /// Codes the strip's next picture, which may take its share of `budget`.
    ///
    /// An IDR that is requested is coded at once, but one for each request: a receiver repeats its own until an IDR
    /// is there, a round trip later, and is heard again before if it told that the last one did not come.
    ///
    /// # Errors
    /// As the encoder.
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

    /// Returns whether the encoder is Tautline's own, which tells what pictures need.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.codec, Codec::Own { .. })
    }

    /// Does what the next picture needs and the last slice did not.
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

/// As many pictures as an encoder may refer back to, and as many again that the camera kept.
const CODED_MAX: usize = 32;
/// The vehicle itself wants no IDR sooner after another: of links that refuse one it would be more of the same.
const IDR_INTERVAL_MIN: Duration = Duration::from_millis(200);
/// After so long a receiver that still requests an IDR and tells of no loss did not get the last one either: longer
/// than a round trip over any link that can be driven over.
const REQUEST_AGE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tautline_video::Picture;
    use tautline_video::avc::LossRecovery;

    use super::*;

    /// A strip that codes grey pictures, one every 16 ms, and tells how.
    struct Drive {
        strip: StripCoder,
        plan: Plan,
        picture: u32,
    }

    impl Drive {
        fn new(backend: Backend) -> Self {
            let layout = Layout::of(64, 96).unwrap();
            let strip = StripCoder::new(backend, &layout, 2, 60).unwrap();
            // Close to where the camera's count wraps.
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

        /// Returns whether a report brings a new recovery.
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
    fn one_loss_is_recovered_from_once_however_often_it_is_told() {
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
            // What begins the recovery is lost as well.
            let (newest, _) = drive.next(Request::Nothing);
            assert!(drive.report(newest, 5, 1));
            drive.next(Request::Nothing);
            assert!(!drive.report(newest, 5, 1));
            assert!(!drive.report(newest.wrapping_add(2), 0, 3));
        }
    }

    #[test]
    fn a_slice_that_was_never_sent_is_recovered_from_with_the_next_picture_once() {
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
        // What follows from the recovery is not sent, nor is the next recovery.
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
    fn an_idr_that_is_requested_again_and_again_is_not_coded_at_each_request() {
        for (request, expected) in [(Request::Idr, 3), (Request::IdrByReceiver, 1)] {
            let mut drive =
                Drive::new(Backend::Avc(LossRecovery::IntraRefreshOnLoss { period: 4 }));
            let idrs = (0..30).filter(|_| drive.next(request).1.kind == SliceKind::Idr).count();
            assert_eq!(idrs, expected, "{request:?}");
        }
    }

    #[test]
    fn an_idr_that_is_told_not_to_have_come_is_coded_anew_at_once() {
        for backend in
            [Backend::Avc(LossRecovery::ReferencesByLoss { references: 16 }), Backend::Openh264]
        {
            let mut drive = Drive::new(backend);
            let (first, encoded) = drive.next(Request::IdrByReceiver);
            assert_eq!(encoded.kind, SliceKind::Idr);
            let (second, encoded) = drive.next(Request::IdrByReceiver);
            assert_eq!(encoded.kind, SliceKind::Predicted);
            // The receiver has the second, and nothing to show it by.
            let told = StripReport { newest: second, clean_before: None, lost_before: Some(1) };
            assert_eq!(second.wrapping_sub(1), first);
            drive.strip.handle_report(&told);
            assert_eq!(drive.next(Request::IdrByReceiver).1.kind, SliceKind::Idr);
            drive.strip.handle_report(&told);
            assert_eq!(drive.next(Request::IdrByReceiver).1.kind, SliceKind::Predicted);
        }
    }
}
