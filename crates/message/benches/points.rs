//! Round trips of 10,000 lidar points: FlatBuffers in bulk against memcpy and Protocol Buffers.
//!
//! All buffers are warm and reused. Compare medians: memcpy is the 160 kB copied once.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use prost::Message;
use tautline_message::point_cloud::{Point, Reader, View};
use tautline_message::{Builder, PointCloud};
use tautline_units::Instant;

fn main() {
    divan::main();
}

/// Copies the 160 kB once: the minimum work of any codec.
#[divan::bench]
fn memcpy(bencher: Bencher<'_, '_>) {
    let source = cloud().data;
    let mut target = vec![0u8; source.len()];
    bencher.counter(bytes()).bench_local(|| {
        black_box(&mut target).copy_from_slice(black_box(&source));
    });
}

/// Builds a complete message from bulk bytes.
#[divan::bench]
fn encode_flatbuffers_records(bencher: Bencher<'_, '_>) {
    let (cloud, mut builder) = (cloud(), Builder::new());
    bencher.counter(bytes()).bench_local(|| {
        black_box(black_box(&cloud).encode_into(&mut builder).len());
    });
}

/// Builds a complete message from points.
#[divan::bench]
fn encode_flatbuffers_points(bencher: Bencher<'_, '_>) {
    let (points, cloud, mut builder) = (points(), cloud(), Builder::new());
    bencher.counter(bytes()).bench_local(|| {
        black_box(cloud.encode_points_into(black_box(&points), &mut builder).len());
    });
}

/// Reads points from a message, with verification and checks.
#[divan::bench]
fn decode_flatbuffers_points(bencher: Bencher<'_, '_>) {
    let (message, mut target, mut reader) = (cloud().encode(), points(), Reader::new());
    bencher.counter(bytes()).bench_local(|| {
        let view = reader.read(black_box(&message)).expect("our own message is well formed");
        view.read_points(&mut target);
        black_box(&mut target);
    });
}

/// Verifies and checks a message of a known sensor, without copying its data.
#[divan::bench]
fn read_flatbuffers(bencher: Bencher<'_, '_>) {
    let (message, mut reader) = (cloud().encode(), Reader::new());
    bencher.bench_local(|| {
        let view = reader.read(black_box(&message)).expect("our own message is well formed");
        black_box(view.data().len())
    });
}

/// Verifies and checks a message without copying its data.
#[divan::bench]
fn view_flatbuffers(bencher: Bencher<'_, '_>) {
    let message = cloud().encode();
    bencher.bench_local(|| {
        let view = View::of(black_box(&message)).expect("our own message is well formed");
        black_box(view.data().len())
    });
}

/// Builds a message with one sub-message per point.
#[divan::bench]
fn encode_protobuf_points(bencher: Bencher<'_, '_>) {
    let (points, mut message, mut buffer) = (points(), ProtobufCloud::default(), Vec::new());
    bencher.counter(bytes()).bench_local(|| {
        message.points.clear();
        message.points.extend(black_box(&points).iter().copied().map(ProtobufPoint::from));
        buffer.clear();
        message.encode(&mut buffer).expect("the buffer grows");
        black_box(buffer.len());
    });
}

/// Reads points from a message with one sub-message per point.
#[divan::bench]
fn decode_protobuf_points(bencher: Bencher<'_, '_>) {
    let points_in = points().into_iter().map(ProtobufPoint::from).collect();
    let bytes_in = ProtobufCloud { stamp: 1, points: points_in }.encode_to_vec();
    let (mut message, mut target) = (ProtobufCloud::default(), points());
    bencher.counter(bytes()).bench_local(|| {
        message.clear();
        message.merge(black_box(&bytes_in[..])).expect("our own message is well formed");
        target.clear();
        target.extend(message.points.iter().map(Point::from));
        black_box(&mut target);
    });
}

/// A list of points as a Protocol Buffers schema defines it.
#[derive(Clone, PartialEq, Message)]
struct ProtobufCloud {
    #[prost(fixed64, tag = "1")]
    stamp: u64,
    #[prost(message, repeated, tag = "2")]
    points: Vec<ProtobufPoint>,
}

#[derive(Clone, PartialEq, Message)]
struct ProtobufPoint {
    #[prost(float, tag = "1")]
    x: f32,
    #[prost(float, tag = "2")]
    y: f32,
    #[prost(float, tag = "3")]
    z: f32,
    #[prost(float, tag = "4")]
    intensity: f32,
}

impl From<Point> for ProtobufPoint {
    fn from(point: Point) -> Self {
        Self { x: point.x, y: point.y, z: point.z, intensity: point.intensity }
    }
}

impl From<&ProtobufPoint> for Point {
    fn from(point: &ProtobufPoint) -> Self {
        Self { x: point.x, y: point.y, z: point.z, intensity: point.intensity }
    }
}

fn cloud() -> PointCloud {
    let mut cloud = PointCloud::new(Instant::from_millis(1), "lidar");
    cloud.set_points(&points());
    cloud
}

/// Returns one turn of a lidar in a yard: no number is zero, which Protocol Buffers would omit.
fn points() -> Vec<Point> {
    (0..POINT_COUNT)
        .map(|index| {
            let turn = index as f32 * std::f32::consts::TAU / POINT_COUNT as f32 + 0.001;
            let distance = 8.0 + (7.0 * turn).sin();
            Point {
                x: distance * turn.cos(),
                y: distance * turn.sin(),
                z: 0.1 + (index % 16) as f32 * 0.2,
                intensity: 1.0 + (index % 200) as f32,
            }
        })
        .collect()
}

fn bytes() -> BytesCount {
    BytesCount::new(POINT_COUNT * 16)
}

const POINT_COUNT: usize = 10_000;
