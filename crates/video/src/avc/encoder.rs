use std::collections::VecDeque;

use tautline_units::ByteCount;

use super::bits::BitWriter;
use super::deblock::deblock;
use super::headers::{Header, Shape};
use super::intra_refresh::{IntraRefresh, Reach};
use super::kernel::{self, Kernel};
use super::loss_recovery::LossRecovery;
use super::macroblock::{Kind, Macroblock};
use super::plane::{Halves, Reconstruction};
use super::rate_control::{Model, Order, RateControl};
use super::reference::Reference;
use super::slice::Slice;
use super::vector::Vector;
use crate::h264::nal;
use crate::{
    AccessUnit, Encoded, Encoder, Error, Flow, Motion, Picture, QuantizerEncoder, Quantizers,
    Refresh, Rows, SliceKind,
};

/// Parameters of an encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Pixels in a row, a multiple of 16.
    pub width: usize,
    /// Rows of the strip, a multiple of 16.
    pub height: usize,
    /// Pixel columns at the right and rows at the bottom that are not shown: even numbers below 16.
    pub cropped: [usize; 2],
    /// Pictures per second, 1 to 240.
    pub pictures_per_second: u32,
    /// Method of recovery from lost slices.
    pub loss_recovery: LossRecovery,
    /// True if vectors stay within the strip, so that a [`Joiner`](super::Joiner) can combine
    /// several strips into one picture. No macroblock is then coded as samples.
    pub joinable: bool,
}

/// A coded picture that is not yet complete as a reference for the next one.
#[derive(Clone, Copy)]
struct Unfinished {
    number: u64,
    idr: bool,
    deblocked: bool,
}

/// Encoder of one strip: constrained baseline, one slice per picture, no delayed pictures.
#[derive(Clone)]
pub struct StripEncoder {
    config: Config,
    shape: Shape,
    kernel: kernel::Choice,
    reconstruction: Reconstruction,
    /// Pictures that decoders keep, the last first, with their numbers.
    kept: VecDeque<(u64, Reconstruction)>,
    /// Half samples of a kept picture, with its number; `u64::MAX` before the first.
    halves: (u64, Halves),
    /// Number of the next picture, from 0 on.
    next: u64,
    /// Number of the newest picture that the receiver is known to have decoded clean; the last
    /// IDR's before an acknowledgement of it or a later picture.
    acknowledged: u64,
    /// True once an acknowledgement has arrived since the last IDR.
    told: bool,
    /// True if the next picture refers to the acknowledged one, with
    /// [`LossRecovery::ReferenceSelection`] and [`LossRecovery::ReferencesByLoss`].
    selects: bool,
    /// True while losses are frequent, with [`LossRecovery::ReferencesByLoss`]; set by
    /// [`provide_for_losses`](Self::provide_for_losses).
    many_losses: bool,
    intra_refresh: IntraRefresh,
    macroblocks: Vec<Macroblock>,
    co_located: Vec<Vector>,
    model: Model,
    /// Activity of each macroblock in the last predicted picture, and in the last IDR.
    activity: [Vec<f64>; 2],
    /// Last picture, until the work is done that only the next one needs; `None` after that.
    unfinished: Option<Unfinished>,
    writer: BitWriter,
    /// `frame_num` of the next picture; an IDR resets it to 0.
    number: u16,
    idr_id: u16,
}

