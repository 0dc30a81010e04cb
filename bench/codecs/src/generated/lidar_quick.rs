// Automatically generated rust module for 'lidar.proto' file

#![allow(non_snake_case)]
#![allow(non_upper_case_globals)]
#![allow(non_camel_case_types)]
#![allow(unused_imports)]
#![allow(unknown_lints)]
#![allow(clippy::all)]
#![cfg_attr(rustfmt, rustfmt_skip)]


use quick_protobuf::{MessageInfo, MessageRead, MessageWrite, BytesReader, Writer, WriterBackend, Result};
use quick_protobuf::sizeofs::*;

#[allow(clippy::derive_partial_eq_without_eq)]
#[derive(Debug, Default, PartialEq, Clone)]
pub struct Info {
    pub kind: u64,
    pub timestamp: u64,
    pub guid: u64,
}

impl<'a> MessageRead<'a> for Info {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> Result<Self> {
        let mut msg = Self::default();
        while !r.is_eof() {
            match r.next_tag(bytes) {
                Ok(8) => msg.kind = r.read_uint64(bytes)?,
                Ok(16) => msg.timestamp = r.read_uint64(bytes)?,
                Ok(24) => msg.guid = r.read_uint64(bytes)?,
                Ok(t) => { r.read_unknown(bytes, t)?; }
                Err(e) => return Err(e),
            }
        }
        Ok(msg)
    }
}

impl MessageWrite for Info {
    fn get_size(&self) -> usize {
        0
        + if self.kind == 0u64 { 0 } else { 1 + sizeof_varint(*(&self.kind) as u64) }
        + if self.timestamp == 0u64 { 0 } else { 1 + sizeof_varint(*(&self.timestamp) as u64) }
        + if self.guid == 0u64 { 0 } else { 1 + sizeof_varint(*(&self.guid) as u64) }
    }

    fn write_message<W: WriterBackend>(&self, w: &mut Writer<W>) -> Result<()> {
        if self.kind != 0u64 { w.write_with_tag(8, |w| w.write_uint64(*&self.kind))?; }
        if self.timestamp != 0u64 { w.write_with_tag(16, |w| w.write_uint64(*&self.timestamp))?; }
        if self.guid != 0u64 { w.write_with_tag(24, |w| w.write_uint64(*&self.guid))?; }
        Ok(())
    }
}

#[allow(clippy::derive_partial_eq_without_eq)]
#[derive(Debug, Default, PartialEq, Clone)]
pub struct Point {
    pub x: f32,
    pub y: f32,
    pub z: f32,
    pub intensity: u32,
}

impl<'a> MessageRead<'a> for Point {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> Result<Self> {
        let mut msg = Self::default();
        while !r.is_eof() {
            match r.next_tag(bytes) {
                Ok(13) => msg.x = r.read_float(bytes)?,
                Ok(21) => msg.y = r.read_float(bytes)?,
                Ok(29) => msg.z = r.read_float(bytes)?,
                Ok(32) => msg.intensity = r.read_uint32(bytes)?,
                Ok(t) => { r.read_unknown(bytes, t)?; }
                Err(e) => return Err(e),
            }
        }
        Ok(msg)
    }
}

impl MessageWrite for Point {
    fn get_size(&self) -> usize {
        0
        + if self.x == 0f32 { 0 } else { 1 + 4 }
        + if self.y == 0f32 { 0 } else { 1 + 4 }
        + if self.z == 0f32 { 0 } else { 1 + 4 }
        + if self.intensity == 0u32 { 0 } else { 1 + sizeof_varint(*(&self.intensity) as u64) }
    }

    fn write_message<W: WriterBackend>(&self, w: &mut Writer<W>) -> Result<()> {
        if self.x != 0f32 { w.write_with_tag(13, |w| w.write_float(*&self.x))?; }
        if self.y != 0f32 { w.write_with_tag(21, |w| w.write_float(*&self.y))?; }
        if self.z != 0f32 { w.write_with_tag(29, |w| w.write_float(*&self.z))?; }
        if self.intensity != 0u32 { w.write_with_tag(32, |w| w.write_uint32(*&self.intensity))?; }
        Ok(())
    }
}

#[allow(clippy::derive_partial_eq_without_eq)]
#[derive(Debug, Default, PartialEq, Clone)]
pub struct Cloud {
    pub info: Option<Info>,
    pub points: Vec<Point>,
}

impl<'a> MessageRead<'a> for Cloud {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> Result<Self> {
        let mut msg = Self::default();
        while !r.is_eof() {
            match r.next_tag(bytes) {
                Ok(10) => msg.info = Some(r.read_message::<Info>(bytes)?),
                Ok(18) => msg.points.push(r.read_message::<Point>(bytes)?),
                Ok(t) => { r.read_unknown(bytes, t)?; }
                Err(e) => return Err(e),
            }
        }
        Ok(msg)
    }
}

impl MessageWrite for Cloud {
    fn get_size(&self) -> usize {
        0
        + self.info.as_ref().map_or(0, |m| 1 + sizeof_len((m).get_size()))
        + self.points.iter().map(|s| 1 + sizeof_len((s).get_size())).sum::<usize>()
    }

    fn write_message<W: WriterBackend>(&self, w: &mut Writer<W>) -> Result<()> {
        if let Some(ref s) = self.info { w.write_with_tag(10, |w| w.write_message(s))?; }
        for s in &self.points { w.write_with_tag(18, |w| w.write_message(s))?; }
        Ok(())
    }
}

