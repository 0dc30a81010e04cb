//! Printed output: the tables, the ratios, the bars and their verdicts.

use std::fmt::Write;

use anyhow::Result;
use tautline_fec::kernel::Kernel;

use crate::bars;
use crate::block::{self, Code, Family, Row, Shape};
use crate::limit;
use crate::measure::{Effort, Timing};
use crate::stream::outcome::{self, Outcome};
use crate::stream::{self, Setting};
use crate::table::{Table, figure};

/// The content of the CSV file so far, and whether the bars hold; tables are printed meanwhile.
pub(crate) struct Report {
    csv: String,
    all_hold: bool,
}

impl Report {
    pub(crate) fn new() -> Report {
        let csv = "table,operation,sources,repairs,packet_bytes,contender,best_us,median_us\n";
        Report { csv: csv.to_owned(), all_hold: true }
    }

    pub(crate) fn csv(&self) -> &str {
        &self.csv
    }

    /// Returns whether every bar so far holds.
    pub(crate) fn all_hold(&self) -> bool {
        self.all_hold
    }

    /// Prints the machine and the method of the measurement.
    pub(crate) fn header(&self, effort: Effort) {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let cpu = cpu.map_or("an unnamed CPU", |(_, name)| name);
        let kernels: Vec<&str> = Kernel::all().map(Kernel::name).collect();
        println!("One core of: {cpu}. Tautline's kernels here: {}.", kernels.join(", "));
        println!(
            "Best of {} rounds, contenders in turns, data in the second-level cache, every result \
             verified.\n",
            effort.rounds
        );
        if !limit::has_gfni() {
            println!("This CPU has no GFNI: the bars were not set for it.\n");
        }
    }

    /// Measures and judges the blocks of 100 packets.
    ///
    /// # Errors
    /// If a code produces wrong bytes.
    pub(crate) fn blocks(
        &mut self,
        codes: &[Box<dyn Code>],
        shapes: &[Shape],
        effort: Effort,
    ) -> Result<()> {
        let rows = self.measured("block", codes, shapes, effort)?;
        for operation in Operation::BOTH {
            let mut table = Table::new(format!(
                "Blocks of {} packets of {} bytes: {}, Mbit/s of source; M repair packets, M lost",
                shapes[0].sources,
                shapes[0].packet_bytes,
                operation.name()
            ));
            table.row("", rows.iter().map(|row| format!("M={}", row.shape.repairs)));
            let mbit_per_second =
                |shape: Shape, us| format!("{:.0}", 8.0 * shape.source_bytes() as f64 / us);
            contender_rows(&mut table, codes, &rows, operation, mbit_per_second);
            let most = |row: &Row| Some(mbit_per_second(row.shape, best(&row.ceilings)?.best_us()));
            if let (Operation::Encode, Some(most)) =
                (operation, rows.iter().map(most).collect::<Option<Vec<String>>>())
            {
                table.row("the CPU's most with a matrix", most);
            }
            let ratios = Ratios::of(codes, &rows, operation);
            table.row("Tautline / ISA-L", shown(&ratios.to_isal));
            table.row("  median of the rounds", shown(&ratios.to_isal_median));
            if operation == Operation::Encode {
                let bars = rows.iter().map(|row| bars::encode_to_isal(row.shape));
                self.judge(&mut table, &ratios.to_isal, bars);
            }
            table.row("Tautline / best crate", shown(&ratios.to_crates));
            if operation == Operation::Decode {
                let bars = rows.iter().map(|row| bars::decode_to_crates(row.shape));
                self.judge(&mut table, &ratios.to_crates, bars);
                table.row("Tautline / best peer", shown(&ratios.to_all));
                self.judge(&mut table, &ratios.to_all, rows.iter().map(|_| bars::TO_ANY_PEER));
            }
            println!("{table}");
        }
        Ok(())
    }