impl StripEncoder {
    /// Creates an encoder that begins with an IDR.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both sides are multiples of 16 from 16 to 8192 that some level
    /// of H.264 allows at that rate; [`Error::Invalid`] for a rate of 0 or above 240, a cropping
    /// that is odd or above 14, or a number of the loss recovery outside its range.
    pub fn new(config: Config) -> Result<Self, Error> {
        let Config { width, height, cropped, pictures_per_second, loss_recovery, .. } = config;
        // Validates the sides.
        Picture::new(width, height)?;
        if pictures_per_second == 0 || pictures_per_second > 240 {
            let value = u64::from(pictures_per_second);
            return Err(Error::Invalid { what: "picture rate", value });
        }
        if let Some(&value) = cropped.iter().find(|&&side| side % 2 != 0 || side > 14) {
            return Err(Error::Invalid { what: "cropping", value: value as u64 });
        }
        loss_recovery.check()?;
        let (columns, rows) = (width / 16, height / 16);
        let references = loss_recovery.references();
        let contained = config.joinable;
        let shape = Shape { columns, rows, cropped, pictures_per_second, references, contained };
        shape.level()?;
        let count = columns * rows;
        Ok(Self {
            config,
            shape,
            kernel: kernel::Choice::best(),
            reconstruction: Reconstruction::new(width, height),
            kept: VecDeque::with_capacity(references as usize + 1),
            halves: (u64::MAX, Halves::new(width, height)),
            next: 0,
            acknowledged: 0,
            told: false,
            selects: false,
            many_losses: false,
            intra_refresh: IntraRefresh::new(loss_recovery, columns, config.joinable),
            macroblocks: vec![Macroblock::new(Kind::Intra, 0); count],
            co_located: vec![Vector::default(); count],
            model: Model::new(columns, rows),
            activity: [vec![1.0; count], vec![INTRA_ACTIVITY; count]],
            unfinished: None,
            writer: BitWriter::default(),
            number: 0,
            idr_id: 0,
        })
    }

    /// Returns the last picture as its decoder has it; black before the first.
    pub fn reconstruction(&mut self) -> Picture {
        self.finish_reconstruction();
        let mut picture =
            Picture::new(self.config.width, self.config.height).expect("checked at construction");
        if let Some((_, reconstruction)) = self.kept.front() {
            let (luma, cb, cr) = picture.planes_mut();
            reconstruction.luma.copy_to(luma);
            reconstruction.cb.copy_to(cb);
            reconstruction.cr.copy_to(cr);
        }
        picture
    }

    /// Returns the number of the picture to be coded next: 0 for the first.
    pub fn next_picture(&self) -> u64 {
        self.next
    }

    /// Records that the receiver has decoded picture `picture` clean; its number is that of
    /// [`next_picture`](Self::next_picture).
    ///
    /// Used only with [`LossRecovery::AcknowledgedReferences`],
    /// [`LossRecovery::ReferenceSelection`] and [`LossRecovery::ReferencesByLoss`]. Ignores
    /// pictures that decoders no longer keep, as those before the last IDR.
    pub fn acknowledge(&mut self, picture: u64) {
        self.finish_reconstruction();
        if self.kept.iter().any(|(number, _)| *number == picture) {
            self.acknowledged = self.acknowledged.max(picture);
            self.told = true;
        }
    }

    /// Returns the distance in pictures from the next one back to the last acknowledged one, or to
    /// the last IDR.
    pub fn unacknowledged(&self) -> u64 {
        self.next - self.acknowledged
    }

    /// Sets whether losses are frequent, as determined by a [`LossCost`](super::LossCost): used
    /// only with [`LossRecovery::ReferencesByLoss`].
    pub fn provide_for_losses(&mut self, many: bool) {
        self.many_losses = many;
    }

    /// Returns the estimated size in bits of a slice like the last predicted one at QP 0, for a
    /// [`Planner`](super::Planner).
    pub fn weight(&self) -> f64 {
        self.model.weight(&self.activity[0], self.shape.columns)
    }

    /// Returns the next picture's reference index: 0 is the last picture, 1 the one before it.
    /// `None` if there is no allowed reference, so that an IDR is due.
    fn reference_index(&self) -> Option<usize> {
        let last = (!self.kept.is_empty()).then_some(0);
        if !self.refers_to_acknowledged() {
            return last;
        }
        let known = self.kept.iter().position(|(number, _)| *number == self.acknowledged);
        // If the receiver sends no feedback, it would not acknowledge an IDR either.
        known.or(if self.told { None } else { last })
    }

