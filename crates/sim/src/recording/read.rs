use std::collections::BTreeSet;

use super::columns::Columns;
use super::error::{Error, LINES_MAX};
use super::ping::Ping;

/// Returns the pings of a file in order of time; the first may have any time.
pub(super) fn pings(text: &[u8], columns: Columns<'_>) -> Result<Vec<Ping>, Error> {
    let mut lines = lines(text);
    let (_, names) = lines.next().ok_or(Error::Empty)?;
    let names: Vec<&[u8]> = fields(names).collect();
    let places = Places::find(&names, columns)?;
    let mut pings: Vec<Ping> = Vec::new();
    let mut operators = BTreeSet::new();
    let mut row = Vec::with_capacity(names.len());
    for (index, (line, text)) in lines.enumerate() {
        if index == LINES_MAX {
            return Err(Error::TooManyLines);
        }
        row.clear();
        row.extend(fields(text));
        if row.len() != names.len() {
            return Err(Error::Fields { line, found: row.len(), expected: names.len() });
        }
        if let Some(place) = places.operator {
            if operators.len() < OPERATORS_SHOWN && !operators.contains(row[place]) {
                operators.insert(row[place]);
            }
            if columns.operator.is_some_and(|wanted| wanted.as_bytes() != row[place]) {
                continue;
            }
        }
        pings.push(Row { names: &names, fields: &row, line }.ping(&places, index, columns)?);
    }
    let unclear = columns.operator.is_none() && operators.len() > 1;
    let absent = pings.is_empty() && !operators.is_empty();
    if unclear || absent {
        let found = operators.into_iter().map(shown).collect::<Vec<_>>().join(", ");
        return Err(Error::Operator { operator: columns.operator.map(str::to_owned), found });
    }
    let backwards = pings.windows(2).find(|pair| pair[0].at >= pair[1].at);
    match backwards {
        Some(pair) => Err(Error::Order { line: pair[1].line }),
        None => Ok(pings),
    }
}

/// Maximum operators that an error lists.
const OPERATORS_SHOWN: usize = 16;

/// Returns the lines with content, numbered from 1; `#` begins a comment.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate();
    let lines = lines.map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(b"#"))
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Indices of the columns that are read; `operator` is `None` in a file without that column.
struct Places {
    rtt: usize,
    /// Index of the time's column, and its unit in nanoseconds; `None` in a file without times.
    time: Option<(usize, f64)>,
    operator: Option<usize>,
}

impl Places {
    fn find(names: &[&[u8]], columns: Columns<'_>) -> Result<Self, Error> {
        let place = |wanted: &str| names.iter().position(|name| *name == wanted.as_bytes());
        let operator = place("operator");
        let wanted = match (operator, columns.operator) {
            (None, Some(column)) => column,
            (Some(_), _) | (None, None) => "rtt_ms",
        };
        let rtt = place(wanted).ok_or_else(|| {
            let found = names.iter().take(OPERATORS_SHOWN).map(|name| shown(name));
            let found = found.collect::<Vec<_>>().join(", ");
            Error::NoColumn { wanted: wanted.to_owned(), found }
        })?;
        let time = names.iter().enumerate().find_map(|(index, name)| {
            let unit = match name.strip_prefix(b"t_")? {
                rest if rest.ends_with(b"ms") => 1e6,
                rest if rest.ends_with(b"s") => 1e9,
                _ => return None,
            };
            Some((index, unit))
        });
        Ok(Self { rtt, time, operator })
    }
}

/// One line, with as many fields as there are names.
struct Row<'a> {
    names: &'a [&'a [u8]],
    fields: &'a [&'a [u8]],
    line: usize,
}

impl Row<'_> {
    fn ping(&self, places: &Places, index: usize, columns: Columns<'_>) -> Result<Ping, Error> {
        let at = match places.time {
            Some((place, unit)) => {
                let time = self.number(place, "time", 0.0, TIME_MAX_NANOS / unit)?;
                (time * unit).round() as u64
            }
            None => columns.interval_nanos().saturating_mul(index as u64),
        };
        let rtt_ms = if self.fields[places.rtt].is_empty() {
            -1.0
        } else {
            self.number(places.rtt, "round trip in ms, up to an hour", f64::MIN, RTT_MAX_MS)?
        };
        let rtt = (rtt_ms >= 0.0).then_some((rtt_ms * 1e6).round() as u64);
        Ok(Ping { at, rtt, line: self.line })
    }

    fn number(&self, place: usize, what: &'static str, from: f64, to: f64) -> Result<f64, Error> {
        let field = self.fields[place];
        let number = std::str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
        number.filter(|number| (from..=to).contains(number)).ok_or_else(|| Error::Number {
            line: self.line,
            column: shown(self.names[place]),
            text: shown(field),
            what,
        })
    }
}

/// Upper limit for times in nanoseconds, about 300 years; a later time is an error.
const TIME_MAX_NANOS: f64 = 9e18;

const RTT_MAX_MS: f64 = 3.6e6;

/// Returns the beginning of a field, for an error message.
fn shown(field: &[u8]) -> String {
    String::from_utf8_lossy(&field[..field.len().min(40)]).into_owned()
}