    /// Measures and judges blocks of the sizes of video slices.
    ///
    /// # Errors
    /// If a code produces wrong bytes.
    pub(crate) fn slices(
        &mut self,
        codes: &[Box<dyn Code>],
        shift: usize,
        effort: Effort,
    ) -> Result<()> {
        let shape = |(sources, repairs, _)| Shape { sources, repairs, packet_bytes: 1200, shift };
        let rows = self.measured("slice", codes, &bars::SLICES.map(shape), effort)?;
        for operation in Operation::BOTH {
            let mut table = Table::new(format!(
                "Blocks of a slice, packets of 1200 bytes: {}, us; as many lost as there are repairs",
                operation.name()
            ));
            let shapes = rows.iter().map(|row| row.shape);
            table.row("", shapes.map(|shape| format!("{}+{}", shape.sources, shape.repairs)));
            contender_rows(&mut table, codes, &rows, operation, |_, us| figure(us));
            let ratios = Ratios::of(codes, &rows, operation);
            table.row("best peer / Tautline", shown(&ratios.to_all));
            self.judge(&mut table, &ratios.to_all, rows.iter().map(|_| bars::TO_ANY_PEER));
            if operation == Operation::Decode {
                let bars = bars::SLICES.map(|(_, _, us)| figure(us));
                table.row("bar on a Zen 5 of 4 GHz, us", bars);
                let headroom: Vec<Option<f64>> = rows
                    .iter()
                    .zip(bars::SLICES)
                    .map(|(row, (_, _, bar))| {
                        fastest(codes, &row.decode, Family::Tautline).map(|own| bar / own.best_us())
                    })
                    .collect();
                table.row("bar / Tautline", shown(&headroom));
                self.judge(&mut table, &headroom, rows.iter().map(|_| Some(1.0)));
            }
            println!("{table}");
        }
        Ok(())
    }

    /// Measures how close the encoder comes to the CPU's ceiling.
    ///
    /// # Errors
    /// If the encoder produces wrong bytes.
    pub(crate) fn limit(
        &mut self,
        codes: &[Box<dyn Code>],
        shift: usize,
        effort: Effort,
    ) -> Result<()> {
        let shape = Shape { sources: 100, repairs: 10, packet_bytes: 1296, shift };
        let bytes = shape.source_bytes() * shape.repairs;
        let names = limit::ceilings(bytes).into_iter().map(|ceiling| ceiling.name);
        let (encoders, ceilings) = block::measure_encode(codes, shape, effort)?;

        let mut table = Table::new(format!(
            "Multiply-add in GF(2^8), GB/s of source times rows: {} packets of {} bytes, M={}",
            shape.sources, shape.packet_bytes, shape.repairs
        ));
        let speed = |timing: &Timing| figure(bytes as f64 / timing.best_us() / 1e3);
        for (name, timing) in names.zip(&ceilings) {
            table.row(name, [speed(timing)]);
            self.note("limit", "multiply-add", shape, name, timing);
        }
        for (code, timing) in codes.iter().zip(&encoders) {
            if let Some(timing) = timing {
                table.row(&code.name(), [speed(timing)]);
                self.note("limit", "encode", shape, &code.name(), timing);
            }
        }
        // The first is the matrix code on the kernel selected here: the others have other ceilings.
        let own = encoders.first().and_then(Option::as_ref);
        if let (Some(ceiling), Some(own), Family::Tautline) =
            (best(&ceilings), own, codes[0].family())
        {
            let share = ceiling.best_us() / own.best_us();
            table.row(&format!("{} / the CPU's most", codes[0].name()), [figure(share)]);
            self.judge(&mut table, &[Some(share)], [Some(bars::SHARE_OF_CEILING)]);
            table.row("  median of the rounds", [figure(own.median_ratio_to(ceiling))]);
        }
        println!("{table}");
        Ok(())
    }

    /// Measures and judges the streaming codes.
    ///
    /// # Errors
    /// If a code produces wrong bytes, or loses packets.
    pub(crate) fn streams(
        &mut self,
        wanted: impl Fn(&str, Family) -> bool,
        effort: Effort,
    ) -> Result<()> {
        let mut columns = Vec::new();
        for setting in stream::SETTINGS {
            let outcomes = outcome::measure(setting, &wanted, effort)?;
            for outcome in &outcomes {
                self.note_stream("encode", setting, &outcome.name, Some(&outcome.encode));
                self.note_stream("decode", setting, &outcome.name, outcome.decode.as_ref());
            }
            columns.push(outcomes);
        }
        for operation in Operation::BOTH {
            self.stream_table(operation, &columns);
        }
        Ok(())
    }

