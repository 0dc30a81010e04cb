//! A single self-contained page of all records in a folder of results.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use percent_encoding::{AsciiSet, CONTROLS, PercentEncode, utf8_percent_encode};

use crate::experiment::{Experiment, Row, Verdict};
use crate::notation::number;
use crate::record::{Origin, Record};

/// Writes `report.html` into `out`, with each of `experiments` that has a result there, and returns
/// their records.
///
/// # Errors
/// If there are no results, one cannot be read, or the page cannot be written.
pub fn write<'a>(
    out: &Path,
    experiments: impl Iterator<Item = &'a Experiment>,
) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for experiment in experiments {
        records.extend(Record::read(out, experiment.key)?);
    }
    if records.is_empty() {
        bail!("{} holds no results: `tautline lab run all --out {0}` makes them", out.display());
    }
    let page = page(out, &records)?;
    let file = out.join(FILE);
    fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(records)
}

fn page(out: &Path, records: &[Record]) -> Result<String> {
    let mut html = String::from(HEAD);
    contents(&mut html, records);
    for record in records {
        section(&mut html, out, record)?;
    }
    html.push_str("</main>\n");
    Ok(html)
}

/// Writes the table of contents, with the number of verdicts.
fn contents(html: &mut String, records: &[Record]) {
    let judged = records.iter().flat_map(|record| &record.rows);
    let count = |verdict| judged.clone().filter(|row| row.verdict() == verdict).count();
    let (within, out) = (count(Verdict::Within), count(Verdict::Out));
    let words = match out {
        0 => format!("All {within} judged rows are within their tolerance."),
        _ => format!("{out} of {} judged rows are out of tolerance.", within + out),
    };
    let _ = writeln!(html, "<p class=\"{}\">{words}</p>", if out == 0 { "good" } else { "bad" });
    let counted = |what: &str, is: fn(&Record) -> bool| match records
        .iter()
        .filter(|record| is(record))
        .count()
    {
        0 => String::new(),
        count => format!("<p class=\"plain\">{count} {what}</p>\n"),
    };
    html.push_str(&counted("read from committed measurements, not judged.", |record| {
        matches!(record.origin, Origin::Committed(_)) && record.judged().next().is_none()
    }));
    html.push_str(&counted(
        "read from committed measurements that any machine repeats.",
        |record| matches!(record.origin, Origin::Committed(_)) && record.judged().next().is_some(),
    ));
    html.push_str(&counted("skipped, because something is missing.", |record| {
        matches!(record.origin, Origin::Skipped(_))
    }));
    html.push_str("<table class=\"contents\"><thead><tr><th>Source<th>Experiment<th>Rows");
    html.push_str("<th>Run</tr></thead><tbody>\n");
    for record in records {
        let (tone, effort) = match &record.origin {
            Origin::Measured { .. } => (tone(record), if record.quick { "quick" } else { "full" }),
            Origin::Committed(_) if record.judged().next().is_some() => (tone(record), "committed"),
            Origin::Committed(_) => ("read", "committed"),
            Origin::Skipped(_) => ("skipped", "–"),
        };
        let _ = writeln!(
            html,
            "<tr><td>{source}<td><a href=\"#{key}\">{title}</a>\
             <td class=\"{tone}\">{summary}<td>{effort}</tr>",
            source = escape(&record.source),
            key = escape(&record.key),
            title = escape(&record.title),
            summary = escape(&record.summary()),
        );
    }
    html.push_str("</tbody></table>\n");
}

fn tone(record: &Record) -> &'static str {
    if record.out_of_tolerance().next().is_none() { "good" } else { "bad" }
}

fn section(html: &mut String, out: &Path, record: &Record) -> Result<()> {
    let folder = out.join(&record.key);
    let read = |name: &str, kind: &str| {
        let file = folder.join(name).with_extension(kind);
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    };
    let _ = writeln!(
        html,
        "<section id=\"{key}\"><h2><span>{source}</span> {title}</h2>",
        key = escape(&record.key),
        source = escape(&record.source),
        title = escape(&record.title)
    );
    if let Some(look) = look(&record.origin) {
        let _ = writeln!(html, "<p class=\"{look}\">{}</p>", escape(&record.origin.to_string()));
    }
    if matches!(record.origin, Origin::Skipped(_)) {
        html.push_str(&again(record));
        return Ok(());
    }
    let many = if record.plots.len() > PLOTS_FEW { " many" } else { "" };
    let _ = writeln!(html, "<div class=\"plots{many}\">");
    for plot in &record.plots {
        let _ = writeln!(
            html,
            "<img alt=\"{}\" src=\"data:image/svg+xml,{}\">",
            escape(&plot.title),
            percent_encode(&read(&plot.name, "svg")?)
        );
    }
    html.push_str("</div>\n");
    for name in &record.tables {
        if let Some(caption) = record.captions.get(name) {
            table(html, caption, &read(name, "csv")?)
                .with_context(|| format!("{name}.csv of {}", record.key))?;
        }
    }
    let is_judged =
        matches!(record.origin, Origin::Measured { .. }) || record.judged().next().is_some();
    rows(html, &record.rows, is_judged);
    html.push_str("<ul class=\"notes\">\n");
    for note in &record.notes {
        let _ = writeln!(html, "<li>{}</li>", escape(note));
    }
    html.push_str("</ul>\n<p class=\"again\">Numbers: ");
    for table in record.tables.iter().map(String::as_str).chain(["rows"]) {
        let _ = write!(
            html,
            "<a download=\"{key}-{table}.csv\" href=\"data:text/csv,{csv}\">{table}.csv</a> ",
            key = escape(&record.key),
            csv = percent_encode(&read(table, "csv")?)
        );
    }
    html.push_str("</p>\n");
    html.push_str(&again(record));
    Ok(())
}

