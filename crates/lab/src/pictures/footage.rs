//! Footage: pictures of the simulated windscreen camera, and of real clips if there are any.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use tautline_testtrack::{Autopilot, Camera, Windscreen, World};
use tautline_video::Picture;

use super::kept::{self, Kept};
use crate::notation;

/// A sequence of pictures of one size.
pub(crate) struct Footage {
    /// Name in tables and files, in lower-case letters, digits and hyphens.
    pub(crate) name: String,
    pub(crate) pictures: Vec<Picture>,
    /// Pictures per second.
    pub(crate) rate: u32,
}

impl Footage {
    /// Returns the simulated camera's pictures of a drive on the course of `seed`, from its fifth
    /// second on.
    pub(crate) fn simulated(size: Size, rate: u32, count: usize, seed: u64) -> Result<Self> {
        let camera = Camera::new(size.width, size.height)?;
        let mut world = World::new(seed);
        let driver = Autopilot::default();
        let step = Duration::from_secs(1) / rate;
        let drive = |world: &mut World| {
            let controls = driver.controls(world.course(), world.car());
            world.step(&controls, step);
        };
        (0..rate * HEAD_START_SECONDS).for_each(|_| drive(&mut world));
        let pictures = (0..count).map(|_| {
            drive(&mut world);
            let mut picture = Picture::new(size.width, size.height)?;
            camera.render(&world.view(), &mut picture);
            Ok(picture)
        });
        let pictures = pictures.collect::<Result<_>>()?;
        Ok(Self { name: "simulated".to_owned(), pictures, rate })
    }

    /// Returns the first `count` pictures of a clip, scaled, and interpolated along the motion to
    /// `rate`. Those of the [recorded clips](clips) are cached in target/footage.
    ///
    /// # Errors
    /// If ffmpeg is missing or fails, or the clip is too short.
    pub(crate) fn clip(path: &Path, size: Size, rate: u32, count: usize) -> Result<Self> {
        let kept = Kept::of(Path::new(KEPT), path, [size.width, size.height], rate);
        let kept = path.starts_with(CLIPS).then_some(kept);
        let pictures = match kept.as_ref().and_then(|kept| kept.read(count)) {
            Some(pictures) => pictures,
            None => {
                let pictures = interpolated(path, size, rate, count)?;
                // If nothing can be cached, as on a full disk, the next experiment renders them
                // again.
                let _ = kept.map(|kept| kept.keep(&pictures));
                pictures
            }
        };
        Ok(Self { name: notation::name_of(path), pictures, rate })
    }

    /// Writes the pictures as a video file for any player, coded with little loss.
    ///
    /// # Errors
    /// If ffmpeg is missing or fails.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let first = self.pictures.first().context("no pictures")?;
        let mut ffmpeg = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p"])
            .args(["-s", &format!("{}x{}", first.width(), first.height())])
            .args(["-r", &self.rate.to_string(), "-i", "-"])
            .args(["-c:v", "libx264", "-preset", "ultrafast", "-qp", "8", "-y"])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("clips need ffmpeg")?;
        let mut input = ffmpeg.stdin.take().context("ffmpeg has no input")?;
        for picture in &self.pictures {
            for plane in [picture.luma(), picture.cb(), picture.cr()] {
                input.write_all(plane).context("ffmpeg ended")?;
            }
        }
        drop(input);
        ensure!(ffmpeg.wait()?.success(), "ffmpeg cannot write {}", file.display());
        Ok(())
    }

    /// Renders the simulated camera's pictures, then each clip's, with a camera's noise. Passes one
    /// after the other to `take`, and renders the next at the same time.
    ///
    /// # Errors
    /// If one cannot be rendered, or `take` fails.
    pub(crate) fn each(
        clips: &[PathBuf],
        size: Size,
        rate: u32,
        count: usize,
        seed: u64,
        mut take: impl FnMut(Self) -> Result<()>,
    ) -> Result<()> {
        let made = |clip: Option<&PathBuf>| match clip {
            None => Self::simulated(size, rate, count, seed)?.with_noise(seed),
            Some(clip) => Self::clip(clip, size, rate, count)?.with_noise(seed),
        };
        std::thread::scope(|scope| {
            // Render at most one ahead: they are large.
            let (give, given) = mpsc::sync_channel(0);
            scope.spawn(move || {
                let mut all = std::iter::once(None).chain(clips.iter().map(Some));
                all.all(|clip| give.send(made(clip)).is_ok())
            });
            given.into_iter().try_for_each(|footage| take(footage?))
        })
    }

    /// Adds a camera's noise to the luma, at a PSNR of 40 dB: coding has removed the clips' own
    /// noise. Appends `-noise` to the name.
    pub(crate) fn with_noise(mut self, seed: u64) -> Result<Self> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let noise = Normal::new(0.0_f32, NOISE)?;
        // One picture's noise suffices, with a different start offset for every picture.
        let field: Vec<f32> = (0..NOISE_FIELD).map(|_| noise.sample(&mut random)).collect();
        for (number, picture) in self.pictures.iter_mut().enumerate() {
            let start = number * NOISE_SHIFT % NOISE_FIELD;
            for (value, noise) in
                picture.planes_mut().0.iter_mut().zip(field.iter().cycle().skip(start))
            {
                *value = (f32::from(*value) + noise).round().clamp(0.0, 255.0) as u8;
            }
        }
        self.name.push_str("-noise");
        Ok(self)
    }
}

