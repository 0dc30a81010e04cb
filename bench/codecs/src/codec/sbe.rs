use sbe_lidar::cloud_codec::{CloudDecoder, CloudEncoder, decoder, encoder};
use sbe_lidar::message_header_codec::{self, MessageHeaderDecoder};
use sbe_lidar::{Encoder, ReadBuf, WriteBuf};

use super::{Codec, Read, refused};
use crate::normal::{Cloud, Info, Point};

/// Simple Binary Encoding, with the Rust code of its generator (schemas/lidar.xml).
#[derive(Default)]
pub(crate) struct Sbe(Vec<u8>);

impl Codec for Sbe {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let room = 64 + 13 * cloud.points.len();
        if self.0.len() < room {
            self.0.resize(room, 0);
        }
        let encoder = CloudEncoder::default()
            .wrap(WriteBuf::new(&mut self.0), message_header_codec::ENCODED_LENGTH);
        let mut encoder = encoder.header(0).parent().expect("the header has its message");
        encoder.kind(cloud.info.kind).timestamp(cloud.info.timestamp).guid(cloud.info.guid);
        let mut points =
            encoder.points_encoder(cloud.points.len() as u32, encoder::PointsEncoder::default());
        for point in &cloud.points {
            points.advance().expect("as many as were promised");
            let [x, y, z] = point.position;
            points.x(x).y(y).z(z).intensity(point.intensity);
        }
        let length = points.get_limit();
        &self.0[..length]
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let decoder = open(bytes)?;
        let info = info(&decoder);
        let mut points = decoder.points_decoder();
        // Do not trust the announced count before the data is there.
        let mut read = Vec::with_capacity((points.count() as usize).min(bytes.len() / 13));
        while points.advance().map_err(|_| refused("no point"))?.is_some() {
            read.push(point(&points));
        }
        Ok(Cloud { info, points: read })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        // The group is an iterator that ends by itself; the summation lanes are kept by hand, as
        // elsewhere.
        let decoder = open(bytes)?;
        let info = info(&decoder);
        let mut points = decoder.points_decoder();
        let count = points.count() as usize;
        let points = (0..count).map(|_| {
            let _ = points.advance();
            point(&points)
        });
        Ok(crate::normal::sum(info, points))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(open(bytes)?.guid())
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let mut points = open(bytes)?.points_decoder();
        let count = points.count();
        // A group can only be read from the start.
        for _ in 0..=count / 2 {
            if points.advance().map_err(|_| refused("no point"))?.is_none() {
                return Ok(0.0);
            }
        }
        Ok(points.y())
    }
}

fn open(bytes: &[u8]) -> Read<CloudDecoder<'_>> {
    if bytes.len() < 8 {
        return Err(refused("too short"));
    }
    let header = MessageHeaderDecoder::default().wrap(ReadBuf::new(bytes), 0);
    if header.template_id() != sbe_lidar::cloud_codec::SBE_TEMPLATE_ID {
        return Err(refused("another message"));
    }
    Ok(CloudDecoder::default().header(header, 0))
}

fn info(decoder: &CloudDecoder<'_>) -> Info {
    Info { kind: decoder.kind(), timestamp: decoder.timestamp(), guid: decoder.guid() }
}

fn point(points: &decoder::PointsDecoder<CloudDecoder<'_>>) -> Point {
    Point { position: [points.x(), points.y(), points.z()], intensity: points.intensity() }
}