    fn keeps_acknowledged(&self) -> bool {
        self.kept.iter().any(|(number, _)| *number == self.acknowledged)
    }

    fn refers_to_acknowledged(&self) -> bool {
        matches!(self.config.loss_recovery, LossRecovery::AcknowledgedReferences { .. })
            || self.selects
    }

    /// Returns whether the next picture is an IDR, and applies the request `refresh` to the method
    /// of loss recovery.
    fn is_idr(&mut self, refresh: Refresh) -> bool {
        let recovers = match self.config.loss_recovery {
            LossRecovery::Idr => false,
            LossRecovery::IntraRefresh { .. } | LossRecovery::IntraColumns { .. } => true,
            // Without feedback since the last IDR, the IDR itself may be lost.
            LossRecovery::AcknowledgedReferences { .. } => self.told,
            LossRecovery::ReferenceSelection { .. } => {
                self.selects = refresh == Refresh::Recover;
                self.told
            }
            LossRecovery::ReferencesByLoss { .. } => {
                let recovers = refresh == Refresh::Recover;
                // Unless required, an IDR is no better than a possibly corrupt reference.
                self.selects = recovers || self.many_losses && self.keeps_acknowledged();
                self.told
            }
            LossRecovery::IntraRefreshOnLoss { .. } => {
                if refresh == Refresh::Recover {
                    self.intra_refresh.on_loss();
                }
                true
            }
        };
        self.reference_index().is_none()
            || match refresh {
                Refresh::No => false,
                Refresh::Idr => true,
                Refresh::Recover => !recovers,
            }
    }

    fn check_size(&self, rows: &Picture) -> Result<(), Error> {
        let Config { width, height, .. } = self.config;
        if (rows.width(), rows.height()) == (width, height) {
            return Ok(());
        }
        Err(Error::SizeMismatch {
            width: rows.width(),
            height: rows.height(),
            expected_width: width,
            expected_height: height,
        })
    }

    fn picture(
        &mut self,
        rows: &mut dyn Rows,
        idr: bool,
        rate_control: &mut RateControl,
    ) -> Result<Encoded, Error> {
        if idr {
            self.number = 0;
            self.acknowledged = self.next;
            self.told = false;
        }
        if self.told && self.refers_to_acknowledged() {
            self.intra_refresh.begin_anew();
        }
        let reach = self.intra_refresh.next(idr, self.config.width, self.config.height);
        // An I slice is the same either way, but openh264 requires one set for all slices of a
        // picture.
        let refreshes = matches!(
            self.config.loss_recovery,
            LossRecovery::IntraRefresh { .. } | LossRecovery::IntraColumns { .. }
        );
        let mut header = Header {
            first: 0,
            idr: idr.then_some(self.idr_id),
            predicted: !idr,
            constrained: refreshes || reach.is_constrained(),
            number: self.number,
            reference_index: self.reference_index().unwrap_or(0) as u32,
            qp: rate_control.first(),
            deblocked: !reach.is_refreshing(),
            mixed: false,
        };
        self.write(rows, &header, &reach, rate_control);
        if idr && !rate_control.is_fixed() {
            // The distribution of an IDR's bits is hard to predict, and poor quality shows for
            // long: code it again with the updated model.
            let (activity, order) = (&self.activity[1], rate_control.order());
            self.model.learn(rate_control, activity);
            *rate_control = self.model.begin(order, activity, self.shape.columns);
            header.qp = rate_control.first();
            self.write(rows, &header, &reach, rate_control);
        }
        self.unfinished = Some(Unfinished { number: self.next, idr, deblocked: header.deblocked });
        self.next += 1;
        let payload = self.writer.finish();
        let bytes = AccessUnit::write(payload.len() + payload.len() / 64 + 64, |out| {
            if idr {
                self.shape.write_sets(out)?;
            }
            nal::write(header.unit_header(), payload, out);
            Ok(())
        })?;
        if idr {
            self.idr_id = 1 - self.idr_id;
        }
        self.number = self.number.wrapping_add(1);
        let kind = if idr { SliceKind::Idr } else { SliceKind::Predicted };
        let history = Some(self.intra_refresh.history());
        let (motion, flow) = (self.motion(&header), self.flow(&header));
        Ok(Encoded { kind, history, motion, flow, bytes })
    }

