//! The paper's normalized message: what every codec encodes from and decodes to.

use serde::{Deserialize, Serialize};

/// A lidar's points as an application holds them.
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

/// The part of fixed size.
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
    /// Nanoseconds.
    pub(crate) timestamp: u64,
    /// Name of the publisher.
    pub(crate) guid: u64,
}

/// One echo.
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
    /// Returns one turn of a lidar in a yard, `count` points.
    ///
    /// No number is zero, which some codecs leave out; each has all its digits, as measured ones do.
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

    /// Returns what reading every number costs at least: all of them, summed in double precision.
    pub(crate) fn sum(&self) -> f64 {
        sum(self.info, self.points.iter().copied())
    }

    /// Returns y of the point in the middle; zero where there is none.
    pub(crate) fn middle_y(&self) -> f32 {
        self.points.get(self.points.len() / 2).map_or(0.0, |point| point.position[1])
    }
}

/// Sums every number of a message.
///
/// Points go to four lanes in turn that do not wait for each other: one running sum would measure
/// the delay of the adder instead of the codec. More lanes than the processor has registers would
/// measure its stack. Every codec uses this one, so that the sums are equal to the last bit.
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
