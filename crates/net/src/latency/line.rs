//! A sample as a line of text: comma-separated, quoted as in RFC 4180 if a name requires it.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::{self, BufRead, Read};

use tautline_units::Duration;

use super::leg::Leg;
use super::one_way::OneWay;
use super::sample::Sample;

/// A line of a latency file: a sample, and the number of samples lost before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Sample that the line holds.
    pub sample: Sample,
    /// Number of samples lost between the previous line and this one.
    pub lost: u64,
}

/// A reason why a line holds no sample.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The first line is not that of a latency file.
    #[error("it is not a latency file: it does not begin with \"leg,peer,link,\"")]
    Head,
    /// The line has too few fields.
    #[error("it has {found} fields, not {FIELDS}")]
    Fields {
        /// Number of fields in the line.
        found: usize,
    },
    /// The first field is no name of a [`Leg`].
    #[error("the leg {found:?} is unknown")]
    Leg {
        /// Text of the invalid field.
        found: String,
    },
    /// A field holds no valid number.
    #[error("{name} is {found:?}, not a valid number")]
    Number {
        /// Name of the invalid field.
        name: &'static str,
        /// Text of the invalid field.
        found: String,
    },
    /// The line's times contradict each other, or some of the one-way fields are empty.
    #[error("its times contradict each other")]
    Contradiction,
    /// The line is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// The line exceeds the maximum length.
    #[error("it is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The file ends within the line: it is being written, or its writer was killed.
    #[error("the file ends in the middle of it")]
    Unfinished,
}

impl Line {
    /// Appends the line with its line break.
    pub(super) fn write(&self, out: &mut String) {
        let Sample { leg, peer, link, sent_at, seen_at, back_at, one_way, .. } = &self.sample;
        let (sent, back) = (micros(*sent_at), micros(*back_at).max(micros(*sent_at)));
        let held = micros(self.sample.held).min(back - sent);
        let round_trip = back - sent - held;
        out.push_str(leg.name());
        for text in [peer, link] {
            out.push(',');
            write_text(text, out);
        }
        // Writing to a String does not fail.
        let _ = write!(out, ",{sent},");
        if let Some(seen_at) = seen_at {
            let _ = write!(out, "{}", micros(*seen_at));
        }
        let _ = write!(out, ",{back},{held},{round_trip},");
        match one_way {
            None => out.push_str(",,"),
            Some(OneWay { out_nanos, error, .. }) => {
                // The parts add up to the total, also in microseconds; a bound is rounded up,
                // twice.
                let there = out_nanos.div_euclid(1_000);
                let here = i128::from(round_trip) - i128::from(there);
                let error = micros(*error).saturating_add(2);
                let _ = write!(out, "{there},{here},{error}");
            }
        }
        let _ = writeln!(out, ",{}", self.lost);
    }

    /// Parses a line without its line break. Further fields of a later build are skipped.
    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = [const { Cow::Borrowed("") }; FIELDS];
        let mut rest = Some(text);
        for (found, field) in fields.iter_mut().enumerate() {
            let Some(text) = rest else { return Err(Malformed::Fields { found }) };
            (*field, rest) = split_text(text);
        }
        let [leg, peer, link, numbers @ ..] = fields;
        let leg = Leg::ALL
            .into_iter()
            .find(|known| known.name() == leg)
            .ok_or_else(|| Malformed::Leg { found: shown(&leg) })?;
        let at = |at: usize| (NUMBERS[at], &*numbers[at]);
        let (sent, seen) = (number(at(0))?, optional(at(1))?);
        let (back, held, round_trip): (u64, u64, u64) =
            (number(at(2))?, number(at(3))?, number(at(4))?);
        let parts = (optional(at(5))?, optional(at(6))?, optional(at(7))?);
        let lost = number(at(8))?;
        let whole = back.checked_sub(sent).and_then(|long| long.checked_sub(held));
        let one_way = match parts {
            (None, None, None) => None,
            (Some(there), Some(here), Some(error)) => {
                let nanos = |micros: i64| micros.checked_mul(1_000);
                let (out_nanos, in_nanos) =
                    nanos(there).zip(nanos(here)).ok_or(Malformed::Contradiction)?;
                if i128::from(there) + i128::from(here) != i128::from(round_trip) {
                    return Err(Malformed::Contradiction);
                }
                Some(OneWay { out_nanos, in_nanos, error: Duration::from_micros(error) })
            }
            _some_of_them => return Err(Malformed::Contradiction),
        };
        if whole != Some(round_trip) {
            return Err(Malformed::Contradiction);
        }
        let sample = Sample {
            leg,
            peer: peer.into(),
            link: link.into(),
            sent_at: Duration::from_micros(sent),
            seen_at: seen.map(Duration::from_micros),
            back_at: Duration::from_micros(back),
            held: Duration::from_micros(held),
            one_way,
        };
        Ok(Self { sample, lost })
    }
}

