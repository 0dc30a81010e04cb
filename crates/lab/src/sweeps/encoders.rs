//! Strip encoders on the same footage: quality at rate, encoding time, and size relative to the
//! budget.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use tautline_units::Bitrate;
use tautline_video::{Backend, Layout};

use crate::experiment::{Run, Table};
use crate::pictures::coding::{self, Coding, Rate, mean, quantile};
use crate::pictures::footage::{Footage, Size};
use crate::pictures::vmaf;
use crate::plot::{Axis, Plot, Series};
use crate::quality::{Point, bd_rate};

/// Footage to code.
#[derive(Clone, Debug)]
pub enum Scene {
    /// The simulated camera at 1280x720 and 60 pictures per second.
    Simulated,
    /// The simulated camera at 1920x1088 and 30 pictures per second.
    SimulatedFullHd,
    /// The simulated camera at 352x192 and 60 pictures per second, for speed.
    SimulatedSmall,
    /// A video, scaled to 1280x720 and motion-interpolated to 60 pictures per second; needs ffmpeg.
    Clip(PathBuf),
}

/// Settings for coding the scenes.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Pictures per scene; at least two.
    pub pictures: usize,
    /// True to add camera noise of 40 dB, which coded clips have lost.
    pub noise: bool,
    /// Total bitrates at which every encoder is tested.
    pub bitrates: Vec<Bitrate>,
    /// Constant quantizers at which every encoder is tested.
    pub quantizers: Vec<u8>,
    /// Strips per picture.
    pub strips: usize,
    /// Number of runs at each bitrate, with the encoders in turn; the minimum time of each slice
    /// counts. There is always one run, and only one at a quantizer.
    pub repeats: usize,
}

/// Results for one scene.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The footage's name.
    pub footage: String,
    /// Results by encoder, the anchor of BD-rates first; for each the bitrates, then the
    /// quantizers.
    pub trials: Vec<Trial>,
}

/// Result of one footage with one encoder at one rate.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The encoder.
    pub backend: Backend,
    /// The target bitrate; `None` at a quantizer.
    pub wanted: Option<Bitrate>,
    /// The quantizer; `None` at a bitrate.
    pub quantizer: Option<u8>,
    /// The resulting bitrate.
    pub taken: Bitrate,
    /// Mean luma PSNR in dB, and SSIM, of the decoded pictures against the captured ones.
    pub quality: (f64, f64),
    /// Excess of the mean luma step in the coding error between strips over that between macroblock
    /// rows within them, as a share; 0 without visible seams.
    pub seams: f64,
    /// Mean VMAF; `None` at a quantizer, in a quick run, and if ffmpeg lacks it.
    pub vmaf: Option<f64>,
    /// The encoder's CPU time per slice, ms, ascending; without IDRs.
    pub encoding: Vec<f64>,
    /// The decoder's CPU time per slice, ms, ascending; IDRs included.
    pub decoding: Vec<f64>,
    /// Slice sizes relative to their budgets, ascending; without IDRs; empty at a quantizer.
    pub sizes: Vec<f64>,
    /// Sizes of complete pictures relative to their budgets, ascending; without the first; empty at
    /// a quantizer.
    pub picture_sizes: Vec<f64>,
    /// Encoding load as a share of one processor.
    pub load: f64,
}

impl Comparison {
    /// Codes a scene with every backend of this build, including x264's other presets if available.
    ///
    /// # Errors
    /// If a clip cannot be read, a codec fails, there are more strips than macroblock rows, or
    /// fewer than two pictures or no rate is requested.
    pub fn of(run: &Run<'_>, scene: &Scene, terms: &Terms) -> Result<Self> {
        ensure!(terms.pictures > 1, "two pictures at least");
        run.progress(0, 1, "footage");
        let footage = scene.shoot(run, terms)?;
        let with_vmaf = vmaf::is_installed() && !run.quick;
        let backends = backends();
        let held = terms.bitrates.iter().map(|bitrate| Rate::Held(*bitrate));
        let free = terms.quantizers.iter().map(|qp| Rate::Quantizer(*qp));
        let rates: Vec<Rate> = held.chain(free).collect();
        ensure!(!rates.is_empty(), "a rate or a quantizer at least");
        let turns = backends.len() * terms.repeats.max(1);
        let told = |done: usize, backend: Backend| {
            run.progress(done as u64, turns as u64, &format!("{backend}"));
        };
        let mut codings = Vec::new();
        for (done, &backend) in backends.iter().enumerate() {
            told(done, backend);
            for &rate in &rates {
                codings.push(Coding::of(&footage, backend, rate, terms.strips)?);
            }
        }
        // In turns, so that other load on the machine does not affect a single encoder.
        for turn in 1..terms.repeats {
            for (at, codings) in codings.chunks_mut(rates.len()).enumerate() {
                told(turn * backends.len() + at, backends[at]);
                for coding in codings {
                    // Runs at a quantizer measure quality, not time.
                    if matches!(coding.rate, Rate::Held(_)) {
                        coding.again(&footage)?;
                    }
                }
            }
        }
        let trials = codings.into_iter().map(|coding| Trial::of(&footage, coding, with_vmaf));
        let trials = trials.collect::<Result<_>>()?;
        Ok(Self { footage: footage.name, trials })
    }

