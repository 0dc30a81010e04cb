use flatbuffers::{FlatBufferBuilder, WIPOffset};
use tautline_units::ByteCount;

use crate::Error;
use crate::generated::point_cloud as wire_cloud;
use crate::wire::{NAME_BYTES_MAX, length};

/// Place and type of one number in a point's record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Name, such as `x`, `y`, `z`, `intensity`, `red`; at most 64 bytes.
    pub name: String,
    /// Offset from the record's start.
    pub offset: ByteCount,
    /// Type and width of the number.
    pub number: Number,
}

impl Field {
    /// Returns the field, if its name and type are valid and it lies within a record of `stride`.
    pub(crate) fn read(
        field: wire_cloud::PackedElementField<'_>,
        stride: ByteCount,
    ) -> Result<Self, Error> {
        let name = field.name().ok_or(Error::Missing { field: "fields.name" })?;
        length("fields.name", name.len(), NAME_BYTES_MAX)?;
        let number = Number::from_wire(field.type_())?;
        let (offset, length) = (ByteCount::new(field.offset().into()), number.width());
        if offset + length > stride {
            return Err(Error::OutsideRecord { offset, length, stride });
        }
        Ok(Self { name: name.to_owned(), offset, number })
    }

    pub(crate) fn view(&self) -> FieldView<'_> {
        FieldView { name: &self.name, offset: self.offset, number: self.number }
    }
}

/// A [`Field`] that borrows its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldView<'a> {
    /// Name, such as `x`, `y`, `z`, `intensity`, `red`; at most 64 bytes.
    pub name: &'a str,
    /// Offset from the record's start.
    pub offset: ByteCount,
    /// Type and width of the number.
    pub number: Number,
}

impl FieldView<'_> {
    /// Returns the field with an owned name.
    pub fn to_owned(&self) -> Field {
        Field { name: self.name.to_owned(), offset: self.offset, number: self.number }
    }

    pub(crate) fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_cloud::PackedElementField<'static>> {
        let arguments = wire_cloud::PackedElementFieldArgs {
            name: Some(builder.create_string(self.name)),
            offset: u32::try_from(self.offset.get()).unwrap_or(u32::MAX),
            type_: self.number.to_wire(),
        };
        wire_cloud::PackedElementField::create(builder, &arguments)
    }
}

/// Type and width of a number in a record; all little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Number {
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
}

impl Number {
    /// Returns the size of the number in bytes.
    pub fn width(self) -> ByteCount {
        ByteCount::new(match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        })
    }

    /// Returns the number at the start of `bytes`; `None` if there are too few bytes.
    pub fn read(self, bytes: &[u8]) -> Option<f64> {
        Some(match self {
            Self::U8 => f64::from(u8::from_le_bytes(*bytes.first_chunk()?)),
            Self::I8 => f64::from(i8::from_le_bytes(*bytes.first_chunk()?)),
            Self::U16 => f64::from(u16::from_le_bytes(*bytes.first_chunk()?)),
            Self::I16 => f64::from(i16::from_le_bytes(*bytes.first_chunk()?)),
            Self::U32 => f64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
            Self::I32 => f64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
            Self::F32 => f64::from(f32::from_le_bytes(*bytes.first_chunk()?)),
            Self::F64 => f64::from_le_bytes(*bytes.first_chunk()?),
        })
    }

    fn to_wire(self) -> wire_cloud::NumericType {
        use wire_cloud::NumericType as Wire;
        match self {
            Self::U8 => Wire::UINT8,
            Self::I8 => Wire::INT8,
            Self::U16 => Wire::UINT16,
            Self::I16 => Wire::INT16,
            Self::U32 => Wire::UINT32,
            Self::I32 => Wire::INT32,
            Self::F32 => Wire::FLOAT32,
            Self::F64 => Wire::FLOAT64,
        }
    }

    fn from_wire(wire: wire_cloud::NumericType) -> Result<Self, Error> {
        use wire_cloud::NumericType as Wire;
        Ok(match wire {
            Wire::UINT8 => Self::U8,
            Wire::INT8 => Self::I8,
            Wire::UINT16 => Self::U16,
            Wire::INT16 => Self::I16,
            Wire::UINT32 => Self::U32,
            Wire::INT32 => Self::I32,
            Wire::FLOAT32 => Self::F32,
            Wire::FLOAT64 => Self::F64,
            other => return Err(Error::Unknown { field: "fields.type", value: other.0 }),
        })
    }
}
