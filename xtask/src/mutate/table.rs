//! The final table.

use std::fmt::Write as _;

use super::list::Mutation;
use super::trial::Outcome;

/// One experiment under one mutation.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) experiment: &'a str,
    pub(super) mutation: &'a Mutation,
    pub(super) baseline: &'a Outcome,
    pub(super) mutated: &'a Outcome,
}

/// Returns the table's text: the change of each mutation, then the outcomes of each experiment,
/// unchanged and mutated.
pub(super) fn of(lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    for mutations in lines.chunk_by(|a, b| a.mutation.name == b.mutation.name) {
        let mutation = mutations[0].mutation;
        let Mutation { name, what, file, from, to, .. } = mutation;
        let place = mutation.place();
        let changed = match place == from {
            true => to.clone(),
            false => place.replacen(from.as_str(), &format!("({to})"), 1),
        };
        let _ = writeln!(text, "{name}: {what}\n  {file}\n  - {place}\n  + {changed}");
    }
    let key = lines.iter().map(|line| line.experiment.len()).max().unwrap_or(0);
    let name = lines.iter().map(|line| line.mutation.name.len()).max().unwrap_or(0);
    for Line { experiment, mutation, baseline, mutated } in lines {
        let _ = write!(text, "\n{experiment:key$}  {:name$}  ", mutation.name);
        let _ = write!(text, "{baseline} -> ");
        let _ = match mutated {
            Outcome::Out(rows) => write!(text, "{} rows out: {}", rows.len(), shown(rows)),
            Outcome::Within => write!(text, "WITHIN, not noticed"),
            Outcome::Failed(_) | Outcome::Skipped(_) => write!(text, "{mutated}"),
        };
    }
    text.push('\n');
    text
}

/// Returns the first [`SHOWN`] rows, and the number of the others if there are any.
fn shown(rows: &[String]) -> String {
    let first = rows[..rows.len().min(SHOWN)].join("; ");
    match rows.len().checked_sub(SHOWN) {
        None | Some(0) => first,
        Some(more) => format!("{first}; and {more} more"),
    }
}

const SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_detected_and_undetected_mutations() {
        let mutation = Mutation {
            name: "five".to_owned(),
            what: "four for five".to_owned(),
            file: "crates/fec/src/five.rs".to_owned(),
            place: Some("five = 5".to_owned()),
            from: "5".to_owned(),
            to: "4".to_owned(),
        };
        let rows: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        let (out, within) = (Outcome::Out(rows), Outcome::Within);
        let line = |experiment, mutated| Line {
            experiment,
            mutation: &mutation,
            baseline: &within,
            mutated,
        };
        let text = of(&[line("lte-fig-5", &out), line("lte-fig-60", &within)]);
        assert_eq!(
            text,
            "five: four for five\n  crates/fec/src/five.rs\n  - five = 5\n  + five = (4)\n\n\
             lte-fig-5   five  within -> 4 rows out: a; b; c; and 1 more\n\
             lte-fig-60  five  within -> WITHIN, not noticed\n"
        );
    }
}
