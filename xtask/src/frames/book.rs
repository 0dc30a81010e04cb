//! The description of all frames as it is read from TOML.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// All frames, with what they share.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Book {
    pub(super) values: BTreeMap<String, Vec<String>>,
    pub(super) bits: BTreeMap<String, Vec<String>>,
    pub(super) header: Header,
    pub(super) block: Vec<Block>,
    pub(super) frame: Vec<Frame>,
}

/// Fields with which every frame begins.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) fields: Vec<Field>,
}

/// Fields that several frames have in the same order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Block {
    pub(super) name: String,
    pub(super) about: String,
    /// Name of the frame in whose table the block's fields are listed.
    pub(super) shown_in: String,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) title: String,
    /// Four letters, which are also the number on the wire.
    pub(super) data_id: String,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Field {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    #[serde(default)]
    pub(super) unit: String,
    #[serde(default)]
    pub(super) about: String,
    /// Name of the list of its values.
    pub(super) values: Option<String>,
    /// Name of the list of its bits.
    pub(super) bits: Option<String>,
    /// `true` if the frame may end before the field.
    #[serde(default)]
    pub(super) optional: bool,
    /// `true` if the guard refuses some of its values, and names its place.
    #[serde(default)]
    pub(super) checked: bool,
}

/// Type of a field.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Kind {
    Number(Number),
    /// Several numbers, and how many.
    Numbers(Number, usize),
    Bytes(usize),
    /// A block's fields, by the block's name.
    Block(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Number {
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

/// A field at its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    /// Offset in bytes: in a frame from its beginning, in a block from the block's.
    pub(super) at: usize,
    pub(super) field: &'a Field,
}

impl Book {
    pub(super) fn read(text: &str) -> Result<Self> {
        let book: Self = toml::from_str(text)?;
        let header = book.bytes_of(&book.header.fields);
        ensure!(header == PAYLOAD_AT, "the header has {header} bytes, not {PAYLOAD_AT}");
        for frame in &book.frame {
            ensure!(frame.data_id.len() == 4, "{}: a data id has four letters", frame.name);
            let optional = frame.fields.iter().skip_while(|field| !field.optional);
            for field in optional {
                ensure!(field.optional, "{}: {} follows optional ones", frame.name, field.name);
                let is_number = field.kind == Kind::Number(Number::F32);
                ensure!(is_number, "{}: {} is optional and no f32", frame.name, field.name);
            }
        }
        let frames = book.frame.iter().map(|frame| &frame.fields);
        for field in book.block.iter().map(|block| &block.fields).chain(frames).flatten() {
            if let Kind::Block(name) = &field.kind {
                book.find(name)?;
            }
            for (list, lists) in [(&field.values, &book.values), (&field.bits, &book.bits)] {
                if let Some(list) = list {
                    ensure!(lists.contains_key(list), "{}: there is no {list}", field.name);
                }
            }
        }
        Ok(book)
    }

    pub(super) fn find(&self, block: &str) -> Result<&Block> {
        let found = self.block.iter().find(|other| other.name == block);
        found.with_context(|| format!("there is no block {block}"))
    }

    /// Returns the block of a field; `None` if the field is a number or bytes.
    pub(super) fn block_of(&self, field: &Field) -> Option<&Block> {
        match &field.kind {
            Kind::Block(name) => self.block.iter().find(|block| block.name == *name),
            Kind::Number(_) | Kind::Numbers(..) | Kind::Bytes(_) => None,
        }
    }

    pub(super) fn bytes(&self, field: &Field) -> usize {
        match &field.kind {
            Kind::Number(number) => number.bytes(),
            Kind::Numbers(number, count) => number.bytes() * count,
            Kind::Bytes(count) => *count,
            Kind::Block(_) => self.block_of(field).map_or(0, |block| self.bytes_of(&block.fields)),
        }
    }

    pub(super) fn bytes_of(&self, fields: &[Field]) -> usize {
        fields.iter().map(|field| self.bytes(field)).sum()
    }

    /// Returns the fields with their places, the first at `from`.
    pub(super) fn placed<'a>(&self, fields: &'a [Field], from: usize) -> Vec<Placed<'a>> {
        let mut at = from;
        let mut placed = Vec::new();
        for field in fields {
            placed.push(Placed { at, field });
            at += self.bytes(field);
        }
        placed
    }

    /// Returns the description of a field: its unit, its values or bits, and its meaning.
    pub(super) fn about(&self, field: &Field) -> String {
        let numbered = |names: &[String]| {
            let names = names.iter().enumerate().map(|(number, name)| format!("{number} {name}"));
            names.collect::<Vec<_>>().join(", ")
        };
        let is_flag = field.values.as_deref() == Some("flag") && !field.about.is_empty();
        let values = field.values.as_ref().filter(|_| !is_flag);
        let values = values.map(|list| numbered(&self.values[list]));
        let bits = field.bits.as_ref().map(|list| format!("bits {}", numbered(&self.bits[list])));
        let unit = if field.unit.is_empty() { None } else { Some(field.unit.clone()) };
        let about = if field.about.is_empty() { None } else { Some(field.about.clone()) };
        let parts: Vec<String> = [unit, values, bits].into_iter().flatten().collect();
        let head = parts.join("; ");
        match about {
            None => head,
            Some(about) if head.is_empty() => about,
            // A meaning continues its unit: "m/s to the left".
            Some(about)
                if parts.len() == 1
                    && !field.unit.is_empty()
                    && !about.starts_with(|letter: char| letter.is_ascii_digit()) =>
            {
                format!("{head}, {about}")
            }
            Some(about) => format!("{head}; {about}"),
        }
    }
}