    fn stream_table(&mut self, operation: Operation, columns: &[Vec<Outcome>]) {
        let mut table = Table::new(format!(
            "Streams of {} bytes a packet, feedback after {} slots: {}, us a source packet",
            stream::SYMBOL_BYTES,
            stream::FEEDBACK_SLOTS,
            operation.name()
        ));
        table.row("loss", stream::SETTINGS.map(|setting| format!("{} %", setting.loss_percent)));
        let sources = stream::SETTINGS.map(|setting| setting.sources_per_repair.to_string());
        table.row("source packets a repair packet", sources);
        for position in 0..columns[0].len() {
            let timings = columns.iter().map(|outcomes| operation.of(&outcomes[position]));
            if let Some(timings) = timings.collect::<Option<Vec<&Timing>>>() {
                let cells = timings.iter().map(|timing| figure(timing.best_us()));
                table.row(&columns[0][position].name, cells);
            }
        }
        let fastest = |family| -> Vec<Option<f64>> {
            let of_column = |outcomes: &Vec<Outcome>| {
                let outcomes = outcomes.iter().filter(|outcome| outcome.family == family);
                best(outcomes.filter_map(|outcome| operation.of(outcome))).map(Timing::best_us)
            };
            columns.iter().map(of_column).collect()
        };
        let (own, peers) = (fastest(Family::Tautline), fastest(Family::Crate));
        let ratio = |(own, peer): (&Option<f64>, &Option<f64>)| Some((*peer)? / (*own)?);
        let ratios: Vec<Option<f64>> = own.iter().zip(&peers).map(ratio).collect();
        table.row("best peer / Tautline", shown(&ratios));
        self.judge(&mut table, &ratios, columns.iter().map(|_| bars::TO_ANY_PEER));
        let bars = bars::STREAMS.map(|(encode, decode)| match operation {
            Operation::Encode => encode,
            Operation::Decode => decode,
        });
        table.row("bar on a Zen 5 of 4 GHz, us", bars.map(figure));
        let headroom: Vec<Option<f64>> =
            own.iter().zip(bars).map(|(own, bar)| own.map(|own| bar / own)).collect();
        table.row("bar / Tautline", shown(&headroom));
        self.judge(&mut table, &headroom, columns.iter().map(|_| Some(1.0)));
        let speed = |us: f64| 8.0 * stream::SYMBOL_BYTES as f64 / us;
        let speeds: Vec<Option<f64>> = own.iter().map(|own| own.map(speed)).collect();
        table.row("Tautline, Mbit/s", shown(&speeds));
        let bar = Some(bars::STREAM_MBIT_PER_SECOND);
        self.judge(&mut table, &speeds, columns.iter().map(|_| bar));
        println!("{table}");
    }

    fn note_stream(
        &mut self,
        operation: &str,
        setting: Setting,
        name: &str,
        timing: Option<&Timing>,
    ) {
        if let Some(timing) = timing {
            let Setting { loss_percent, sources_per_repair } = setting;
            let table = format!("stream at {loss_percent} % loss");
            let shape = Shape {
                sources: sources_per_repair as usize,
                repairs: 1,
                packet_bytes: stream::SYMBOL_BYTES,
                shift: 0,
            };
            self.note(&table, operation, shape, name, timing);
        }
    }