/// Reads a file line by line; `each` receives the number of each line, starting at 1, and its
/// content. The header and empty lines are skipped. If the file does not begin with the header,
/// `each` receives one error, and reading stops.
///
/// # Errors
/// When the input cannot be read.
pub fn read(
    mut input: impl BufRead,
    mut each: impl FnMut(u64, Result<Line, Malformed>),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let most = LINE_BYTES_MAX as u64 + 1;
        input.by_ref().take(most).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let is_whole = bytes.pop_if(|last| *last == b'\n').is_some();
        let is_too_long = !is_whole && bytes.len() > LINE_BYTES_MAX;
        let text = std::str::from_utf8(&bytes).map(|text| text.trim_end_matches('\r'));
        let is_head = text.is_ok_and(|text| text == HEAD || text.starts_with(LATER_HEAD));
        if number == 1 && !is_head {
            each(
                number,
                Err(if is_whole || is_too_long { Malformed::Head } else { Malformed::Unfinished }),
            );
            return Ok(());
        }
        match text {
            _ if is_too_long => {
                input.skip_until(b'\n')?;
                each(number, Err(Malformed::TooLong));
            }
            _ if !is_whole => each(number, Err(Malformed::Unfinished)),
            Ok(HEAD | "") => {}
            Ok(_) if is_head => {}
            Ok(text) => each(number, Line::read(text)),
            Err(_) => each(number, Err(Malformed::NotText)),
        }
    }
    Ok(())
}

/// Appends a name: quoted if it contains a comma or quotes, and with control characters replaced.
fn write_text(text: &str, out: &mut String) {
    let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    if !text.contains([',', '"']) {
        out.extend(text.chars().map(clean));
        return;
    }
    out.push('"');
    for c in text.chars().map(clean) {
        if c == '"' {
            out.push('"');
        }
        out.push(c);
    }
    out.push('"');
}

/// Splits off the first field; returns the rest after its comma, if there is one.
fn split_text(text: &str) -> (Cow<'_, str>, Option<&str>) {
    let Some(quoted) = text.strip_prefix('"') else {
        return match text.split_once(',') {
            Some((field, rest)) => (field.into(), Some(rest)),
            None => (text.into(), None),
        };
    };
    let mut field = String::new();
    let mut parts = quoted.split('"');
    field.push_str(parts.next().unwrap_or_default());
    let mut taken = field.len() + 1;
    // Two consecutive quotes represent one; a single one ends the field.
    while quoted.get(taken..).is_some_and(|rest| rest.starts_with('"')) {
        taken += 1;
        let more = quoted[taken..].split('"').next().unwrap_or_default();
        field.push('"');
        field.push_str(more);
        taken += more.len() + 1;
    }
    let rest = quoted.get(taken..).unwrap_or_default();
    (field.into(), rest.split_once(',').map(|(_, rest)| rest))
}

