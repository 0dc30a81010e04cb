//! Consistency of the lists in docs/papers.md, which have all results of the papers, with the
//! registry.

use tautline_lab::experiment::Experiment;
use tautline_lab::papers;

#[test]
fn the_lists_name_every_experiment_figure_and_table() {
    assert_eq!(faults(PAGE), Vec::<String>::new());
}

#[test]
fn an_experiment_that_no_row_names_is_a_fault() {
    for Experiment { key, .. } in papers::all() {
        let told = faults(&PAGE.replace(&format!("`{key}`"), "-"));
        assert!(told.iter().any(|fault| fault.starts_with(&format!("{key} is not"))), "{told:?}");
    }
}

#[test]
fn a_row_that_names_no_experiment_of_its_paper_is_a_fault() {
    for other in ["`lte-fig-99`", "`stream-fig-9`", "lte-fig-2", ""] {
        let told = faults(&PAGE.replacen("| `lte-fig-2` |", &format!("| {other} |"), 1));
        assert!(told.iter().any(|fault| fault.starts_with("[LTE] II: ")), "{other}: {told:?}");
    }
    let told = faults(&PAGE.replace("Not measured: a drawing", ""));
    assert!(told.contains(&"[LTE] Fig. 1: neither an experiment nor a reason".to_owned()));
    let told = faults(&PAGE.replace("`lte-cones` drives", "`lte-bones` drives"));
    assert!(told.contains(&"[LTE] Abstract: lte-bones is no experiment".to_owned()), "{told:?}");
}

#[test]
fn a_number_that_is_left_out_is_a_fault() {
    for (paper, places) in NUMBERED {
        for place in places.iter().flat_map(|places| places.all()) {
            let of_paper = PAGE.find(&format!("### {paper}\n")).map(|at| PAGE.split_at(at));
            let (before, after) = of_paper.expect("every paper has a list");
            let without = after.replacen(&format!("\n| {place} |"), "\n| VII |", 1);
            let told = faults(&format!("{before}{without}"));
            assert!(told.contains(&format!("{paper} has no row of {place}")), "{told:?}");
        }
    }
}

/// One row: a place in a paper, and the experiments that measure it.
struct Entry<'a> {
    paper: &'a str,
    place: &'a str,
    experiments: &'a str,
    words: &'a str,
}

impl Entry<'_> {
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.experiments.split(", ").filter_map(|word| word.strip_prefix('`')?.strip_suffix('`'))
    }

    fn names(&self, key: &str) -> bool {
        self.keys().any(|named| named == key)
    }

    /// Returns the fault of this row alone, if any.
    fn fault(&self) -> Option<String> {
        let named = self.keys().count();
        let said = self.experiments.split(", ").count();
        let stranger = self.keys().find(|key| {
            !papers::find(key).is_some_and(|experiment| experiment.source.starts_with(self.paper))
        });
        // Words in backquotes that look like an experiment's key.
        let quoted = self.words.split('`').skip(1).step_by(2).filter(|word| {
            let beginning = word.split_once('-').map(|(beginning, _)| beginning);
            papers::all().any(|experiment| experiment.key.split('-').next() == beginning)
        });
        let unknown = quoted.into_iter().find(|word| papers::find(word).is_none());
        let fault = match (stranger, unknown) {
            (Some(key), _) => format!("{key} is no experiment of that paper"),
            (None, Some(word)) => format!("{word} is no experiment"),
            (None, None) if self.experiments == "-" && self.words.is_empty() => {
                "neither an experiment nor a reason".to_owned()
            }
            (None, None) if self.experiments != "-" && named != said => {
                format!("{:?} is no list of experiments", self.experiments)
            }
            (None, None) => return None,
        };
        Some(format!("{} {}: {fault}", self.paper, self.place))
    }
}

/// All numbered items of one kind in a paper.
struct Numbered {
    kind: &'static str,
    count: usize,
    is_roman: bool,
}

impl Numbered {
    fn all(&self) -> impl Iterator<Item = String> {
        (1..=self.count).map(|number| match self.is_roman {
            true => format!("{} {}", self.kind, "I".repeat(number)),
            false => format!("{} {number}", self.kind),
        })
    }
}

/// Returns all faults of a page.
fn faults(page: &str) -> Vec<String> {
    let entries = entries(page);
    let mut faults: Vec<String> = entries.iter().filter_map(Entry::fault).collect();
    for Experiment { key, source, .. } in papers::all() {
        let (paper, rest) = source.split_once(' ').expect("a source is a paper and a place");
        for place in places(rest) {
            let is_its = |entry: &&Entry<'_>| entry.paper == paper && entry.place == place;
            if !entries.iter().filter(is_its).any(|entry| entry.names(key)) {
                faults.push(format!("{key} is not in a row of {paper} {place}"));
            }
        }
    }
    for (paper, numbered) in NUMBERED {
        for place in numbered.iter().flat_map(|numbered| numbered.all()) {
            if !entries.iter().any(|entry| entry.paper == *paper && entry.place == place) {
                faults.push(format!("{paper} has no row of {place}"));
            }
        }
    }
    faults
}

/// Returns the rows below the headings of papers.
fn entries(page: &str) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let mut paper = None;
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            paper = Some(heading);
        }
        let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix('|'));
        let (Some(paper), Some(cells)) = (paper, cells) else { continue };
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        let [place, _, experiments, words] = cells[..] else { panic!("not four cells: {line}") };
        if place != "place" {
            entries.push(Entry { paper, place, experiments, words });
        }
    }
    entries
}

/// Returns the places in a source: `Figs. 4 and 5` are two.
fn places(source: &str) -> Vec<String> {
    let one = |part: &str| match part.parse::<u32>() {
        Ok(number) if source.starts_with("Figs. ") => format!("Fig. {number}"),
        _ => part.to_owned(),
    };
    source.trim_start_matches("Figs. ").split(" and ").map(one).collect()
}

const fn numbered(kind: &'static str, count: usize) -> Numbered {
    Numbered { kind, count, is_roman: false }
}

const fn roman(kind: &'static str, count: usize) -> Numbered {
    Numbered { kind, count, is_roman: true }
}

/// Numbered items of the papers, starting at one.
const NUMBERED: &[(&str, &[Numbered])] = &[
    ("[LTE]", &[numbered("Fig.", 17), roman("Table", 2)]),
    ("[UGV]", &[numbered("Fig.", 6), numbered("Table", 2)]),
    ("[CAR]", &[numbered("Fig.", 5), numbered("Table", 3)]),
    (
        "[STREAM]",
        &[
            numbered("Fig.", 10),
            roman("Table", 1),
            numbered("Theorem", 4),
            numbered("Corollary", 1),
        ],
    ),
    ("[TIMING]", &[numbered("Fig.", 2), numbered("Table", 1)]),
];

const PAGE: &str = include_str!("../../../docs/papers.md");
