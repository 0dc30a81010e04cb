//! Settings of a file, one line each.

use std::path::Path;

use tautline_transport::crypto::Identity;
use toml::{Table, Value};

use super::NUMBER;
use super::file::File;
use super::flags::{clap_command, help, is_flag_of};

/// One line of a table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Full name in the file, or the flag.
    pub(super) name: String,
    /// Flag that sets the setting; `None` if there is none.
    pub(super) flag: Option<String>,
    /// Type of the field; empty for a flag that is no setting.
    pub(super) rust: String,
    pub(super) values: String,
    pub(super) bounds: Option<Bounds>,
    pub(super) default: String,
    pub(super) docs: String,
    /// Text of a file in which the setting can be set.
    pub(super) file: String,
}

/// Bounds of a setting or flag, parsed from the error that refuses a value beyond them; `unit` may
/// be empty.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Bounds {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) unit: String,
}

/// A field of a type of settings, as its source has it.
#[derive(Debug)]
struct Field {
    key: String,
    docs: String,
    rust: String,
}

/// Returns all settings of a file.
pub(super) fn rows(file: &File) -> Vec<Row> {
    let command = clap_command(&[file.command]);
    let mut rows = Vec::new();
    for part in file.parts {
        let texts = (file.bases)().into_iter().map(|base| format!("{base}\n{}", part.with));
        let texts: Vec<String> = texts.collect();
        let fields = fields(part.source, part.name);
        let path = |key: &str| match part.at {
            "" => key.to_owned(),
            at => format!("{at}.{key}"),
        };
        let try_with = |text: &str, key: &str, value: Value| {
            let mut table: Table = text.parse().unwrap();
            put(&mut table, &path(key), value);
            (file.check)(&table.to_string()).map_err(|error| format!("{error:#}"))
        };
        for text in &texts {
            let valid = (file.check)(text).map(|_| ());
            assert!(valid.is_ok(), "{} {}: {valid:?}", file.command, part.at);
        }
        let unknown = try_with(&texts[0], UNKNOWN, Value::Integer(1)).expect_err(part.at);
        let known = quoted(unknown.split_once("expected").expect(&unknown).1);
        let known: Vec<_> = known.iter().filter(|name| !is_alias(name, &fields)).collect();
        let keys: Vec<_> = fields.iter().map(|field| &field.key).collect();
        assert_eq!(keys, known, "{}: fields of {} and serde's", file.command, part.name);
        for Field { key, docs, rust } in fields {
            let name = path(&key);
            // A table's settings follow, each with its own line.
            if file.parts.iter().any(|part| part.at == name) && !rust.starts_with("Vec<")
                || (name == "transport" && file.command == "operator")
            {
                continue;
            }
            let is_foreign = |text: &&String| {
                let tried = try_with(text, &key, Value::Integer(1));
                tried.is_err_and(|error| error.contains("is no setting of"))
            };
            let text = texts.iter().find(|text| !is_foreign(text)).expect("a file that has it");
            let (values, bounds) = values(&key, &rust, &|key, value| try_with(text, key, value));
            let flag = command.get_arguments().find(|argument| is_flag_of(argument, &name));
            let default = default(file, text, &name, flag);
            let unit = bounds.as_ref().map_or("", |bounds| &bounds.unit);
            let docs = short(&docs, unit);
            let file = text.clone();
            let flag = flag.and_then(clap::Arg::get_long).map(|long| format!("--{long}"));
            rows.push(Row { name, flag, rust, values, bounds, default, docs, file });
        }
    }
    rows
}

/// Returns what the column of values says of a setting, and its bounds.
fn values(
    key: &str,
    rust: &str,
    try_with: &impl Fn(&str, Value) -> Result<Table, String>,
) -> (String, Option<Bounds>) {
    let refused = |value: Value| try_with(key, value).err();
    if let Some(error) = refused(Value::String("?".into()))
        && error.contains("unknown variant")
    {
        let choices = quoted(error.rsplit_once("expected").unwrap().1);
        let choices: Vec<_> = choices.iter().map(|choice| format!("`{choice}`")).collect();
        return (choices.join(", "), None);
    }
    if is_number(rust) {
        let far = [9_000_000_000_000_000, 4_000_000_000, 255, -255].map(Value::Integer);
        let far = far.into_iter().chain([Value::Array(vec![Value::Integer(1 << 50); 2])]);
        let error = far.filter_map(refused).find(|error| error.contains("must be "));
        return match error.as_deref().map(|error| (error, bounds_in(key, error))) {
            Some((_, Some(bounds))) => (bounds.text(), Some(bounds)),
            Some((error, None)) => (error.rsplit_once("must be ").unwrap().1.to_owned(), None),
            None => (NUMBER.to_owned(), None),
        };
    }
    let row = |size| sized(key, rust, size);
    let sizes = [300, 257, 17, 9, 5].map(|size| refused(row(size)));
    let bounds = sizes.into_iter().flatten().find_map(|error| bounds_in(key, &error));
    let kind = kind(rust);
    match bounds {
        Some(bounds) => (format!("{kind}, {}", bounds.text()), Some(bounds)),
        None => (kind, None),
    }
}

