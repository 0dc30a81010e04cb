//! The frames of a machine's side in C: constants and structs, and the functions that move them
//! from and to bytes.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::book::{Book, Field, Frame, Kind, Number, PAYLOAD_AT, between};

pub(super) const HEADER_PATH: &str = "c/tautline.h";
pub(super) const SOURCE_PATH: &str = "c/tautline.c";

/// Returns the header with the constants and structs between its marks replaced.
///
/// # Errors
/// If a mark or a frame is missing.
pub(super) fn header(book: &Book, present: &str) -> Result<String> {
    let mut text = "\n".to_owned();
    for (name, _) in FRAMES {
        let frame = find(book, name)?;
        let (upper, bytes) = (name.to_uppercase(), frame.bytes(book));
        writeln!(text, "#define TAUTLINE_{upper}_ID 0x{:08X}u", frame.data_id())?;
        writeln!(text, "#define TAUTLINE_{upper}_BYTES {bytes}")?;
    }
    for (list, names) in lists(book, &book.values, |field| field.values.as_deref())? {
        enumeration(&mut text, list, names, |number| number.to_string());
    }
    for (list, names) in lists(book, &book.bits, |field| field.bits.as_deref())? {
        enumeration(&mut text, list, names, |number| format!("1 << {number}"));
    }
    for (name, _) in FRAMES {
        let frame = find(book, name)?;
        writeln!(text, "\n/* {}. */\ntypedef struct {{", frame.title)?;
        for field in flat(book, &frame.fields) {
            let about = book.about(field).replace(['[', ']'], "");
            let about = if about.is_empty() { String::new() } else { format!(" /* {about} */") };
            writeln!(text, "    {}{about}", declaration(field))?;
        }
        writeln!(text, "}} tautline_{name};")?;
    }
    text.push('\n');
    between(present, BEGIN, END, &text)
}

/// Returns the source with the functions between its marks replaced.
///
/// # Errors
/// If a mark or a frame is missing.
pub(super) fn source(book: &Book, present: &str) -> Result<String> {
    let mut text = "\n".to_owned();
    for (name, is_received) in FRAMES {
        let frame = find(book, name)?;
        let (verb, constant) = if is_received { ("get", "") } else { ("put", "const ") };
        let bytes = if is_received { "const uint8_t" } else { "uint8_t" };
        let head =
            format!("static void {verb}_{name}({bytes} *at, {constant}tautline_{name} *{name})");
        writeln!(text, "{head} {{")?;
        let mut at = PAYLOAD_AT;
        for field in flat(book, &frame.fields) {
            writeln!(text, "    {}", moved(verb, name, field, at))?;
            at += book.bytes(field);
        }
        text.push_str("}\n\n");
    }
    between(present, BEGIN, END, &text)
}

fn find<'a>(book: &'a Book, name: &str) -> Result<&'a Frame> {
    let found = book.frame.iter().find(|frame| frame.name == name);
    found.with_context(|| format!("there is no frame {name}"))
}

/// Returns the fields with those of blocks in the blocks' places.
fn flat<'a>(book: &'a Book, fields: &'a [Field]) -> Vec<&'a Field> {
    let parts = |field: &'a Field| match book.block_of(field) {
        Some(block) => flat(book, &block.fields),
        None => vec![field],
    };
    fields.iter().flat_map(parts).collect()
}

/// Returns those lists of names that the frames use, each once.
fn lists<'a>(
    book: &'a Book,
    all: &'a std::collections::BTreeMap<String, Vec<String>>,
    of: impl Fn(&Field) -> Option<&str>,
) -> Result<Vec<(&'a str, &'a [String])>> {
    let mut used = Vec::new();
    for (name, _) in FRAMES {
        let fields = flat(book, &find(book, name)?.fields);
        used.extend(fields.into_iter().filter_map(&of).map(str::to_owned));
    }
    let is_used = |list: &str| list != "flag" && used.iter().any(|used| used == list);
    Ok(all
        .iter()
        .filter(|(list, _)| is_used(list))
        .map(|(list, names)| (&**list, &**names))
        .collect())
}

fn enumeration(text: &mut String, list: &str, names: &[String], value: impl Fn(usize) -> String) {
    // "notices" has the members TAUTLINE_NOTICE_LOCAL_STOP and so on.
    let one = list.strip_suffix('s').unwrap_or(list).to_uppercase();
    text.push_str("\nenum {\n");
    for (number, name) in names.iter().enumerate() {
        let name = name.to_uppercase().replace(' ', "_");
        writeln!(text, "    TAUTLINE_{one}_{name} = {},", value(number)).expect("a string grows");
    }
    text.push_str("};\n");
}

fn declaration(field: &Field) -> String {
    let name = field.ident();
    match &field.kind {
        Kind::Number(number) => format!("{} {name};", kind(*number)),
        Kind::Numbers(number, count) => format!("{} {name}[{count}];", kind(*number)),
        Kind::Bytes(count) => format!("char {name}[{count}];"),
        Kind::Block(_) => String::new(),
    }
}

/// Returns the statement that moves a field from or to its place.
fn moved(verb: &str, frame: &str, field: &Field, at: usize) -> String {
    let name = field.ident();
    let one = |number: Number, at: &str, name: &str| match verb {
        "get" => format!("{frame}->{name} = get_{}(at + {at});", number.name()),
        _ => format!("put_{}(at + {at}, {frame}->{name});", number.name()),
    };
    match &field.kind {
        Kind::Number(number) => one(*number, &at.to_string(), &name),
        Kind::Numbers(number, count) => {
            let place = format!("{at} + {} * i", number.bytes());
            let inner = one(*number, &place, &format!("{name}[i]"));
            format!("for (size_t i = 0; i < {count}; i++) {inner}")
        }
        Kind::Bytes(count) if verb == "get" => {
            format!("memcpy({frame}->{name}, at + {at}, {count});")
        }
        Kind::Bytes(count) => format!("memcpy(at + {at}, {frame}->{name}, {count});"),
        Kind::Block(_) => String::new(),
    }
}

fn kind(number: Number) -> &'static str {
    match number {
        Number::U8 => "uint8_t",
        Number::U16 => "uint16_t",
        Number::U32 => "uint32_t",
        Number::U64 => "uint64_t",
        Number::F32 => "float",
        Number::F64 => "double",
    }
}

/// Frames of a machine's side, and whether it receives them.
const FRAMES: [(&str, bool); 4] =
    [("control", true), ("machine", false), ("description", false), ("value", false)];
const BEGIN: &str = "/* The frames; written by `cargo xtask frames`. */";
const END: &str = "/* End of the frames. */";