/// Returns the end of a section: the command that repeats it, and for a measured one the version,
/// the machine and the duration.
fn again(record: &Record) -> String {
    let measured_by = match &record.origin {
        Origin::Measured { machine } => format!(
            " <small>Tautline {}, {}; took {} s</small>",
            escape(&record.version),
            escape(&machine.to_string()),
            number(record.seconds)
        ),
        Origin::Committed(_) | Origin::Skipped(_) => String::new(),
    };
    let command = escape(&record.command());
    format!("<p class=\"again\">Again: <code>{command}</code>{measured_by}</p></section>\n")
}

/// Returns the CSS classes of the banner of a record that its run did not measure; `None` for a
/// measured one.
fn look(origin: &Origin) -> Option<&'static str> {
    match origin {
        Origin::Measured { .. } => None,
        Origin::Committed(_) => Some("banner read"),
        Origin::Skipped(_) => Some("banner skipped"),
    }
}

/// Writes a table of rows, with columns for tolerance and verdict only if `is_judged`.
fn rows(html: &mut String, rows: &[Row], is_judged: bool) {
    let any = |has: fn(&Row) -> bool| rows.iter().any(has);
    let (reference, asked) = (any(|row| row.reference.is_some()), any(|row| row.asked.is_some()));
    let note = any(|row| !row.note.is_empty());
    html.push_str("<div class=\"wide\"><table><thead><tr><th>Quantity<th>Unit<th>Published");
    html.push_str(if reference { "<th>Reference" } else { "" });
    html.push_str(if asked { "<th>Asked" } else { "" });
    html.push_str(if is_judged {
        "<th>Measured<th>Tolerance<th>Verdict<th>Why that wide"
    } else {
        "<th>Read"
    });
    html.push_str(if note { "<th>Note" } else { "" });
    html.push_str("</tr></thead><tbody>\n");
    for row in rows {
        let (tone, verdict) = match row.verdict() {
            Verdict::Within => ("good", "✓ within"),
            Verdict::Out => ("bad", "✗ out"),
            Verdict::Shown => ("plain", "shown"),
        };
        let optional = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td class=\"n\">{}",
            escape(&row.quantity),
            escape(&row.unit),
            optional(row.published)
        );
        if reference {
            let _ = write!(html, "<td class=\"n\">{}", optional(row.reference));
        }
        if asked {
            let _ = write!(html, "<td class=\"n\">{}", optional(row.asked));
        }
        let _ = write!(html, "<td class=\"n\"><b>{}</b>", number(row.measured));
        if is_judged {
            let _ = write!(
                html,
                "<td class=\"n\">{}<td class=\"{tone}\">{verdict}<td class=\"note\">{}",
                row.tolerance,
                escape(&row.reason)
            );
        }
        if note {
            let _ = write!(html, "<td class=\"note\">{}", escape(&row.note));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

/// Renders a table's CSV file.
fn table(html: &mut String, caption: &str, csv: &str) -> Result<()> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let _ = write!(
        html,
        "<h3>{}</h3>\n<div class=\"wide\"><table class=\"shown\"><thead><tr>",
        escape(caption)
    );
    for column in reader.headers()? {
        let _ = write!(html, "<th>{}", escape(&column.replace('_', " ")));
    }
    html.push_str("</tr></thead><tbody>\n");
    for record in reader.records() {
        html.push_str("<tr>");
        for field in &record? {
            let _ = match field.parse() {
                Ok(value) => write!(html, "<td class=\"n\">{}", number(value)),
                Err(_) if field.is_empty() => write!(html, "<td class=\"n\">–"),
                Err(_) => write!(html, "<td>{}", escape(field)),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    Ok(())
}

/// Escapes text for use between tags and in quoted attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Encodes text for a `data:` URL in a quoted attribute.
fn percent_encode(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED)
}

/// Maximum number of plots below each other; more are arranged side by side.
const PLOTS_FEW: usize = 6;

/// Name of the page in the folder of results.
pub const FILE: &str = "report.html";

/// All characters that could end a `data:` URL or its attribute.
const ENCODED: &AsciiSet =
    &CONTROLS.add(b'"').add(b'#').add(b'%').add(b'&').add(b'\'').add(b'<').add(b'>').add(b'?');

const HEAD: &str = include_str!("report/head.html");