fn number<T: std::str::FromStr>((name, text): (&'static str, &str)) -> Result<T, Malformed> {
    text.parse().map_err(|_| Malformed::Number { name, found: shown(text) })
}

fn optional<T: std::str::FromStr>(field: (&'static str, &str)) -> Result<Option<T>, Malformed> {
    if field.1.is_empty() { Ok(None) } else { number(field).map(Some) }
}

/// Returns the beginning of a field's text, for people.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// First line of a latency file, with the names of its columns.
pub const HEAD: &str =
    "leg,peer,link,sent_us,seen_us,back_us,held_us,round_trip_us,out_us,in_us,error_us,lost";
/// Beginning of a later build's first line, which may have more fields.
const LATER_HEAD: &str =
    "leg,peer,link,sent_us,seen_us,back_us,held_us,round_trip_us,out_us,in_us,error_us,lost,";
const NUMBERS: [&str; FIELDS - 3] = [
    "sent_us",
    "seen_us",
    "back_us",
    "held_us",
    "round_trip_us",
    "out_us",
    "in_us",
    "error_us",
    "lost",
];
const FIELDS: usize = 12;
/// Maximum length of a line in bytes, beyond which it is malformed: two quoted names and nine
/// numbers of twenty digits take less than half of it.
const LINE_BYTES_MAX: usize = 1_024;
const SHOWN_CHARS: usize = 40;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(text: &[u8]) -> Vec<(u64, Result<Line, Malformed>)> {
        let mut lines = Vec::new();
        read(text, |number, line| lines.push((number, line))).unwrap();
        lines
    }

    fn sample(peer: &str, link: &str) -> Sample {
        Sample {
            leg: Leg::OperatorVehicle,
            peer: peer.into(),
            link: link.into(),
            sent_at: Duration::from_micros(1_764_000_000_000_000),
            seen_at: Some(Duration::from_micros(7_000_000)),
            back_at: Duration::from_micros(1_764_000_000_045_000),
            held: Duration::from_micros(5_000),
            one_way: Some(OneWay {
                out_nanos: 30_000_400,
                in_nanos: 9_999_600,
                error: Duration::from_nanos(19_999_001),
            }),
        }
    }

    #[test]
    fn a_line_has_three_timestamps_and_what_they_come_to() {
        let mut text = String::new();
        Line { sample: sample("car, \"red\"", "lte-1"), lost: 3 }.write(&mut text);
        let expected = "operator-vehicle,\"car, \"\"red\"\"\",lte-1,1764000000000000,7000000,\
                        1764000000045000,5000,40000,30000,10000,20001,3\n";
        assert_eq!(text, expected);
        let found = lines(format!("{HEAD}\n{text}").as_bytes());
        let [(2, Ok(line))] = &found[..] else { panic!("{found:?}") };
        assert_eq!(line.lost, 3);
        assert_eq!(line.sample.round_trip(), Duration::from_millis(40));
        let one_way = OneWay {
            out_nanos: 30_000_000,
            in_nanos: 10_000_000,
            error: Duration::from_micros(20_001),
        };
        assert_eq!(
            line.sample,
            Sample { one_way: Some(one_way), ..sample("car, \"red\"", "lte-1") }
        );
    }

    #[test]
    fn an_answer_of_an_older_build_has_a_round_trip_alone() {
        let mut text = format!("{HEAD}\n");
        let older = Sample { seen_at: None, one_way: None, ..sample("car", "") };
        Line { sample: older.clone(), lost: 0 }.write(&mut text);
        assert!(text.ends_with(",5000,40000,,,,0\n"), "{text}");
        assert_eq!(lines(text.as_bytes()), [(2, Ok(Line { sample: older, lost: 0 }))]);
    }

    #[test]
    fn malformed_lines_are_reported_by_number_and_others_are_read() {
        let right = "relay-vehicle,ab,0,100,5,140,0,40,30,10,20,0";
        let of = |line: &str| {
            let found = lines(format!("{HEAD}\n{line}\n{right}\n").as_bytes());
            let [(2, Err(malformed)), (3, Ok(_))] = &found[..] else { panic!("{found:?}") };
            malformed.to_string()
        };
        assert_eq!(of("relay-vehicle,ab,0,100"), "it has 4 fields, not 12");
        assert_eq!(of(&right.replace("relay", "rely")), "the leg \"rely-vehicle\" is unknown");
        assert_eq!(of(&right.replace("140", "x")), "back_us is \"x\", not a valid number");
        assert_eq!(of(&right.replace(",40,", ",41,")), "its times contradict each other");
        assert_eq!(of(&right.replace(",30,", ",31,")), "its times contradict each other");
        assert_eq!(of(&right.replace(",20,", ",,")), "its times contradict each other");
        assert_eq!(of(&"x".repeat(5_000)), "it is longer than 1024 bytes");
        // A file of a later build.
        let found = lines(format!("{HEAD},more\n{right},7\n").as_bytes());
        assert!(matches!(&found[..], [(2, Ok(_))]), "{found:?}");
        let found = lines(b"leg,peer\nrelay");
        assert_eq!(found, [(1, Err(Malformed::Head))]);
        let found = lines(format!("{HEAD}\r\n\n{right}\n{}", &right[..20]).as_bytes());
        assert!(matches!(&found[..], [(3, Ok(_)), (4, Err(Malformed::Unfinished))]), "{found:?}");
        let mut bytes = format!("{HEAD}\n").into_bytes();
        bytes.extend_from_slice(b"\xff\n");
        assert_eq!(lines(&bytes), [(2, Err(Malformed::NotText))]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            lines(&bytes);
            lines(&[HEAD.as_bytes(), b"\n", &bytes].concat());
        }

        #[test]
        fn no_fields_panic(fields in proptest::collection::vec("[-0-9a-z\",]{0,22}", 0..14)) {
            lines(format!("{HEAD}\nrelay-vehicle,{}\n", fields.join(",")).as_bytes());
        }

        #[test]
        fn a_written_line_is_read_back(
            leg in proptest::sample::select(Leg::ALL.to_vec()),
            (peer, link) in (".{0,20}", "[a-z,\" ]{0,9}"),
            (sent, back, held) in (0..u64::MAX / 8, 0..u64::MAX / 8, any::<u64>()),
            seen in proptest::option::of(any::<u64>()),
            one_way in proptest::option::of((i64::MIN / 8..i64::MAX / 8, any::<u64>())),
            lost in any::<u64>(),
        ) {
            let one_way = one_way.map(|(out_nanos, error)| OneWay {
                out_nanos,
                in_nanos: 0,
                error: Duration::from_nanos(error),
            });
            let sample = Sample {
                leg,
                peer: peer.into(),
                link: link.into(),
                sent_at: Duration::from_nanos(sent),
                seen_at: seen.map(Duration::from_nanos),
                back_at: Duration::from_nanos(back),
                held: Duration::from_nanos(held),
                one_way,
            };
            let mut text = format!("{HEAD}\n");
            Line { sample: sample.clone(), lost }.write(&mut text);
            let found = lines(text.as_bytes());
            let [(2, Ok(line))] = &found[..] else { panic!("{found:?}: {text}") };
            let mut again = format!("{HEAD}\n");
            line.write(&mut again);
            // The bound of the error is exempt, since it is rounded up each time.
            let but_error = |text: &str| {
                let mut fields: Vec<_> = text.rsplit(',').map(str::to_owned).collect();
                fields.remove(1);
                fields
            };
            prop_assert_eq!(but_error(&again), but_error(&text));
            prop_assert_eq!(line.lost, lost);
            prop_assert_eq!(line.sample.one_way.is_some(), sample.one_way.is_some());
        }
    }
}