/// Decodes and interpolates a clip's pictures with ffmpeg.
fn interpolated(path: &Path, size: Size, rate: u32, count: usize) -> Result<Vec<Picture>> {
    let Size { width, height } = size;
    let filter = format!("minterpolate=fps={rate}:mi_mode=mci,scale={width}:{height}");
    let mut ffmpeg = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-threads", "1", "-i"])
        .arg(path)
        .args(["-an", "-vf", &filter, "-frames:v", &count.to_string()])
        .args(["-pix_fmt", "yuv420p", "-f", "rawvideo", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("clips need ffmpeg")?;
    let mut output = ffmpeg.stdout.take().context("ffmpeg has no output")?;
    let pictures = (0..count).map(|_| kept::read(&mut output, [width, height]));
    let pictures = pictures.collect::<Result<Vec<_>>>();
    drop(output);
    let ended = ffmpeg.wait()?;
    ensure!(ended.success() || pictures.is_ok(), "ffmpeg failed on {}", path.display());
    pictures.with_context(|| format!("{} ended", path.display()))
}

/// Size of pictures; both sides are multiples of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Size {
    /// Size of the windscreen camera, with as many rows as the paper's.
    pub(crate) const HD: Self = Self { width: Windscreen::WIDTH, height: Windscreen::HEIGHT };
    /// 1080 rows, rounded up to whole macroblocks.
    pub(crate) const FULL_HD: Self = Self { width: 1920, height: 1088 };
    /// Size for quick runs.
    pub(crate) const SMALL: Self = Self { width: 352, height: 192 };
}

/// Returns at most two of the recorded clips: the first by name and the one with the most motion.
/// If there are none, it also returns a note for the reader.
pub(crate) fn clips() -> (Vec<PathBuf>, Option<String>) {
    let mut clips: Vec<PathBuf> = std::fs::read_dir(CLIPS)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    clips.retain(|path| path.extension().is_some_and(|extension| extension == "mp4"));
    clips.sort();
    let is_cut = |clip: &PathBuf| clip.to_string_lossy().contains("cut");
    // The last cut of the motorway has the most motion.
    let last = clips.iter().rposition(is_cut).map(|last| clips.swap_remove(last));
    clips.truncate(1);
    clips.extend(last);
    let note = "Skipped: real clips, of which there are none in ../shared/data/clips.";
    let note = clips.is_empty().then(|| note.to_owned());
    (clips, note)
}

/// Folder of the recorded clips: outside the repository, which contains no recordings of others.
const CLIPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/clips");
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/footage");
/// Time in s until the simulated car has reached its speed.
const HEAD_START_SECONDS: u32 = 5;
/// Standard deviation of the noise in steps of luma: 255 / 10^(40 / 20), for a PSNR of 40 dB.
const NOISE: f32 = 2.55;
const NOISE_FIELD: usize = 1 << 20;
/// Number of samples by which the noise is shifted from picture to picture: odd, and far from any
/// row length.
const NOISE_SHIFT: usize = 386_117;

#[cfg(test)]
mod tests {

    use super::*;
    use crate::quality;

    #[test]
    fn the_simulated_car_moves_and_noise_is_40_db() {
        let clean = Footage::simulated(Size::SMALL, 30, 2, 1).unwrap();
        assert_ne!(clean.pictures[0], clean.pictures[1]);
        let original = clean.pictures[1].clone();
        let noisy = clean.with_noise(3).unwrap();
        let psnr = quality::psnr(&noisy.pictures[1], &original).unwrap();
        assert!((psnr - 40.0).abs() < 0.3, "{psnr}");
        assert_eq!(noisy.name, "simulated-noise");
    }
}
