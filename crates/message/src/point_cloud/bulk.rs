//! How a cloud is written: what stands before its points once, then the points where they belong.

use flatbuffers::{FlatBufferBuilder, VerifierOptions};
use tautline_units::{ByteCount, Instant};

use super::field::Field;
use super::pose::Pose;
use crate::generated::point_cloud::{self as wire_cloud, PointCloud as Root};

/// The clouds of one sensor, written one after the other into the same buffer.
///
/// FlatBuffers builds a message from its end, so that points which are written first stand last,
/// right behind their length. What stands before them is therefore built with no points at all; it
/// is the same for every cloud of a sensor but for the time and the length, which are put in.
#[derive(Default)]
pub(crate) struct Bulk {
    known: Option<Known>,
    message: Vec<u8>,
}

/// What a cloud says beside its time and its points.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Head<'a> {
    pub(super) frame_id: &'a str,
    pub(super) pose: Pose,
    pub(super) stride: ByteCount,
    pub(super) fields: &'a [Field],
}

/// A message up to its points, and what it was built from.
struct Known {
    frame_id: String,
    pose: Pose,
    stride: ByteCount,
    fields: Vec<Field>,
    bytes: Vec<u8>,
    /// Where the time stands in them.
    time_at: usize,
}

impl Bulk {
    /// Writes all but the points and gives the `length` bytes that they are to be written to.
    ///
    /// Every one of these must be written: they hold what was there before.
    pub(super) fn begin(
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

    /// Returns the message that was written last.
    pub(super) fn message(&self) -> &[u8] {
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
        // An aligned struct at the end: what is written next begins at a multiple of 16.
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
        // The struct has done its work; the points take its place.
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

/// Returns where `part`, a part of `whole`, begins in it.
pub(super) fn place(part: &[u8], whole: &[u8]) -> Option<usize> {
    (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)
}

fn time_on_wire(instant: Instant) -> [u8; TIME] {
    let (seconds, nanos) = (instant.as_nanos() / NANOS, instant.as_nanos() % NANOS);
    wire_cloud::Time::new(u32::try_from(seconds).unwrap_or(u32::MAX), nanos as u32).0
}

/// Nanoseconds of a second.
pub(super) const NANOS: u64 = 1_000_000_000;
/// Bytes of the time.
pub(super) const TIME: usize = 8;
/// Bytes of the points' length, which stands right before them.
pub(super) const LENGTH: usize = 4;
/// What is written is as it is; what decoding would refuse is refused there.
const UNLIMITED: VerifierOptions = VerifierOptions {
    max_depth: 8,
    max_tables: usize::MAX,
    max_apparent_size: usize::MAX,
    ignore_missing_null_terminator: true,
};