impl Bounds {
    pub(super) fn text(&self) -> String {
        format!("{} to {} {}", self.min, self.max, self.unit).trim_end().to_owned()
    }
}

/// Returns the bounds that an error states for a setting.
fn bounds_in(key: &str, error: &str) -> Option<Bounds> {
    let is_named =
        |line: &&str| line.contains(&format!("{key} = ")) || line.contains(&format!("{key} has "));
    error.lines().filter(is_named).find_map(|line| {
        let (_, told) = line.rsplit_once("must be ")?;
        let (min, rest) = told.split_once(" to ")?;
        let (max, unit) = rest.split_once(' ').unwrap_or((rest, ""));
        Some(Bounds { min: min.parse().ok()?, max: max.parse().ok()?, unit: unit.to_owned() })
    })
}

/// Returns the default of a setting in Markdown: `required` if a file without it is invalid, `none`
/// if it has no default.
fn default(file: &File, text: &str, name: &str, flag: Option<&clap::Arg>) -> String {
    let mut table: Table = text.parse().unwrap();
    take(&mut table, name);
    let Ok(all) = (file.check)(&table.to_string()) else { return "required".into() };
    let shown = get(&all, name).map(shown).unwrap_or_default();
    let in_help = || {
        let help = help(flag?);
        let (_, told) = help.split_once("[default: ")?;
        Some(told.trim_end_matches(']').to_owned())
    };
    match shown.as_str() {
        "" => in_help().unwrap_or_else(|| "none".into()),
        _ => shown,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => String::new(),
        Value::String(text) => format!("`{text}`"),
        // A number of 32 bits has more digits than were written.
        Value::Float(number) => (*number as f32).to_string(),
        Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Table(_) => String::new(),
        Value::Integer(_) | Value::Boolean(_) | Value::Datetime(_) => value.to_string(),
    }
}

/// Returns the fields of a type, with the first sentence of their docs.
fn fields(source: &str, name: &str) -> Vec<Field> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(source);
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = format!("struct {name} {{");
    let lines = text.lines().skip_while(|line| !line.ends_with(&begin)).skip(1);
    let (mut fields, mut docs, mut renamed, mut is_skipped) =
        (Vec::new(), String::new(), None, false);
    for line in lines.take_while(|line| *line != "}").map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push_str(doc);
        } else if line.starts_with("#[") {
            is_skipped |= line.starts_with("#[serde(skip)]");
            let name = line.split_once("rename = \"").and_then(|(_, name)| name.split_once('"'));
            renamed = name.map(|(name, _)| name.to_owned()).or(renamed);
        } else if let Some((field, rust)) = line.trim_end_matches(',').split_once(": ") {
            let key = field.rsplit(' ').next().unwrap_or(field).to_owned();
            let key = renamed.take().unwrap_or(key);
            let docs = std::mem::take(&mut docs);
            if !std::mem::take(&mut is_skipped) {
                fields.push(Field { key, docs, rust: rust.to_owned() });
            }
        }
    }
    assert!(!fields.is_empty(), "{source} has no {name}");
    fields
}

/// Returns whether a name known to serde is another name of a list.
fn is_alias(name: &str, fields: &[Field]) -> bool {
    let is_field = |name: &str| fields.iter().any(|field| field.key == name);
    !is_field(name) && is_field(&format!("{name}s"))
}

/// Returns the first sentence, without unit, default and links, which other columns have.
pub(super) fn short(docs: &str, unit: &str) -> String {
    let docs = docs.split_once("[default: ").map_or(docs, |(docs, _)| docs).trim();
    let sentence = docs.split_once(". ").map_or(docs, |(sentence, _)| sentence);
    let sentence = sentence.split_once(" ([`").map_or(sentence, |(sentence, _)| sentence);
    let sentence = sentence.replace(", if any", "").replace(", if there is one", "");
    let is_told = |clause: &&str| !UNSET.iter().any(|words| clause.contains(words));
    let bare = sentence.split("; ").filter(is_told).collect::<Vec<_>>().join("; ");
    let mut bare = format!("{}.", bare.trim().trim_end_matches('.'));
    for before in [", in ", " in ", ", "].iter().filter(|_| !unit.is_empty()) {
        for after in [',', ';', ':', '.'] {
            bare = bare.replace(&format!("{before}{unit}{after}"), &after.to_string());
        }
    }
    bare.trim_end_matches('.').to_owned()
}

