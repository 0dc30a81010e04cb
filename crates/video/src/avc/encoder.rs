use tautline_units::ByteCount;

use super::bits::BitWriter;
use super::deblock::deblock;
use super::headers::{Header, Shape};
use super::kernel::{self, Kernel};
use super::macroblock::{Kind, Macroblock};
use super::pace::{Model, Order, Pace};
use super::plane::{Block, Frame, Halves};
use super::reference::Reference;
use super::slice::Slice;
use super::sweep::Reach;
use super::vector::Vector;
use crate::h264::nal;
use crate::{Encoded, Encoder, Error, Picture, QuantizerEncoder, Quantizers, Refresh, SliceKind};

/// What an encoder is set up for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Pixels in a row, a multiple of 16.
    pub width: usize,
    /// Rows, a multiple of 16.
    pub height: usize,
    /// Of the pixels in a row and of the rows, those that are not to be shown, at the right and
    /// below: even numbers below 16.
    pub cropped: [usize; 2],
    /// 1 to 240.
    pub pictures_per_second: u32,
}

/// Codes one strip: constrained baseline, one slice a picture, no picture held back.
pub struct StripEncoder {
    config: Config,
    shape: Shape,
    kernel: kernel::Choice,
    frame: Frame,
    reference: Frame,
    halves: Halves,
    field: Vec<Macroblock>,
    past: Vec<Vector>,
    model: Model,
    /// How much each row of macroblocks has to be coded.
    activity: Vec<f64>,
    writer: BitWriter,
    /// Whether the next picture must be an IDR whatever is asked.
    idr_due: bool,
    /// frame_num of the next picture.
    number: u16,
    idr_id: u16,
}

impl StripEncoder {
    /// An encoder that begins with an IDR.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both sides are multiples of 16 from 16 to 8192 that a level of
    /// H.264 has at that rate; [`Error::Invalid`] for a rate of 0 or above 240, or a cropping that
    /// is odd or above 14.
    pub fn new(config: Config) -> Result<Self, Error> {
        let Config { width, height, cropped, pictures_per_second } = config;
        // Checks the sides.
        Picture::new(width, height)?;
        if pictures_per_second == 0 || pictures_per_second > 240 {
            let value = u64::from(pictures_per_second);
            return Err(Error::Invalid { what: "picture rate", value });
        }
        if let Some(&value) = cropped.iter().find(|&&side| side % 2 != 0 || side > 14) {
            return Err(Error::Invalid { what: "cropping", value: value as u64 });
        }
        let (columns, rows) = (width / 16, height / 16);
        let shape = Shape { columns, rows, cropped, pictures_per_second, references: 1 };
        shape.level()?;
        let count = columns * rows;
        Ok(Self {
            config,
            shape,
            kernel: kernel::Choice::best(),
            frame: Frame::new(width, height),
            reference: Frame::new(width, height),
            halves: Halves::new(width, height),
            field: vec![Macroblock::new(Kind::Intra, 0); count],
            past: vec![Vector::default(); count],
            model: Model::new(columns, rows),
            activity: vec![1.0; rows],
            writer: BitWriter::default(),
            idr_due: true,
            number: 0,
            idr_id: 0,
        })
    }

