use tautline_units::Instant;

use super::bytes::{Reader, Writer};
use super::error::Error;
use super::layout;
use super::payload::{Frame, PAYLOAD_AT};
use crate::description::{Reading, Revision, Text, VALUES_MAX, ValueForm};

/// Newest reading of one of a machine's values, from the machine to the guard and on to the
/// vehicle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Value {
    /// Time of measurement, by the machine's clock.
    pub source: Instant,
    /// Revision of the description that names the value.
    pub revision: Revision,
    /// Number of the value among the described ones, from 0.
    pub index: u8,
    /// The reading.
    pub reading: Reading,
}

impl Frame for Value {
    const DATA_ID: u32 = layout::Value::DATA_ID;
    const BYTES: usize = layout::Value::BYTES;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.source
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let (form, number, text) = match self.reading {
            Reading::Number(number) => (ValueForm::Number, number, Text::default()),
            Reading::Text(text) => (ValueForm::Text, 0.0, text),
        };
        let raw = layout::Value {
            revision: self.revision.get(),
            index: self.index,
            form: form.number(),
            number,
            length: text.as_str().len() as u8,
            text: *text.padded(),
        };
        raw.write(writer);
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let raw = layout::Value::read(reader);
        let wrong = |at| Error::Value { at };
        let revision = Revision::new(raw.revision).ok_or(wrong(PAYLOAD_AT))?;
        if usize::from(raw.index) >= VALUES_MAX {
            return Err(wrong(layout::Value::INDEX_AT));
        }
        let text = Text::from_padded(&raw.text).ok_or(wrong(layout::Value::TEXT_AT))?;
        let is_length = usize::from(raw.length) == text.as_str().len();
        let reading = match ValueForm::from_number(raw.form) {
            Some(ValueForm::Number) if raw.length == 0 && is_length => {
                Reading::Number(reader.within(raw.number, f32::MAX))
            }
            Some(ValueForm::Text) if is_length => Reading::Text(text),
            Some(_) => return Err(wrong(layout::Value::LENGTH_AT)),
            None => return Err(wrong(layout::Value::FORM_AT)),
        };
        Ok(Self { source, revision, index: raw.index, reading })
    }
}
