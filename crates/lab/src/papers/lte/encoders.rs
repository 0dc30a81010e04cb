//! Strip encoders at several bitrates: the rate for a quality, and the processor load.

use anyhow::Result;
use tautline_units::Bitrate;
use tautline_video::Backend;
use tautline_video::avc::LossRecovery;

use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run};
use crate::machine;
use crate::pictures::footage::clips;
use crate::pictures::vmaf;
use crate::sweeps::encoders::{Comparison, Scene, Terms, Trial};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-encoders",
    title: "Encoders by strips: quality at rate, time and size",
    source: "[LTE] IV",
    isolation: Isolation::Alone,
    mutation: Mutation::Named("quantizer-floor"),
    run,
};

/// Codes every footage with every backend of this build.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let mut findings = Findings::default();
    if !vmaf::is_installed() {
        findings.notes.push("Skipped: VMAF, which this ffmpeg lacks (libvmaf).".to_owned());
    }
    let terms = terms(run);
    let scenes = scenes(run, &mut findings.notes);
    let mut comparisons = Vec::new();
    for (number, scene) in scenes.iter().enumerate() {
        run.progress(number as u64, scenes.len() as u64, &scene.name());
        let comparison = Comparison::of(run, scene, &terms)?;
        let is_hd = matches!(scene, Scene::Simulated | Scene::Clip(_));
        findings.plots.push(comparison.plot());
        findings.rows.extend(comparison.backends().iter().flat_map(|backend| {
            let subject = Subject { comparison: &comparison, backend: *backend, is_hd };
            subject.rows(run, &terms)
        }));
        comparisons.push(comparison);
    }
    findings.tables.push(Comparison::table(&comparisons));
    findings.notes.extend(notes(comparisons.first().and_then(Comparison::anchor)));
    Ok(Outcome::Measured(findings))
}

fn terms(run: &Run<'_>) -> Terms {
    if !run.quick {
        return Terms::default();
    }
    // A twelfth of the pixels.
    let bitrates = [500, 1_000, 1_500].map(Bitrate::from_kbps).to_vec();
    Terms { pictures: 12, bitrates, quantizers: vec![28, 36], repeats: 1, ..Terms::default() }
}

fn scenes(run: &Run<'_>, notes: &mut Vec<String>) -> Vec<Scene> {
    if run.quick {
        return vec![Scene::SimulatedSmall];
    }
    let (clips, none) = clips();
    notes.extend(none);
    let simulated = [Scene::Simulated, Scene::SimulatedFullHd];
    // One clip: `tautline lab encoders` accepts any.
    simulated.into_iter().chain(clips.into_iter().next_back().map(Scene::Clip)).collect()
}

/// One encoder in one comparison.
struct Subject<'a> {
    comparison: &'a Comparison,
    backend: Backend,
    is_hd: bool,
}

