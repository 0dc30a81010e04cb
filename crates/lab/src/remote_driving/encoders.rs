//! Encoders by strips, each at several bitrates: what they need for a quality, and what of a processor.

use anyhow::Result;
use tautline_units::Bitrate;
use tautline_video::Backend;
use tautline_video::quality::{Point, bd_rate};

use crate::coding::{Coded, quantile};
use crate::experiment::Run;
use crate::footage::{Footage, Size, clips};
use crate::machine;
use crate::outcome::{Outcome, Table};
use crate::plot::{Axis, Plot, Series};
use crate::row::Row;
use crate::vmaf;

/// Codes every footage with every backend of this build.
pub(super) fn run(run: &Run<'_>) -> Result<Outcome> {
    let mut outcome = Outcome { tables: vec![table()], ..Outcome::default() };
    let has_vmaf = vmaf::is_installed();
    if !has_vmaf {
        outcome.notes.push("Skipped: VMAF, which this ffmpeg lacks (libvmaf).".to_owned());
    }
    let backends = backends();
    let mut trials = Vec::new();
    let scenes = scenes(run, &mut outcome.notes);
    for (number, scene) in scenes.iter().enumerate() {
        run.progress(number as u64, scenes.len() as u64, &scene.name());
        let footage = scene.shoot(run)?;
        for &backend in &backends {
            for &bitrate in scene.bitrates() {
                let what = format!("{}, {backend}", footage.name);
                run.progress(number as u64, scenes.len() as u64, &what);
                trials.push(Trial::of(&footage, backend, bitrate, has_vmaf && !run.quick)?);
            }
        }
        let of_scene = &trials[trials.len() - backends.len() * scene.bitrates().len()..];
        outcome.plots.push(plot(&footage, &backends, of_scene));
        outcome.rows.extend(rows(run, scene, &footage, &backends, of_scene));
    }
    for trial in &trials {
        trial.list(&mut outcome.tables[0]);
    }
    outcome.notes.extend(notes(&backends));
    Ok(outcome)
}

/// Is where pictures come from.
enum Scene {
    Simulated(Size, u32),
    Clip(std::path::PathBuf),
}

impl Scene {
    fn name(&self) -> String {
        match self {
            Scene::Simulated(size, rate) => format!("simulated {}p{rate}", size.height),
            Scene::Clip(path) => {
                path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
            }
        }
    }

    fn shoot(&self, run: &Run<'_>) -> Result<Footage> {
        match self {
            Scene::Simulated(size, rate) => {
                let count = run.choose(12, 120);
                let mut footage = Footage::simulated(*size, *rate, count, run.seed)?;
                footage.name = format!("simulated-{}p{rate}", size.height);
                footage.with_noise(run.seed)
            }
            Scene::Clip(path) => {
                Footage::clip(path, Size::HD, 60, CLIP_PICTURES)?.with_noise(run.seed)
            }
        }
    }

    fn bitrates(&self) -> &'static [Bitrate] {
        match self {
            Scene::Simulated(Size::SMALL, _) => SMALL_BITRATES,
            Scene::Simulated(..) | Scene::Clip(_) => BITRATES,
        }
    }
}

fn scenes(run: &Run<'_>, notes: &mut Vec<String>) -> Vec<Scene> {
    if run.quick {
        return vec![Scene::Simulated(Size::SMALL, 60)];
    }
    let (clips, none) = clips();
    notes.extend(none);
    let simulated = [Scene::Simulated(Size::HD, 60), Scene::Simulated(Size::FULL_HD, 30)];
    simulated.into_iter().chain(clips.into_iter().map(Scene::Clip)).collect()
}

/// The anchor of BD-rates first.
fn backends() -> Vec<Backend> {
    #[cfg(feature = "x264")]
    {
        use tautline_video::x264::{Preset, Settings};
        let of = |preset, cabac| Backend::X264(Settings { preset, cabac, refresh_period: 0 });
        let mut backends = vec![of(Preset::Superfast, false)];
        let others = Backend::all().into_iter().filter(|other| *other != backends[0]);
        backends.extend(others.collect::<Vec<_>>());
        backends.extend([
            of(Preset::Ultrafast, false),
            of(Preset::Veryfast, false),
            of(Preset::Superfast, true),
        ]);
        backends
    }
    #[cfg(not(feature = "x264"))]
    Backend::all()
}

