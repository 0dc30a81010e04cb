//! The paper's normalized message, which every codec encodes from and decodes to.

use serde::{Deserialize, Serialize};

/// A lidar's points in the application's form.
#[derive(
    Clone,
    PartialEq,
    Debug,
    Default,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
    wincode::SchemaWrite,
    wincode::SchemaRead,
    bitcode::Encode,
    bitcode::Decode,
)]
#[repr(C)]
pub(crate) struct Cloud {
    pub(crate) info: Info,
    pub(crate) points: Vec<Point>,
}

/// The part of a cloud with a fixed size.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    Default,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
    wincode::SchemaWrite,
    wincode::SchemaRead,
    bitcode::Encode,
    bitcode::Decode,
)]
#[repr(C)]
pub(crate) struct Info {
    pub(crate) kind: u64,
    /// Time of the measurement, in nanoseconds.
    pub(crate) timestamp: u64,
    /// Identifier of the publisher.
    pub(crate) guid: u64,
}

/// One lidar return.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Debug,
    Default,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
    wincode::SchemaWrite,
    wincode::SchemaRead,
    bitcode::Encode,
    bitcode::Decode,
    zerocopy::FromBytes,
)]
#[repr(C)]
pub(crate) struct Point {
    /// Metres along x, y and z.
    pub(crate) position: [f32; 3],
    pub(crate) intensity: u8,
}

impl Cloud {
    /// Returns one lidar revolution in a yard, with `count` points.
    ///
    /// No number is zero, because some codecs omit zeros. Each number has all its digits, like
    /// measured ones.
    pub(crate) fn of(count: usize) -> Self {
        let info =
            Info { kind: 7, timestamp: 1_542_848_736_123_456_789, guid: 0x5EED_0123_4567_89AB };
        let point = |index: usize| {
            let turn = index as f32 * std::f32::consts::TAU / count as f32 + 0.001;
            let distance = 8.0 + (7.0 * turn).sin();
            Point {
                position: [
                    distance * turn.cos(),
                    distance * turn.sin(),
                    0.1 + (index % 16) as f32 * 0.217,
                ],
                intensity: 1 + (index % 200) as u8,
            }
        };
        Self { info, points: (0..count).map(point).collect() }
    }

    /// Returns the sum of all numbers in double precision: the minimum cost of reading each.
    pub(crate) fn sum(&self) -> f64 {
        sum(self.info, self.points.iter().copied())
    }

    /// Returns y of the middle point; zero if there is none.
    pub(crate) fn middle_y(&self) -> f32 {
        self.points.get(self.points.len() / 2).map_or(0.0, |point| point.position[1])
    }
}

/// Sums every number of a message.
///
/// Points go to four independent lanes in turn: a single running sum would measure the latency of
/// the adder instead of the codec. More lanes than the CPU has registers would measure its stack.
/// Every codec uses this function, so that the sums are bit-identical.
pub(crate) fn sum(info: Info, mut points: impl ExactSizeIterator<Item = Point>) -> f64 {
    let mut lanes = [[0.0f64; 4]; RUN];
    let count = points.len();
    for _ in 0..count / RUN {
        for lane in &mut lanes {
            if let Some(point) = points.next() {
                add(lane, point);
            }
        }
    }
    for point in points {
        add(&mut lanes[0], point);
    }
    info.sum() + lanes.as_flattened().iter().sum::<f64>()
}

fn add(lane: &mut [f64; 4], point: Point) {
    let [x, y, z] = point.position;
    lane[0] += f64::from(x);
    lane[1] += f64::from(y);
    lane[2] += f64::from(z);
    lane[3] += f64::from(point.intensity);
}

impl Info {
    pub(crate) fn sum(self) -> f64 {
        self.kind as f64 + self.timestamp as f64 + self.guid as f64
    }
}

const RUN: usize = 4;
