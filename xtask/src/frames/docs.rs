//! The tables of the frames in the docs.

use std::fmt::Write as _;

use anyhow::Result;

use super::book::{Book, Field, Frame, Kind, PAYLOAD_AT, Placed, between};

pub(super) const PATH: &str = "docs/guard.md";

/// Returns the page with the tables between its marks replaced: `<!-- frame NAME -->` to the next
/// `<!-- end -->`.
///
/// # Errors
/// If a mark is missing.
pub(super) fn tables(book: &Book, page: &str) -> Result<String> {
    let mut page = between(page, &begin("header"), END, &header(book)?)?;
    for frame in &book.frame {
        page = between(&page, &begin(&frame.name), END, &section(book, frame)?)?;
    }
    Ok(page)
}

fn begin(name: &str) -> String {
    format!("<!-- frame {name} -->")
}

fn header(book: &Book) -> Result<String> {
    let mut text = HEAD.to_owned();
    for Placed { at, field } in book.placed(&book.header.fields, 0) {
        row(&mut text, book, at, field, &book.about(field))?;
    }
    Ok(text)
}

fn section(book: &Book, frame: &Frame) -> Result<String> {
    let (bytes, id, letters) = (frame.bytes(book), frame.data_id(), &frame.data_id);
    let title = &frame.title;
    let mut text =
        format!("\n### {title}\n\n{bytes} bytes, data id \"{letters}\" = 0x{id:08X}\n{HEAD}");
    for Placed { at, field } in book.placed(&frame.fields, PAYLOAD_AT) {
        match book.block_of(field) {
            None => row(&mut text, book, at, field, &book.about(field))?,
            Some(block) if block.shown_in == frame.name => {
                for Placed { at, field } in book.placed(&block.fields, at) {
                    row(&mut text, book, at, field, &book.about(field))?;
                }
            }
            Some(block) => {
                let from = shown_at(book, &block.name, &block.shown_in);
                let more = if field.about.is_empty() { "" } else { "; " };
                let about =
                    format!("as in *{}* from byte {from} on{more}{}", block.shown_in, field.about);
                row(&mut text, book, at, field, &about)?;
            }
        }
    }
    Ok(text)
}

/// Returns the offset of a block in the frame whose table lists its fields.
fn shown_at(book: &Book, block: &str, frame: &str) -> usize {
    let frame = book.frame.iter().find(|other| other.name == frame).expect("a frame shows it");
    let placed = book.placed(&frame.fields, PAYLOAD_AT);
    let found = placed.iter().find(|it| it.field.kind == Kind::Block(block.to_owned()));
    found.map_or(PAYLOAD_AT, |it| it.at)
}

fn row(text: &mut String, book: &Book, at: usize, field: &Field, about: &str) -> Result<()> {
    let kind = match &field.kind {
        Kind::Number(_) if field.bits.is_some() => "set32".to_owned(),
        Kind::Number(number) => number.name().to_owned(),
        Kind::Numbers(number, count) => format!("{count} x {}", number.name()),
        Kind::Bytes(count) => format!("{count} bytes"),
        Kind::Block(_) => format!("{} bytes", book.bytes(field)),
    };
    let about = about.strip_prefix("bits ").unwrap_or(about);
    let about = if about.is_empty() { String::new() } else { format!(" {about}") };
    writeln!(text, "| {at} | {} | {kind} |{about} |", field.name)?;
    Ok(())
}

const HEAD: &str = "\n| byte | field | type | |\n|---|---|---|---|\n";
const END: &str = "<!-- end -->";