    /// Returns the anchor of the BD-rates; `None` without trials.
    pub fn anchor(&self) -> Option<Backend> {
        self.trials.first().map(|trial| trial.backend)
    }

    /// Returns all encoders, the anchor first.
    pub fn backends(&self) -> Vec<Backend> {
        let mut backends: Vec<Backend> = self.trials.iter().map(|trial| trial.backend).collect();
        backends.dedup();
        backends
    }

    /// Returns the result of an encoder held to a bitrate; `None` if it was not tested there.
    pub fn held(&self, backend: Backend, bitrate: Bitrate) -> Option<&Trial> {
        self.of_backend(backend).find(|trial| trial.wanted == Some(bitrate))
    }

    /// Returns an encoder's bitrate excess over the anchor at equal PSNR, as a share: first at the
    /// bitrates, then at the quantizers. `None` as for [`bd_rate`].
    pub fn excess(&self, backend: Backend) -> [Option<f64>; 2] {
        let curve = |backend: Backend, held: bool| -> Vec<Point> {
            let of_kind = self.of_backend(backend).filter(|trial| trial.wanted.is_some() == held);
            let point = |trial: &Trial| Point { bitrate: trial.taken, quality: trial.quality.0 };
            of_kind.map(point).collect()
        };
        [true, false].map(|held| bd_rate(&curve(self.anchor()?, held), &curve(backend, held)))
    }

    fn of_backend(&self, backend: Backend) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| trial.backend == backend)
    }

    /// Plots quality over rate for every encoder at the bitrates.
    pub fn plot(&self) -> Plot {
        let curve = |backend: &Backend| {
            let held = self.of_backend(*backend).filter(|trial| trial.wanted.is_some());
            let points = held.map(|trial| (trial.taken.as_f64() / 1e6, trial.quality.0)).collect();
            Series::marked(backend.to_string(), points)
        };
        let name = format!("quality-{}", self.footage);
        let title = format!("Quality at rate: {}", self.footage);
        Plot::new(&name, &title, Axis::linear("Mbit/s"), Axis::linear("luma PSNR, dB"))
            .with_all(self.backends().iter().map(curve))
    }

    /// Returns a table of all trials of some comparisons.
    pub fn table(comparisons: &[Self]) -> Table {
        let columns = [
            "footage",
            "encoder",
            "wanted_mbps",
            "quantizer",
            "taken_mbps",
            "psnr_db",
            "ssim",
            "vmaf",
            "seam_excess",
            "encode_p50_ms",
            "encode_p99_ms",
            "decode_p50_ms",
            "size_over_budget_mean",
            "size_over_budget_p50",
            "size_over_budget_p99",
            "picture_over_budget_p99",
            "load_of_a_core",
        ];
        let mut table = Table::new("encoders", columns);
        for comparison in comparisons {
            comparison.trials.iter().for_each(|trial| trial.list(&comparison.footage, &mut table));
        }
        table
    }
}

/// Writes a table for readers: one line per trial, then the BD-rates.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.footage)?;
        writeln!(
            f,
            "{:22}{:>10}{:>9}{:>9}{:>8}{:>15}{:>8}{:>27}{:>13}",
            "encoder",
            "held to",
            "Mbit/s",
            "dB",
            "seams",
            "ms p50, p99",
            "core",
            "slice/given p50 p99 mean",
            "picture p99"
        )?;
        for trial in &self.trials {
            writeln!(f, "{trial}")?;
        }
        let anchor = self.anchor().map(|anchor| anchor.to_string()).unwrap_or_default();
        for backend in self.backends().into_iter().skip(1) {
            let [held, free] = self.excess(backend).map(|excess| match excess {
                Some(excess) => format!("{:+.1} %", excess * 100.0),
                None => "no quality in common".to_owned(),
            });
            writeln!(
                f,
                "BD-rate of {backend} against {anchor}: {held} held to rates, {free} at quantizers"
            )?;
        }
        Ok(())
    }
}