    /// Returns the dominant motion of the picture just coded; zero for an IDR, and if vectors must
    /// stay within the strip.
    fn motion(&self, header: &Header) -> Motion {
        if !header.predicted || self.config.joinable {
            return Motion::default();
        }
        let inter = self.macroblocks.iter().filter(|macroblock| macroblock.kind == Kind::Inter);
        let vectors = inter.map(|Macroblock { vectors: [first, ..], .. }| (first.x, first.y));
        Motion::of(vectors, header.reference_index as u16 + 1)
    }

    /// Returns the motion of the two halves of the picture just coded; zero for an IDR.
    fn flow(&self, header: &Header) -> Flow {
        if !header.predicted {
            return Flow::default();
        }
        let (columns, pictures) = (self.shape.columns, header.reference_index as u16 + 1);
        let half = |is_right: bool| {
            let inter = self.macroblocks.iter().enumerate().filter(move |(at, macroblock)| {
                macroblock.kind == Kind::Inter && (at % columns >= columns / 2) == is_right
            });
            let vectors = inter.map(|(_, macroblock)| macroblock.vectors[0]);
            Motion::of(vectors.map(|vector| (vector.x, vector.y)), pictures)
        };
        Flow { left: half(false), right: half(true) }
    }

    /// Codes the slice into the writer from its start: header and data.
    fn write(
        &mut self,
        rows: &mut dyn Rows,
        header: &Header,
        reach: &Reach,
        rate_control: &mut RateControl,
    ) {
        self.writer.clear();
        header.write(&mut self.writer);
        rate_control.start(self.writer.bit_count());
        match self.kernel {
            kernel::Choice::Scalar(kernel) => self.slice(kernel, rows, header, reach, rate_control),
            #[cfg(target_arch = "x86_64")]
            kernel::Choice::Avx2(kernel) => self.slice(kernel, rows, header, reach, rate_control),
        }
    }

    /// Codes the slice's data with this kernel.
    fn slice(
        &mut self,
        kernel: impl Kernel,
        rows: &mut dyn Rows,
        header: &Header,
        reach: &Reach,
        rate_control: &mut RateControl,
    ) {
        let reference_index = header.reference_index as usize;
        if header.predicted {
            self.interpolate(kernel, reference_index);
        }
        let reference =
            header.predicted.then(|| Reference::new(&self.kept[reference_index].1, &self.halves.1));
        Slice {
            kernel,
            rows,
            activity: &mut self.activity[usize::from(!header.predicted)],
            reference,
            reconstruction: &mut self.reconstruction,
            macroblocks: &mut self.macroblocks,
            co_located: &self.co_located,
            writer: &mut self.writer,
            rate_control,
            reach,
            columns: self.shape.columns,
            qp: header.qp,
            skip_run: 0,
        }
        .run();
    }

    /// Completes the last picture as a reference: deblocks it unless columns were refreshed,
    /// extends its margin, keeps it and its vectors, and interpolates it if the next picture is
    /// expected to refer to it. Does nothing if that is done.
    fn finish_reconstruction_by(&mut self, kernel: impl Kernel) {
        let Some(Unfinished { number, idr, deblocked }) = self.unfinished.take() else { return };
        if deblocked {
            deblock(kernel, &mut self.reconstruction, &self.macroblocks, self.shape.columns);
        }
        for (co_located, macroblock) in self.co_located.iter_mut().zip(&self.macroblocks) {
            *co_located = macroblock.vectors[0];
        }
        self.reconstruction.extend();
        self.keep(number, idr);
        // The next picture refers to the last one, except where feedback selects the reference.
        let chosen =
            matches!(self.config.loss_recovery, LossRecovery::AcknowledgedReferences { .. });
        if !chosen && !self.many_losses {
            self.interpolate(kernel, 0);
        }
    }

