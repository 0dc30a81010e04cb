//! The layouts of a machine's frames in the Python adapter.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::book::{Book, Field, Kind, Number, between};

pub(super) const PATH: &str = "adapters/python/adapter.py";

/// Returns the adapter with the layouts between its marks replaced.
///
/// # Errors
/// If a mark or a frame is missing.
pub(super) fn layouts(book: &Book, adapter: &str) -> Result<String> {
    let mut text = "\n".to_owned();
    for name in FRAMES {
        let frame = book.frame.iter().find(|frame| frame.name == name);
        let frame = frame.with_context(|| format!("there is no frame {name}"))?;
        let header: String = book.header.fields.iter().map(|it| codes(book, it)).collect();
        let payload: String = frame.fields.iter().map(|it| codes(book, it)).collect();
        let (upper, id) = (name.to_uppercase(), frame.data_id());
        writeln!(text, "{upper}, {upper}_ID = struct.Struct(\">{header} {payload}\"), 0x{id:08X}")
            .expect("a string grows");
    }
    between(adapter, BEGIN, END, &text)
}

/// Returns the format characters of a field, as the module `struct` has them.
fn codes(book: &Book, field: &Field) -> String {
    match &field.kind {
        Kind::Number(number) => code(*number).to_owned(),
        Kind::Numbers(number, count) => format!("{count}{}", code(*number)),
        Kind::Bytes(count) => format!("{count}s"),
        Kind::Block(_) => book
            .block_of(field)
            .map(|block| block.fields.iter().map(|field| codes(book, field)).collect())
            .unwrap_or_default(),
    }
}

fn code(number: Number) -> &'static str {
    match number {
        Number::U8 => "B",
        Number::U16 => "H",
        Number::U32 => "I",
        Number::U64 => "Q",
        Number::F32 => "f",
        Number::F64 => "d",
    }
}

/// Frames that a machine receives or sends.
const FRAMES: [&str; 5] = ["control", "machine", "description", "value", "fact"];
const BEGIN: &str = "# The frames; written by `cargo xtask frames`.";
const END: &str = "# End of the frames.";