    fn measured(
        &mut self,
        table: &str,
        codes: &[Box<dyn Code>],
        shapes: &[Shape],
        effort: Effort,
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for &shape in shapes {
            let row = block::measure(codes, shape, effort)?;
            for operation in Operation::BOTH {
                for (code, timing) in codes.iter().zip(operation.timings(&row)) {
                    if let Some(timing) = timing {
                        self.note(table, operation.name(), shape, &code.name(), timing);
                    }
                }
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Adds a line to the content of the CSV file.
    fn note(&mut self, table: &str, operation: &str, shape: Shape, name: &str, timing: &Timing) {
        let Shape { sources, repairs, packet_bytes, .. } = shape;
        let (best, median) = (timing.best_us(), timing.median_us());
        writeln!(
            self.csv,
            "{table},{operation},{sources},{repairs},{packet_bytes},\"{name}\",{best:.4},{median:.4}"
        )
        .expect("a string takes everything");
    }

    /// Adds a row with the bars and one with their verdicts. A missing bar or ratio has no verdict.
    fn judge(
        &mut self,
        table: &mut Table,
        ratios: &[Option<f64>],
        bars: impl IntoIterator<Item = Option<f64>>,
    ) {
        let bars: Vec<Option<f64>> = bars.into_iter().collect();
        let or_nothing = |bar: &Option<f64>| bar.map_or(String::new(), figure_of_bar);
        table.row("  bar", bars.iter().map(or_nothing));
        let verdicts = ratios.iter().zip(&bars).map(|pair| match pair {
            (Some(ratio), Some(bar)) if ratio >= bar => "holds",
            (Some(_), Some(_)) => "MISSED",
            (None, _) | (_, None) => "",
        });
        let verdicts: Vec<&str> = verdicts.collect();
        self.all_hold &= !verdicts.contains(&"MISSED");
        table.row("  verdict", verdicts.into_iter().map(str::to_owned));
    }
}

/// The two operations of a code, each with its own table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Encode,
    Decode,
}

impl Operation {
    const BOTH: [Operation; 2] = [Operation::Encode, Operation::Decode];

    fn name(self) -> &'static str {
        match self {
            Operation::Encode => "encode",
            Operation::Decode => "decode",
        }
    }

    fn of(self, outcome: &Outcome) -> Option<&Timing> {
        match self {
            Operation::Encode => Some(&outcome.encode),
            Operation::Decode => outcome.decode.as_ref(),
        }
    }

    fn timings(self, row: &Row) -> &[Option<Timing>] {
        match self {
            Operation::Encode => &row.encode,
            Operation::Decode => &row.decode,
        }
    }
}

/// Speedup of our code relative to the best of each group of others, by row; `None` where one of
/// the two is missing.
struct Ratios {
    to_isal: Vec<Option<f64>>,
    /// Speedup relative to ISA-L as the median of the ratios in each round, instead of the ratio of
    /// the best times.
    to_isal_median: Vec<Option<f64>>,
    to_crates: Vec<Option<f64>>,
    to_all: Vec<Option<f64>>,
}

impl Ratios {
    fn of(codes: &[Box<dyn Code>], rows: &[Row], operation: Operation) -> Ratios {
        let pairs = |family| {
            rows.iter().map(move |row| {
                let own = fastest(codes, operation.timings(row), Family::Tautline)?;
                Some((own, fastest(codes, operation.timings(row), family)?))
            })
        };
        let to = |family| -> Vec<Option<f64>> {
            let ratio = |(own, other): (&Timing, &Timing)| other.best_us() / own.best_us();
            pairs(family).map(|pair| pair.map(ratio)).collect()
        };
        let (to_isal, to_crates) = (to(Family::Isal), to(Family::Crate));
        let median = |(own, other): (&Timing, &Timing)| own.median_ratio_to(other);
        let to_isal_median = pairs(Family::Isal).map(|pair| pair.map(median)).collect();
        let least = |(&isal, &best): (&Option<f64>, &Option<f64>)| match (isal, best) {
            (Some(isal), Some(best)) => Some(isal.min(best)),
            (isal, best) => isal.or(best),
        };
        let to_all = to_isal.iter().zip(&to_crates).map(least).collect();
        Ratios { to_isal, to_isal_median, to_crates, to_all }
    }
}

/// Returns the best timing in a family, if one of its codes was measured.
fn fastest<'a>(
    codes: &[Box<dyn Code>],
    timings: &'a [Option<Timing>],
    family: Family,
) -> Option<&'a Timing> {
    let of_family = codes.iter().zip(timings).filter(|(code, _)| code.family() == family);
    best(of_family.filter_map(|(_, timing)| timing.as_ref()))
}

fn best<'a>(timings: impl IntoIterator<Item = &'a Timing>) -> Option<&'a Timing> {
    timings.into_iter().min_by(|a, b| a.best_us().total_cmp(&b.best_us()))
}

fn contender_rows(
    table: &mut Table,
    codes: &[Box<dyn Code>],
    rows: &[Row],
    operation: Operation,
    show: impl Fn(Shape, f64) -> String,
) {
    for (position, code) in codes.iter().enumerate() {
        let cell = |row: &Row| {
            let timing = operation.timings(row)[position].as_ref();
            timing.map(|timing| show(row.shape, timing.best_us()))
        };
        let cells: Vec<Option<String>> = rows.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let or_nothing = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
            table.row(&code.name(), cells.into_iter().map(or_nothing));
        }
    }
}

fn figure_of_bar(bar: f64) -> String {
    if bar < 100.0 { format!("{bar:.1}") } else { format!("{bar:.0}") }
}

fn shown(ratios: &[Option<f64>]) -> impl Iterator<Item = String> {
    ratios.iter().map(|ratio| ratio.map_or_else(|| "-".to_owned(), figure))
}