impl Scene {
    /// Returns the scene's name, without rendering the scene.
    pub fn name(&self) -> String {
        match self {
            Self::Simulated => "simulated 720p60".to_owned(),
            Self::SimulatedFullHd => "simulated 1080p30".to_owned(),
            Self::SimulatedSmall => "simulated, small".to_owned(),
            Self::Clip(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    fn shoot(&self, run: &Run<'_>, terms: &Terms) -> Result<Footage> {
        let simulated = |size: Size, rate: u32| -> Result<Footage> {
            let mut footage = Footage::simulated(size, rate, terms.pictures, run.seed)?;
            footage.name = format!("simulated-{}p{rate}", size.height / 10 * 10);
            Ok(footage)
        };
        let footage = match self {
            Self::Simulated => simulated(Size::HD, 60)?,
            Self::SimulatedFullHd => simulated(Size::FULL_HD, 30)?,
            Self::SimulatedSmall => simulated(Size::SMALL, 60)?,
            Self::Clip(path) => Footage::clip(path, Size::HD, 60, terms.pictures)?,
        };
        if terms.noise { footage.with_noise(run.seed) } else { Ok(footage) }
    }
}

impl Default for Terms {
    /// Returns 1.5 s with noise, six strips, and rates around the paper's 8 to 12 Mbit/s.
    fn default() -> Self {
        Self {
            pictures: 90,
            noise: true,
            bitrates: [4, 6, 8, 12].map(Bitrate::from_mbps).to_vec(),
            quantizers: vec![24, 28, 32, 36],
            strips: Layout::STRIP_COUNT,
            repeats: 2,
        }
    }
}

impl Trial {
    fn of(footage: &Footage, coding: Coding, with_vmaf: bool) -> Result<Self> {
        let backend = coding.backend;
        let (wanted, quantizer) = match coding.rate {
            Rate::Held(bitrate) => (Some(bitrate), None),
            Rate::Quantizer(qp) => (None, Some(qp)),
        };
        let coded = coding.decoded(footage)?;
        let vmaf = (with_vmaf && wanted.is_some())
            .then(|| vmaf::of(&coded.shown, &footage.pictures))
            .transpose()?;
        Ok(Self {
            backend,
            wanted,
            quantizer,
            taken: coded.bitrate(),
            quality: coded.quality(footage)?,
            seams: coded.seams(footage)?,
            vmaf,
            encoding: coded.encoding_times(),
            decoding: coded.decoding_times(),
            sizes: coded.size_shares(),
            picture_sizes: coded.picture_shares(),
            load: coded.load(),
        })
    }

    /// Returns the mean of the slice sizes relative to their budgets; NaN at a quantizer.
    pub fn mean_size(&self) -> f64 {
        mean(&self.sizes)
    }

    /// Returns the `share` quantile of the encoding time per slice, ms.
    pub fn encoding_at(&self, share: f64) -> f64 {
        quantile(&self.encoding, share)
    }

    /// Returns the `share` quantile of the slice sizes relative to their budgets.
    pub fn size_at(&self, share: f64) -> f64 {
        quantile(&self.sizes, share)
    }

    fn list(&self, footage: &str, table: &mut Table) {
        table.push([
            footage.into(),
            self.backend.to_string().into(),
            self.wanted.map(|bitrate| bitrate.as_f64() / 1e6).into(),
            self.quantizer.map(f64::from).into(),
            (self.taken.as_f64() / 1e6).into(),
            self.quality.0.into(),
            self.quality.1.into(),
            self.vmaf.into(),
            self.seams.into(),
            self.encoding_at(0.5).into(),
            self.encoding_at(0.99).into(),
            quantile(&self.decoding, 0.5).into(),
            self.mean_size().into(),
            self.size_at(0.5).into(),
            self.size_at(0.99).into(),
            quantile(&self.picture_sizes, 0.99).into(),
            self.load.into(),
        ]);
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held_to = match (self.wanted, self.quantizer) {
            (Some(bitrate), _) => format!("{} Mbit/s", bitrate.as_f64() / 1e6),
            (None, quantizer) => format!("QP {}", quantizer.unwrap_or_default()),
        };
        write!(
            f,
            "{:22}{held_to:>10}{:9.2}{:9.2}{:>8}{:>15}{:>8}",
            self.backend.to_string(),
            self.taken.as_f64() / 1e6,
            self.quality.0,
            format!("{:+.0} %", self.seams * 100.0),
            format!("{:.2}, {:.2}", self.encoding_at(0.5), self.encoding_at(0.99)),
            format!("{:.0} %", self.load * 100.0),
        )?;
        if self.wanted.is_none() {
            return Ok(());
        }
        let [p50, p99] = [0.5, 0.99].map(|share| self.size_at(share));
        let sizes = format!("{p50:.3} {p99:.3} {:.3}", self.mean_size());
        write!(f, "{sizes:>27}{:13.3}", quantile(&self.picture_sizes, 0.99))
    }
}

/// Returns the encoders to compare: the anchor first, x264's other presets last.
fn backends() -> Vec<Backend> {
    let backends = coding::backends();
    #[cfg(feature = "x264")]
    {
        use crate::pictures::x264::{Preset, Settings};
        const BASELINE: Settings = Settings::BASELINE;
        const OTHERS: [Settings; 3] = [
            Settings { preset: Preset::Ultrafast, ..BASELINE },
            Settings { preset: Preset::Veryfast, ..BASELINE },
            Settings { cabac: true, ..BASELINE },
        ];
        let others = const { &OTHERS }.iter().map(Settings::backend);
        backends.into_iter().chain(others).collect()
    }
    #[cfg(not(feature = "x264"))]
    backends
}
