//! Writer of point clouds: the header is built once, and points are written directly behind it.

use flatbuffers::{FlatBufferBuilder, VerifierOptions};
use tautline_units::{ByteCount, Instant};

use crate::generated::point_cloud::{self as wire_cloud, PointCloud as Root};
use field::Field;
use pose::Pose;

pub(crate) mod field;
pub(crate) mod pose;

/// The clouds of one sensor, written one after the other into the same buffer.
///
/// FlatBuffers builds a message from its end, so points written first come last, directly after
/// their length. The bytes before them are therefore built without points. They are the same for
/// every cloud of a sensor except for the time and the length, which are patched.
#[derive(Default)]
pub(crate) struct Bulk {
    known: Option<Known>,
    message: Vec<u8>,
}

/// A cloud's header without its time.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Head<'a> {
    pub(crate) frame_id: &'a str,
    pub(crate) pose: Pose,
    pub(crate) stride: ByteCount,
    pub(crate) fields: &'a [Field],
}

/// A message up to its points, and the header from which it was built.
struct Known {
    frame_id: String,
    pose: Pose,
    stride: ByteCount,
    fields: Vec<Field>,
    bytes: Vec<u8>,
    /// Offset of the time in `bytes`.
    time_at: usize,
}

impl Bulk {
    /// Writes everything but the points and returns the `length` bytes for the points.
    ///
    /// The caller must write all of these bytes: they hold old contents.
    pub(crate) fn begin(
        &mut self,
        head: &Head<'_>,
        captured_at: Instant,
        length: usize,
    ) -> &mut [u8] {
        if !self.known.as_ref().is_some_and(|known| known.is(head)) {
            self.known = Some(Known::of(head));
        }
        let known = self.known.as_ref().expect("it has just been built");
        let data_at = known.bytes.len();
        self.message.resize(data_at + length, 0);
        let (front, data) = self.message.split_at_mut(data_at);
        front.copy_from_slice(&known.bytes);
        front[known.time_at..][..TIME].copy_from_slice(&time_on_wire(captured_at));
        front[data_at - LENGTH..]
            .copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        data
    }

    /// Returns the last message written.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }
}

impl Known {
    fn is(&self, head: &Head<'_>) -> bool {
        let Self { frame_id, pose, stride, fields, .. } = self;
        *head == Head { frame_id, pose: *pose, stride: *stride, fields }
    }

    fn of(head: &Head<'_>) -> Self {
        let mut builder = FlatBufferBuilder::new();
        // An aligned struct at the end: the data written next begins at a multiple of 16.
        builder.push(wire_cloud::Align16::default());
        let end = builder.unfinished_data().len();
        builder.start_vector::<u8>(0);
        let data = builder.end_vector::<u8>(0);
        let fields: Vec<_> =
            head.fields.iter().map(|field| field.view().write(&mut builder)).collect();
        let fields = builder.create_vector(&fields);
        let frame_id = builder.create_string(head.frame_id);
        let arguments = wire_cloud::PointCloudArgs {
            timestamp: Some(&wire_cloud::Time::default()),
            frame_id: Some(frame_id),
            pose: Some(head.pose.write(&mut builder)),
            point_stride: u32::try_from(head.stride.get()).unwrap_or(u32::MAX),
            fields: Some(fields),
            data: Some(data),
        };
        let root = Root::create(&mut builder, &arguments);
        wire_cloud::finish_point_cloud_buffer(&mut builder, root);
        let mut bytes = builder.finished_data().to_vec();
        // Remove the aligned struct; the points take its place.
        bytes.truncate(bytes.len() - end);
        let time_at = time_at(&bytes).expect("the time has just been written");
        let Head { frame_id, pose, stride, fields } = *head;
        Self {
            frame_id: frame_id.to_owned(),
            pose,
            stride,
            fields: fields.to_vec(),
            bytes,
            time_at,
        }
    }
}

fn time_at(bytes: &[u8]) -> Option<usize> {
    let root = flatbuffers::root_with_opts::<Root<'_>>(&UNLIMITED, bytes).ok()?;
    place(root.timestamp()?.0.as_slice(), bytes)
}

/// Returns the offset of `part`, which must be a subslice of `whole`; `None` if it begins before
/// `whole`.
pub(crate) fn place(part: &[u8], whole: &[u8]) -> Option<usize> {
    (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)
}

fn time_on_wire(instant: Instant) -> [u8; TIME] {
    let (seconds, nanos) = (instant.as_nanos() / NANOS, instant.as_nanos() % NANOS);
    wire_cloud::Time::new(u32::try_from(seconds).unwrap_or(u32::MAX), nanos as u32).0
}

/// Nanoseconds per second.
pub(crate) const NANOS: u64 = 1_000_000_000;
/// Length of the encoded time in bytes.
pub(crate) const TIME: usize = 8;
/// Length in bytes of the point data's length field, which directly precedes the points.
pub(crate) const LENGTH: usize = 4;
/// Options without limits: encoding writes values unchecked; decoding refuses invalid ones.
const UNLIMITED: VerifierOptions = VerifierOptions {
    max_depth: 8,
    max_tables: usize::MAX,
    max_apparent_size: usize::MAX,
    ignore_missing_null_terminator: true,
};