pub(super) fn is_real(rust: &str) -> bool {
    rust.contains("f64") || rust.contains("f32")
}

pub(super) fn is_number(rust: &str) -> bool {
    let rust = plain(rust);
    let numbers = ["u8", "u16", "u32", "u64", "usize", "i32", "f32", "f64", "[f64; 2]"];
    numbers.contains(&rust) || ["Duration", "Bitrate", "ByteCount"].contains(&rust)
}

/// Returns the type without `Option`.
fn plain(rust: &str) -> &str {
    rust.strip_prefix("Option<").and_then(|rust| rust.strip_suffix('>')).unwrap_or(rust)
}

/// Returns the name that the page has for values of a type.
fn kind(rust: &str) -> String {
    let rust = plain(rust);
    if let Some(of) = rust.strip_prefix("Vec<").and_then(|of| of.strip_suffix('>')) {
        return if kind(of) == "table" { "tables".into() } else { format!("list of {}", kind(of)) };
    }
    let kind = match rust {
        "bool" => "`true`, `false`",
        "String" | "PublicKey" => "text",
        "PathBuf" => "path",
        "SocketAddr" => "IP:port",
        "IpAddr" => "IP",
        "Address" => "path or IP:port",
        "CameraAddress" => "path or unix:path",
        "Local" => "interface or IP:port",
        _ => "table",
    };
    kind.to_owned()
}

/// Returns a value of a row's type: a number, or a text or list of that size.
pub(super) fn value(row: &Row, number: f64) -> Value {
    match is_number(&row.rust) {
        true if row.rust == "[f64; 2]" => Value::Array(vec![Value::Float(number); 2]),
        true if is_real(&row.rust) => Value::Float(number),
        true => Value::Integer(number as i64),
        false => sized(leaf(&row.name), &row.rust, number as usize),
    }
}

/// Returns a text, a list or a table of that size.
fn sized(key: &str, rust: &str, size: usize) -> Value {
    let numbered = |at: usize| Identity::from_seed(&[at as u8; 32]).public().to_string();
    let entry = |at: usize| -> Value {
        let text = match key {
            "topics" => format!("topic = 't{at}'\nlisten = '/t{at}'\nrate_cap_kbps = 1"),
            "relays" => format!("key = '{}'\naddresses = ['192.0.2.1:{}']", numbered(at), at + 1),
            "links" => format!("name = 'l{at}'\npreset = 'lan'"),
            "common" => format!("name = 'c{at}'"),
            _ => return Value::String(format!("192.0.2.1:{}", at + 1)),
        };
        Value::Table(text.parse().unwrap())
    };
    match plain(rust) {
        list if list.starts_with("Vec<") => Value::Array((0..size).map(entry).collect()),
        map if map.starts_with("BTreeMap<") => {
            let entry = |at: usize| {
                let mut seed = [0; 32];
                seed[..8].copy_from_slice(&(at as u64).to_le_bytes());
                (format!("n{at}"), Value::String(Identity::from_seed(&seed).public().to_string()))
            };
            Value::Table((0..size).map(entry).collect())
        }
        _ => Value::String("x".repeat(size)),
    }
}

/// Returns whether a file sets a number: one that is NaN is unset.
pub(super) fn has(table: &Table, name: &str) -> bool {
    get(table, name).is_some_and(|value| value.as_float().is_none_or(|number| !number.is_nan()))
}

/// Returns the table that holds a setting, and the setting's own name.
fn holder<'a>(table: &'a mut Table, name: &'a str) -> Option<(&'a mut Table, &'a str)> {
    let Some((first, rest)) = name.split_once('.') else { return Some((table, name)) };
    let within = match table.get_mut(first)? {
        Value::Array(list) => list.first_mut()?,
        other => other,
    };
    holder(within.as_table_mut()?, rest)
}

pub(super) fn put(table: &mut Table, name: &str, value: Value) {
    let (table, key) = holder(table, name).expect("the text has the table");
    table.insert(key.to_owned(), value);
}

fn take(table: &mut Table, name: &str) {
    if let Some((table, key)) = holder(table, name) {
        table.remove(key);
    }
}

fn get<'a>(table: &'a Table, name: &str) -> Option<&'a Value> {
    let mut names = name.split('.');
    let first = table.get(names.next()?)?;
    names.try_fold(first, |value, name| match value {
        Value::Array(list) => list.first()?.get(name),
        other => other.get(name),
    })
}

pub(super) fn leaf(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

const UNKNOWN: &str = "no_such_setting";
/// Words that mark a clause on what applies if a setting is not given; the clause is left out,
/// because the column of defaults says that.
const UNSET: [&str; 4] = ["if unset", "not given", "if empty", "`None`"];