    /// Keeps the picture just coded as decoders do (8.2.5.3), and reuses the memory of one that is
    /// no longer kept.
    fn keep(&mut self, number: u64, idr: bool) {
        let most = if idr { 0 } else { self.shape.references as usize - 1 };
        let mut free = None;
        while self.kept.len() > most {
            free = self.kept.pop_back();
        }
        let free = match free {
            Some((_, reconstruction)) => reconstruction,
            None => Reconstruction::new(self.config.width, self.config.height),
        };
        self.kept.push_front((number, std::mem::replace(&mut self.reconstruction, free)));
    }

    /// Computes the half samples of a kept picture, if [`halves`](Self::halves) are not those
    /// already.
    fn interpolate(&mut self, kernel: impl Kernel, reference_index: usize) {
        let (number, reconstruction) = &self.kept[reference_index];
        if self.halves.0 != *number {
            kernel.halves(&reconstruction.luma, &mut self.halves.1);
            self.halves.0 = *number;
        }
    }
}

impl Encoder for StripEncoder {
    fn encode(
        &mut self,
        mut rows: &Picture,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.encode_rows(&mut rows, budget, refresh)
    }

    fn encode_rows(
        &mut self,
        rows: &mut dyn Rows,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.check_size(rows.read(0))?;
        self.finish_reconstruction();
        let idr = self.is_idr(refresh);
        let budgets = if idr { IDR_BUDGETS } else { 1.0 };
        let ceiling = (budget.get() as f64 * 8.0 * budgets - UNIT_BITS) * (1.0 - ESCAPED);
        let order = Order {
            intra: idr,
            target: ceiling * TARGET,
            ceiling,
            floor: QP_MIN,
            reserve: if idr { 7.0 } else { self.intra_refresh.reserve() },
        };
        let activity = usize::from(idr);
        let mut rate_control =
            self.model.begin(order, &self.activity[activity], self.shape.columns);
        let encoded = self.picture(rows, idr, &mut rate_control)?;
        self.model.learn(&rate_control, &self.activity[activity]);
        Ok(encoded)
    }

    fn finish_reconstruction(&mut self) {
        match self.kernel {
            kernel::Choice::Scalar(kernel) => self.finish_reconstruction_by(kernel),
            #[cfg(target_arch = "x86_64")]
            kernel::Choice::Avx2(kernel) => self.finish_reconstruction_by(kernel),
        }
    }
}

impl QuantizerEncoder for StripEncoder {
    fn encode_at(
        &mut self,
        mut rows: &Picture,
        quantizers: Quantizers,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.check_size(rows)?;
        self.finish_reconstruction();
        let idr = self.is_idr(refresh);
        let qp = if idr { quantizers.intra } else { quantizers.predicted };
        if qp > Quantizers::MAX {
            return Err(Error::Invalid { what: "quantizer", value: qp.into() });
        }
        self.picture(&mut rows, idr, &mut RateControl::fixed(qp))
    }
}

/// Size of an IDR in budgets: with only one, its quantizer would be about ten steps coarser than
/// its neighbours', visible as a blink.
const IDR_BUDGETS: f64 = 3.0;
/// Bits of the start code and the NAL unit's header.
const UNIT_BITS: f64 = 40.0;
/// Share of a slice's bits that emulation prevention may add.
const ESCAPED: f64 = 0.004;
/// Target size of a slice, as a share of the maximum that the budget allows it.
const TARGET: f64 = 0.94;
/// Finest quantizer: finer ones make no visible difference (about 48 dB) and only burden the links
/// and the decoder.
const QP_MIN: u8 = 16;
/// Activity assumed of each macroblock of the first IDR.
const INTRA_ACTIVITY: f64 = 10.0;