/// Is one footage by one encoder at one bitrate.
struct Trial {
    footage: String,
    backend: Backend,
    wanted: Bitrate,
    taken: Bitrate,
    psnr: f64,
    ssim: f64,
    vmaf: Option<f64>,
    encoding: Vec<f64>,
    decoding: Vec<f64>,
    sizes: Vec<f64>,
    load: f64,
}

impl Trial {
    fn of(footage: &Footage, backend: Backend, wanted: Bitrate, with_vmaf: bool) -> Result<Self> {
        let coded = Coded::of(footage, backend, wanted)?;
        let (psnr, ssim) = coded.quality(footage)?;
        let vmaf = with_vmaf.then(|| vmaf::of(&coded.shown, &footage.pictures)).transpose()?;
        Ok(Self {
            footage: footage.name.clone(),
            backend,
            wanted,
            taken: coded.bitrate(),
            psnr,
            ssim,
            vmaf,
            encoding: coded.encoding_times(),
            decoding: coded.decoding_times(),
            sizes: coded.size_shares(),
            load: coded.load(),
        })
    }

    fn point(&self) -> Point {
        Point { bitrate: self.taken, quality: self.psnr }
    }

    fn mean_size(&self) -> f64 {
        self.sizes.iter().sum::<f64>() / self.sizes.len() as f64
    }

    fn list(&self, table: &mut Table) {
        table.push([
            self.footage.as_str().into(),
            self.backend.to_string().into(),
            (self.wanted.as_f64() / 1e6).into(),
            (self.taken.as_f64() / 1e6).into(),
            self.psnr.into(),
            self.ssim.into(),
            self.vmaf.into(),
            quantile(&self.encoding, 0.5).into(),
            quantile(&self.encoding, 0.99).into(),
            quantile(&self.decoding, 0.5).into(),
            self.mean_size().into(),
            quantile(&self.sizes, 0.5).into(),
            quantile(&self.sizes, 0.99).into(),
            self.load.into(),
        ]);
    }
}

fn table() -> Table {
    let columns = [
        "footage",
        "encoder",
        "wanted_mbps",
        "taken_mbps",
        "psnr_db",
        "ssim",
        "vmaf",
        "encode_p50_ms",
        "encode_p99_ms",
        "decode_p50_ms",
        "size_over_budget_mean",
        "size_over_budget_p50",
        "size_over_budget_p99",
        "load_of_a_core",
    ];
    Table::new("encoders", columns)
}

fn plot(footage: &Footage, backends: &[Backend], trials: &[Trial]) -> Plot {
    let curve = |backend: &Backend| {
        let of = trials.iter().filter(|trial| trial.backend == *backend);
        let points = of.map(|trial| (trial.taken.as_f64() / 1e6, trial.psnr)).collect();
        Series::marked(backend.to_string(), points)
    };
    let name = format!("quality-{}", footage.name);
    let title = format!("Quality at rate: {}", footage.name);
    Plot::new(&name, &title, Axis::linear("Mbit/s"), Axis::linear("luma PSNR, dB"))
        .with_all(backends.iter().map(curve))
}

