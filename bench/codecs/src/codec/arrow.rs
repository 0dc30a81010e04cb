use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::types::{Float32Type, UInt8Type};
use arrow_array::{Array, Float32Array, PrimitiveArray, RecordBatch, UInt8Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};

use super::{Codec, Read, refused};
use crate::normal::{Cloud, Info, Point, sum};

/// Arrow's stream of one batch: one column per number; the info is in the schema's metadata.
#[derive(Default)]
pub(crate) struct Arrow(Vec<u8>);

impl Codec for Arrow {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let Info { kind, timestamp, guid } = cloud.info;
        let metadata: HashMap<String, String> = NAMES
            .iter()
            .zip([kind, timestamp, guid])
            .map(|(name, number)| ((*name).to_owned(), number.to_string()))
            .collect();
        let float = |name: &str| Field::new(name, DataType::Float32, false);
        let fields = vec![
            float("x"),
            float("y"),
            float("z"),
            Field::new("intensity", DataType::UInt8, false),
        ];
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let column = |at: usize| -> Arc<dyn Array> {
            let numbers = cloud.points.iter().map(|point| point.position[at]);
            Arc::new(Float32Array::from_iter_values(numbers))
        };
        let intensity = UInt8Array::from_iter_values(cloud.points.iter().map(|p| p.intensity));
        let columns = vec![column(0), column(1), column(2), Arc::new(intensity)];
        let batch = RecordBatch::try_new(schema.clone(), columns).expect("the schema fits");
        self.0.clear();
        let mut writer = StreamWriter::try_new(&mut self.0, &schema).expect("a vector grows");
        writer.write(&batch).expect("a vector grows");
        writer.finish().expect("a vector grows");
        drop(writer);
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let batch = Batch::read(bytes)?;
        Ok(Cloud { info: batch.info()?, points: batch.points()?.collect() })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let batch = Batch::read(bytes)?;
        Ok(sum(batch.info()?, batch.points()?))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(Batch::read(bytes)?.info()?.guid)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let batch = Batch::read(bytes)?;
        let y = batch.column::<Float32Type>(1)?.values();
        Ok(y.get(y.len() / 2).copied().unwrap_or(0.0))
    }
}

struct Batch(RecordBatch);

impl Batch {
    fn read(bytes: &[u8]) -> Read<Self> {
        let mut reader = StreamReader::try_new(Cursor::new(bytes), None)?;
        Ok(Self(reader.next().ok_or_else(|| refused("no batch"))??))
    }

    fn info(&self) -> Read<Info> {
        let schema = self.0.schema();
        let number = |name: &str| -> Read<u64> {
            let number = schema.metadata().get(name).ok_or_else(|| refused("no info"))?;
            Ok(number.parse()?)
        };
        let [kind, timestamp, guid] = NAMES.map(number);
        Ok(Info { kind: kind?, timestamp: timestamp?, guid: guid? })
    }

    fn column<T: arrow_array::ArrowPrimitiveType>(&self, at: usize) -> Read<&PrimitiveArray<T>> {
        let column = self.0.columns().get(at).and_then(|column| column.as_any().downcast_ref());
        column.ok_or_else(|| refused("another column"))
    }

    fn points(&self) -> Read<impl ExactSizeIterator<Item = Point>> {
        let [x, y, z] = [0, 1, 2].map(|at| self.column::<Float32Type>(at));
        let (x, y, z) = (x?.values(), y?.values(), z?.values());
        let intensity = self.column::<UInt8Type>(3)?.values();
        let numbers = x.iter().zip(y.iter()).zip(z.iter()).zip(intensity.iter());
        Ok(numbers.map(|(((x, y), z), intensity)| Point {
            position: [*x, *y, *z],
            intensity: *intensity,
        }))
    }
}

const NAMES: [&str; 3] = ["kind", "timestamp", "guid"];
