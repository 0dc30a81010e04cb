//! Source of a vehicle's pictures: flags common to all commands that start a vehicle.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use tautline_vehicle::{CameraAddress, Config};

use crate::settings::set;

/// Flags of the source, each with a setting of the same name.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Source {
    /// Video file in place of the camera, looped at its own size and rate; requires ffmpeg
    #[arg(long, value_name = "FILE")]
    clip: Option<PathBuf>,
    /// Camera in place of the simulated one: a V4L2 device such as /dev/video0, or unix:PATH, a
    /// socket to which a program sends pictures
    #[arg(long, value_name = "ADDRESS", conflicts_with = "clip")]
    camera: Option<CameraAddress>,
    /// Capture mode of the device, such as "mjpeg 1280x720@30" or a part of that [default: the best
    /// fit]
    #[arg(long, value_name = "MODE")]
    camera_mode: Option<String>,
}

impl Source {
    /// Returns the source that `--clip` with this file means.
    #[cfg(feature = "lab")]
    pub(crate) fn clip(file: PathBuf) -> Self {
        Self { clip: Some(file), ..Self::default() }
    }

    /// Overrides the settings with the flags that were given.
    pub(crate) fn set(&self, config: &mut Config) {
        set(&mut config.clip, self.clip.clone().map(Some));
        set(&mut config.camera, self.camera.clone().map(Some));
        set(&mut config.camera_mode, self.camera_mode.clone());
    }

    /// Returns those settings of the source that are paths, which are relative to the folder of
    /// their file.
    pub(crate) fn paths(config: &mut Config) -> impl Iterator<Item = &mut PathBuf> {
        let camera = config.camera.as_mut().map(CameraAddress::path_mut);
        [config.clip.as_mut(), camera].into_iter().flatten()
    }

    /// Returns the same source with absolute paths, for a process with another working directory.
    ///
    /// # Errors
    /// Fails if the current directory is unknown.
    pub(crate) fn absolute(self) -> anyhow::Result<Self> {
        let mut source = self;
        let camera = source.camera.as_mut().map(CameraAddress::path_mut);
        for path in [source.clip.as_mut(), camera].into_iter().flatten() {
            *path = std::path::absolute(&*path)?;
        }
        Ok(source)
    }

    /// Checks that the source exists.
    ///
    /// # Errors
    /// Returns one line that says what is missing.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let mut config = Config::default();
        self.set(&mut config);
        config.source().map_or(Ok(()), |source| source.check())
    }

    /// Returns the given flags as lines of a settings file.
    pub(crate) fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                writeln!(text, "{name} = {value}").expect("a string takes all");
            }
        };
        line("clip", self.clip.as_ref().map(|file| format!("{file:?}")));
        line("camera", self.camera.as_ref().map(|camera| format!("{:?}", camera.to_string())));
        line("camera_mode", self.camera_mode.as_ref().map(|mode| format!("{mode:?}")));
        text
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        source: Source,
    }

    fn given(flags: &[&str]) -> Result<Source, clap::Error> {
        let flags = ["tautline"].iter().chain(flags);
        Ok(Flags::try_parse_from(flags)?.source)
    }

    #[test]
    fn flags_and_file_say_the_same() {
        for flags in [
            &["--clip", "/a/drive \"7\".mp4"][..],
            &["--camera", "/dev/video0", "--camera-mode", "mjpeg 1280x720@30"],
            &["--camera", "unix:/run/camera.sock"],
            &[],
        ] {
            let source = given(flags).unwrap();
            let mut flagged = Config::default();
            source.set(&mut flagged);
            let filed: Config = toml::from_str(&source.to_toml()).unwrap();
            assert_eq!(
                (flagged.source(), &flagged.camera_mode),
                (filed.source(), &filed.camera_mode)
            );
            assert_eq!(flagged.source().is_some(), !flags.is_empty());
        }
        assert!(given(&["--clip", "a", "--camera", "b"]).is_err(), "only one is seen with");
    }

    #[test]
    fn a_missing_source_is_reported_before_anything_starts() {
        for flag in ["--clip", "--camera"] {
            let source = given(&[flag, "no/such/file"]).unwrap().absolute().unwrap();
            let words = source.check().unwrap_err().to_string();
            assert!(words.contains(&flag[2..]) && words.contains("/no/such/file"), "{words}");
        }
    }
}