impl Subject<'_> {
    fn rows(&self, run: &Run<'_>, terms: &Terms) -> Vec<Row> {
        let is_own = self.backend == Backend::Avc(LossRecovery::Idr);
        let mut rows = self.excess(is_own);
        for &bitrate in &terms.bitrates {
            let Some(trial) = self.comparison.held(self.backend, bitrate) else { continue };
            let is_asked = ASKED.contains(&bitrate);
            rows.extend(self.sizes(run, trial, is_own && is_asked));
            if is_asked || !self.is_hd {
                rows.extend(self.times(trial, is_own && is_asked && self.is_hd));
            }
            if is_own && is_asked {
                rows.extend(self.ratios(trial, bitrate));
            }
        }
        rows
    }

    fn named(&self, what: &str) -> String {
        format!("{what}, {}, {}", self.backend, self.comparison.footage)
    }

    /// Returns a row with the BD-rate against the anchor for each way of coding: held to rates, and
    /// at quantizers. None for the anchor itself, or without an anchor. Judged for our own encoder
    /// in HD, in a build with x264.
    fn excess(&self, is_own: bool) -> Vec<Row> {
        let Some(anchor) = self.comparison.anchor().filter(|anchor| *anchor != self.backend) else {
            return Vec::new();
        };
        let held = ["held to rates", "at quantizers"];
        let excesses = held.into_iter().zip(self.comparison.excess(self.backend));
        let row = |(how, excess): (&str, Option<f64>)| {
            let what = self.named(&format!("BD-rate against {anchor} {how}"));
            let row = Row::new(what, "%", excess? * 100.0);
            Some(match is_own && self.is_hd && cfg!(feature = "x264") {
                true => row.asked(10.0).at_most(1.0).because("what was asked of this encoder"),
                false => row,
            })
        };
        excesses.filter_map(row).collect()
    }

    fn sizes(&self, run: &Run<'_>, trial: &Trial, is_judged: bool) -> Vec<Row> {
        let at = at(trial);
        let mean =
            Row::new(self.named(&format!("mean size over budget {at}")), "", trial.mean_size());
        let p99 =
            Row::new(self.named(&format!("p99 of size over budget {at}")), "", trial.size_at(0.99));
        if is_judged {
            let asked = "what was asked of this encoder";
            return vec![
                mean.asked(0.9).at_least(1.0).because(asked),
                p99.asked(1.05).at_most(1.0).because(asked),
            ];
        }
        let mean = mean.reference(1.0).within(run.choose(0.25, 0.3));
        vec![
            mean.because("set by hand: whole steps of a quantizer, and what is paid back later"),
            p99,
        ]
    }

    fn times(&self, trial: &Trial, is_judged: bool) -> [Row; 3] {
        let at = at(trial);
        let rows = [
            (format!("a strip {at}, p50"), "ms", trial.encoding_at(0.5), 1.2),
            (format!("a strip {at}, p99"), "ms", trial.encoding_at(0.99), 2.0),
            (format!("load of a core {at}"), "%", trial.load * 100.0, 45.0),
        ];
        rows.map(|(what, unit, measured, asked)| {
            let row = Row::new(self.named(&what), unit, measured).clocked();
            match is_judged {
                true => row.asked(asked).at_most(1.0).because("what was asked of this encoder"),
                false => row,
            }
        })
    }

    /// Returns rows with the median time of a strip relative to that of each other encoder held to
    /// `bitrate` in the same run: ratios vary less between machines.
    fn ratios(&self, trial: &Trial, bitrate: Bitrate) -> Vec<Row> {
        let others = self.comparison.backends().into_iter().filter(|other| *other != self.backend);
        let ratio = |other: Backend| {
            let other_trial = self.comparison.held(other, bitrate)?;
            let what = format!("time a strip {} over that of {other}, p50", at(trial));
            let ratio = trial.encoding_at(0.5) / other_trial.encoding_at(0.5);
            Some(Row::new(self.named(&what), "", ratio))
        };
        others.filter_map(ratio).collect()
    }
}

fn at(trial: &Trial) -> String {
    let mbps = trial.wanted.map_or(f64::NAN, |bitrate| bitrate.as_f64() / 1e6);
    format!("at {mbps} Mbit/s")
}

fn notes(anchor: Option<Backend>) -> Vec<String> {
    let mut notes = vec![
        format!(
            "Processor: {}. Times are of the encoding thread's own processor time, the least of two \
             runs for each slice, so that what others do on the machine counts little.",
            machine::processor()
        ),
        "Six strips, each by an encoder of its own; quality is of whole pictures as decoded, against \
         those captured. Held to a rate, our own shares each picture's budget among its strips by \
         their need and keeps every slice within its share; the others have equal shares, one \
         quantizer a slice by the same model, and pay back later what they took too much. Sizes leave \
         out each strip's first, an IDR. Footage has a camera's noise of 40 dB; clips are brought to \
         60 pictures a second by interpolation along the motion."
            .to_owned(),
    ];
    if let Some(anchor) = anchor.filter(|_| !cfg!(feature = "x264")) {
        notes.push(format!(
            "Built without x264: BD-rates are against {anchor}, and none is judged. With \
             `--features x264` x264 superfast is the anchor."
        ));
    }
    notes
}

/// Bitrates at which times and sizes have requirements.
const ASKED: &[Bitrate] = &[Bitrate::from_mbps(8), Bitrate::from_mbps(12)];