impl Frame {
    pub(super) fn data_id(&self) -> u32 {
        self.data_id.bytes().fold(0, |id, letter| id << 8 | u32::from(letter))
    }

    pub(super) fn fixed(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| !field.optional)
    }

    pub(super) fn optional_count(&self) -> usize {
        self.fields.iter().filter(|field| field.optional).count()
    }

    /// Returns the frame's length in bytes, with all its optional numbers.
    pub(super) fn bytes(&self, book: &Book) -> usize {
        PAYLOAD_AT + book.bytes_of(&self.fields)
    }
}

impl Field {
    /// Returns the name as one word: `act's number` is `acts_number`.
    pub(super) fn ident(&self) -> String {
        self.name.replace('\'', "").replace([' ', '-'], "_").to_lowercase()
    }
}

impl Number {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::F32 => 4,
            Self::U64 | Self::F64 => 8,
        }
    }

    fn of(name: &str) -> Option<Self> {
        let all = [Self::U8, Self::U16, Self::U32, Self::U64, Self::F32, Self::F64];
        all.into_iter().find(|number| number.name() == name)
    }
}

impl TryFrom<String> for Kind {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        if let Some(number) = Number::of(&text) {
            return Ok(Self::Number(number));
        }
        if let Some(count) = text.strip_suffix(" bytes") {
            return Ok(Self::Bytes(count.parse()?));
        }
        if let Some((number, count)) = text.split_once(" x ") {
            let Some(number) = Number::of(number) else { bail!("{text}: no type of a number") };
            return Ok(Self::Numbers(number, count.parse()?));
        }
        Ok(Self::Block(text))
    }
}

/// Returns `text` with what is between the marks of `name` replaced by `inner`.
///
/// # Errors
/// If a mark is missing.
pub(super) fn between(text: &str, begin: &str, end: &str, inner: &str) -> Result<String> {
    let (before, rest) = text.split_once(begin).with_context(|| format!("no mark {begin:?}"))?;
    let (_, after) = rest.split_once(end).with_context(|| format!("no mark {end:?}"))?;
    Ok(format!("{before}{begin}{inner}{end}{after}"))
}

/// The description's file.
pub(super) const FILE: &str = "crates/guard/frames.toml";
/// Offset of a frame's payload in bytes.
pub(super) const PAYLOAD_AT: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        [values]
        gear = ["drive", "reverse"]
        [bits]
        [header]
        fields = [{ name = "all", type = "20 bytes" }]
        [[block]]
        name = "pair"
        about = "Two."
        shown_in = "small"
        fields = [{ name = "a", type = "u8", values = "gear" }, { name = "b", type = "f32 x 2" }]
        [[frame]]
        name = "small"
        title = "Small"
        data_id = "TGX1"
        fields = [
            { name = "first", type = "u16", unit = "ms", about = "of it" },
            { name = "pair", type = "pair" },
            { name = "last", type = "f32", optional = true },
        ]
    "#;

    #[test]
    fn fields_follow_each_other_without_gaps() {
        let book = Book::read(SMALL).unwrap();
        let frame = &book.frame[0];
        let at: Vec<usize> = book.placed(&frame.fields, 20).iter().map(|it| it.at).collect();
        assert_eq!((at, frame.bytes(&book), frame.data_id()), (vec![20, 22, 31], 35, 0x5447_5831));
        assert_eq!(book.about(&frame.fields[0]), "ms, of it");
        assert_eq!(book.about(&book.block[0].fields[0]), "0 drive, 1 reverse");
    }

    #[test]
    fn a_description_that_contradicts_itself_is_refused() {
        for (right, wrong) in [
            ("type = \"pair\"", "type = \"peer\""),
            ("values = \"gear\"", "values = \"gears\""),
            ("20 bytes", "19 bytes"),
            ("TGX1", "TGX"),
            ("optional = true }", "optional = true }, { name = \"c\", type = \"u8\" }"),
        ] {
            assert!(Book::read(&SMALL.replace(right, wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        assert_eq!(between("a<b>c", "<", ">", "d").unwrap(), "a<d>c");
        assert!(between("a<b", "<", ">", "d").is_err());
    }
}