    /// The last picture as its decoder has it.
    pub fn reconstruction(&self) -> Picture {
        let mut picture =
            Picture::new(self.config.width, self.config.height).expect("checked at construction");
        let (luma, cb, cr) = picture.planes_mut();
        self.reference.luma.copy_to(luma);
        self.reference.cb.copy_to(cb);
        self.reference.cr.copy_to(cr);
        picture
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

    fn picture(&mut self, rows: &Picture, idr: bool, pace: &mut Pace) -> Result<Encoded, Error> {
        if idr {
            self.number = 0;
        }
        let header = Header {
            first: 0,
            idr: idr.then_some(self.idr_id),
            predicted: !idr,
            constrained: false,
            number: self.number,
            back: 0,
            qp: pace.first(),
            deblocked: true,
        };
        self.writer.clear();
        header.write(&mut self.writer);
        pace.start(self.writer.bit_count());
        match self.kernel {
            kernel::Choice::Scalar(kernel) => self.slice(kernel, rows, &header, pace),
            #[cfg(target_arch = "x86_64")]
            kernel::Choice::Avx2(kernel) => self.slice(kernel, rows, &header, pace),
        }
        let payload = self.writer.finish();
        let mut bytes = Vec::with_capacity(payload.len() + payload.len() / 64 + 64);
        if idr {
            self.shape.write_sets(&mut bytes)?;
        }
        nal::write(header.unit_header(), payload, &mut bytes);
        if idr {
            self.idr_id = 1 - self.idr_id;
            self.idr_due = false;
        }
        self.number = self.number.wrapping_add(1);
        let kind = if idr { SliceKind::Idr } else { SliceKind::Predicted };
        Ok(Encoded { kind, bytes })
    }

    /// Codes the slice's data and makes the picture ready to be referred to.
    fn slice(&mut self, kernel: impl Kernel, rows: &Picture, header: &Header, pace: &mut Pace) {
        let reach = Reach::free(self.config.width, self.config.height);
        let reference = Reference { frame: &self.reference, halves: &self.halves };
        Slice {
            kernel,
            source: rows,
            reference: header.predicted.then_some(reference),
            frame: &mut self.frame,
            field: &mut self.field,
            past: &self.past,
            writer: &mut self.writer,
            pace,
            reach: &reach,
            columns: self.shape.columns,
            qp: header.qp,
            skip_run: 0,
        }
        .run();
        if header.deblocked {
            deblock(kernel, &mut self.frame, &self.field, self.shape.columns);
        }
        for (past, macroblock) in self.past.iter_mut().zip(&self.field) {
            *past = macroblock.vectors[0];
        }
        std::mem::swap(&mut self.frame, &mut self.reference);
        self.reference.extend();
        kernel.halves(&self.reference.luma, &mut self.halves);
    }
}

impl Encoder for StripEncoder {
    fn encode(
        &mut self,
        rows: &Picture,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.check_size(rows)?;
        let idr = self.idr_due || refresh == Refresh::Idr;
        match self.kernel {
            kernel::Choice::Scalar(kernel) => self.look_at(kernel, rows, idr),
            #[cfg(target_arch = "x86_64")]
            kernel::Choice::Avx2(kernel) => self.look_at(kernel, rows, idr),
        }
        let budgets = if idr { IDR_BUDGETS } else { 1.0 };
        let ceiling = (budget.get() as f64 * 8.0 * budgets - UNIT_BITS) * (1.0 - ESCAPED);
        let order = Order {
            intra: idr,
            target: ceiling * TARGET,
            ceiling,
            floor: QP_MIN,
            reserve: if idr { 7.0 } else { 0.1 },
        };
        let mut pace = self.model.begin(order, &self.activity, self.shape.columns);
        let encoded = self.picture(rows, idr, &mut pace)?;
        self.model.learn(&pace, &self.activity);
        Ok(encoded)
    }
}

impl QuantizerEncoder for StripEncoder {
    fn encode_at(
        &mut self,
        rows: &Picture,
        quantizers: Quantizers,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.check_size(rows)?;
        let idr = self.idr_due || refresh == Refresh::Idr;
        let qp = if idr { quantizers.intra } else { quantizers.predicted };
        if qp > Quantizers::MAX {
            return Err(Error::Invalid { what: "quantizer", value: qp.into() });
        }
        self.picture(rows, idr, &mut Pace::fixed(qp))
    }
}

impl StripEncoder {
    /// Measures each row of macroblocks: its difference from the picture before, or for an IDR
    /// from itself one row of samples above.
    fn look_at(&mut self, kernel: impl Kernel, rows: &Picture, idr: bool) {
        let stride = rows.width();
        for (row, activity) in self.activity.iter_mut().enumerate() {
            let mut sum = 0;
            for column in 0..self.shape.columns {
                let at = |line: usize| Block {
                    samples: &rows.luma()[line * stride + column * 16..],
                    stride,
                };
                let first = row * 16;
                sum += if idr {
                    kernel.sad(16, 14, at(first), at(first + 1))
                } else {
                    let other = self.reference.luma.from(column as i32 * 16, first as i32);
                    kernel.sad(16, 16, at(first), other)
                };
            }
            let mean = f64::from(sum) / (256 * self.shape.columns) as f64;
            *activity = if idr { mean + 0.5 } else { (mean + 0.5).powf(ACTIVITY_POWER) };
        }
    }
}

/// Budgets that an IDR may take: with one, its quantizer would be some ten steps coarser than its
/// neighbours', to be seen as a blink.
const IDR_BUDGETS: f64 = 3.0;
/// The start code and the NAL unit's header.
const UNIT_BITS: f64 = 40.0;
/// The share that emulation prevention may add.
const ESCAPED: f64 = 0.004;
/// The share of the ceiling that is aimed at.
const TARGET: f64 = 0.965;
/// Finer quantizers are beyond what is seen (about 50 dB).
const QP_MIN: u8 = 12;
/// Bits grow by this power of the change of the pixels.
const ACTIVITY_POWER: f64 = 0.5;