fn rows(
    run: &Run<'_>,
    scene: &Scene,
    footage: &Footage,
    backends: &[Backend],
    trials: &[Trial],
) -> Vec<Row> {
    let mut rows = Vec::new();
    let of = |backend: Backend| trials.iter().filter(move |trial| trial.backend == backend);
    let curve = |backend: Backend| of(backend).map(Trial::point).collect::<Vec<_>>();
    let is_hd = !matches!(scene, Scene::Simulated(Size::SMALL | Size::FULL_HD, _));
    for &backend in backends {
        let named = |what: &str| format!("{what}, {backend}, {}", footage.name);
        let all = |of_trial: fn(&Trial) -> f64| of(backend).map(of_trial).sum::<f64>();
        let mean_size = all(Trial::mean_size) / of(backend).count() as f64;
        rows.push(
            Row::new(named("mean size over budget"), "", mean_size)
                .reference(1.0)
                .within(run.choose(0.3, 0.15)),
        );
        let expected = Expected::of(backend).filter(|_| is_hd);
        if let Some(excess) = bd_rate(&curve(backends[0]), &curve(backend))
            && backend != backends[0]
        {
            let what = named(&format!("BD-rate against {}", backends[0]));
            let row = Row::new(what, "%", excess * 100.0);
            rows.push(match expected.filter(|_| cfg!(feature = "x264")) {
                // One footage is not the mean of many.
                Some(expected) => row.reference(expected.bd_rate).within_absolute(25.0),
                None => row,
            });
        }
        let Some(dearest) = of(backend).next_back() else { continue };
        let [p50, p99] = [0.5, 0.99].map(|share| quantile(&dearest.encoding, share));
        let at = format!("at {} Mbit/s", dearest.wanted.as_f64() / 1e6);
        let p50 = Row::new(named(&format!("a strip {at}, p50")), "ms", p50);
        let p99 = Row::new(named(&format!("a strip {at}, p99")), "ms", p99);
        let load = Row::new(named(&format!("load of a core {at}")), "%", dearest.load * 100.0);
        rows.extend(match expected {
            Some(expected) => [
                p50.reference(expected.p50).at_most(SLOWER_MACHINE),
                p99.reference(expected.p99).at_most(SLOWER_MACHINE),
                load.reference(expected.load).at_most(SLOWER_MACHINE),
            ],
            None => [p50, p99, load],
        });
    }
    rows
}

/// Is what the same encoders took before, by strips of 1280x720 pictures at 60 a second on one
/// thread of a Zen 5.
#[derive(Clone, Copy)]
struct Expected {
    bd_rate: f64,
    p50: f64,
    p99: f64,
    load: f64,
}

impl Expected {
    fn of(backend: Backend) -> Option<Self> {
        let [bd_rate, p50, p99, load] = match backend.to_string().as_str() {
            // What is asked of it, not what was measured.
            "own" => [0.0, 1.2, 2.0, 45.0],
            "openh264" => [1.0, 1.1, 2.1, 40.0],
            "x264 ultrafast" => [39.0, 0.51, 0.75, 18.0],
            "x264 superfast" => [0.0, 0.75, 1.2, 27.0],
            "x264 veryfast" => [-5.0, 1.4, 2.2, 50.0],
            "x264 superfast CABAC" => [-15.0, 1.0, 1.7, 37.0],
            _ => return None,
        };
        Some(Self { bd_rate, p50, p99, load })
    }
}

fn notes(backends: &[Backend]) -> Vec<String> {
    let mut notes = vec![
        format!(
            "Processor: {}. Times are of the encoding thread's own processor time, so that what \
             others do on the machine counts little; rows take the highest bitrate.",
            machine::processor()
        ),
        "Six strips, each by an encoder of its own, within the same budgets; quality is of whole \
         pictures as decoded, against those captured. Sizes leave out each strip's first, an IDR. \
         Footage has a camera's noise of 40 dB; clips are brought to 60 pictures a second by \
         interpolation along the motion."
            .to_owned(),
    ];
    if !cfg!(feature = "x264") {
        notes.push(format!(
            "Built without x264: BD-rates are against {}. With `--features x264` x264 is the anchor.",
            backends[0]
        ));
    }
    notes
}

const BITRATES: &[Bitrate] =
    &[Bitrate::from_mbps(4), Bitrate::from_mbps(6), Bitrate::from_mbps(8), Bitrate::from_mbps(12)];
/// A twelfth of the pixels.
const SMALL_BITRATES: &[Bitrate] = &[
    Bitrate::from_kbps(500),
    Bitrate::from_kbps(750),
    Bitrate::from_kbps(1_000),
    Bitrate::from_kbps(1_500),
];
/// A second and a half: of 25 pictures a second these are 38.
const CLIP_PICTURES: usize = 90;
/// Times the reference's times that a row may take: machines differ by as much.
const SLOWER_MACHINE: f64 = 2.0;
