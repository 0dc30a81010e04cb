//! Picture sources that give no pictures: at the start, while the vehicle runs, and under the
//! doctor. Each has one message within seconds that names its cause, and ends nothing.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs::File;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tautline_net::clock::Clock;

use crate::faults::remote::Another;

/// A folder with sources, a key and settings, which belong to a user without privileges.
struct Place {
    folder: tempfile::TempDir,
    /// User of the processes, if this test runs as root.
    user: Option<u32>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().is_root().then_some(NOBODY);
        let place = Self { folder, user };
        let key = place.path("vehicle.key");
        assert!(tautline().args(["keys", "new"]).arg(&key).output().unwrap().status.success());
        let clip = place.path("good.mkv");
        let made = Command::new("ffmpeg")
            .args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=10:duration=2"])
            .args(["-pix_fmt", "yuv420p", "-c:v", "libx264"])
            .arg(&clip)
            .status();
        assert!(made.expect("needs ffmpeg: ./setup ffmpeg").success());
        let whole = place.path("whole.mp4");
        let copied = Command::new("ffmpeg")
            .args(["-v", "error", "-i"])
            .arg(&clip)
            .args(["-c", "copy"])
            .arg(&whole)
            .status();
        assert!(copied.unwrap().success());
        let bytes = std::fs::read(&whole).unwrap();
        std::fs::write(place.path("truncated.mp4"), &bytes[..bytes.len() / 2]).unwrap();
        std::fs::write(place.path("empty.mp4"), []).unwrap();
        std::fs::write(place.path("unreadable.mp4"), &bytes).unwrap();
        std::fs::write(place.path("letter.txt"), "Dear operator").unwrap();
        std::fs::create_dir(place.path("folder")).unwrap();
        assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
        let mode = |file: &str, mode: u32| {
            std::fs::set_permissions(place.path(file), PermissionsExt::from_mode(mode)).unwrap();
        };
        mode("", 0o755);
        mode("unreadable.mp4", 0o000);
        for entry in std::fs::read_dir(place.folder.path()).unwrap() {
            if let Some(user) = user {
                chown(entry.unwrap().path(), Some(user), None).unwrap();
            }
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the settings of a vehicle with this source.
    fn settings(&self, kind: &str, source: &Path) -> PathBuf {
        let file = self.path("vehicle.toml");
        let text = format!(
            "switchboard = \"127.0.0.1:9\"\nswitchboard_key = \"{KEY}\"\noperators = [\"{KEY}\"]\n\
             links = [\"127.0.0.1:0\"]\nguard = \"./vehicle.sock\"\n{kind} = {source:?}\n"
        );
        std::fs::write(&file, text).unwrap();
        file
    }

    fn vehicle(&self, kind: &str, source: &Path) -> Running {
        let (settings, log) = (self.settings(kind, source), self.path("log"));
        let mut command = self.as_user(tautline());
        command.arg("vehicle").arg("--config").arg(settings).env("TAUTLINE_LOG", "warn");
        command.stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        Running { process: Another(command.spawn().unwrap()), log }
    }

    fn doctor(&self, kind: &str, source: &Path) -> String {
        let mut command = self.as_user(tautline());
        command.args(["doctor", "--vehicle"]).arg(self.settings(kind, source));
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    fn as_user(&self, mut command: Command) -> Command {
        if let Some(user) = self.user {
            command.uid(user);
        }
        command
    }
}

struct Running {
    process: Another,
    log: PathBuf,
}

impl Running {
    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the log has these words.
    fn says(&mut self, words: &str) {
        for _ in 0..300 {
            let ended = self.process.0.try_wait().unwrap();
            assert!(ended.is_none(), "it ended ({ended:?}): {}", self.log());
            if self.log().contains(words) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("not said: {words}: {}", self.log());
    }
}

/// Sources without pictures, by setting and file, and the cause that is named.
const WRONG: [(&str, &str, &str); 13] = [
    ("clip", "pipe", "it is a pipe, which can be read only once"),
    ("clip", "folder", "it is a folder"),
    ("clip", "unreadable.mp4", "this user may not read the clip"),
    ("clip", "empty.mp4", "it is empty"),
    ("clip", "truncated.mp4", "ffmpeg cannot read the clip"),
    ("clip", "letter.txt", "ffmpeg cannot read the clip"),
    ("clip", "absent.mp4", "there is no clip"),
    ("clip", "/dev/null", "it is a device"),
    ("camera", "pipe", "it is a pipe, where a V4L2 device is needed"),
    ("camera", "folder", "it is a folder, where a V4L2 device is needed"),
    ("camera", "letter.txt", "it is a file, where a V4L2 device is needed"),
    ("camera", "/dev/null", "it is no V4L2 device"),
    ("camera", "absent", "there is no camera"),
];

#[test]
fn a_source_without_pictures_is_reported_once_by_its_cause() {
    let place = Place::new();
    for (kind, file, cause) in WRONG {
        let source = place.path(file);
        let mut vehicle = place.vehicle(kind, &source);
        vehicle.says(cause);
        // Several more attempts.
        std::thread::sleep(Duration::from_millis(1_500));
        vehicle.says(cause);
        let log = vehicle.log();
        assert_eq!(log.matches(cause).count(), 1, "{kind} {file}: {log}");
        assert!(log.contains(source.to_str().unwrap()), "{kind} {file}: {log}");
    }
}

#[test]
fn the_doctor_reports_a_source_without_pictures_by_its_cause() {
    let place = Place::new();
    let clock = Clock::start();
    for (kind, file, cause) in WRONG {
        let (begun, source) = (clock.now(), place.path(file));
        let words = place.doctor(kind, &source);
        let took = clock.now().since(begun);
        let line = words.lines().find(|line| line.contains(" pictures ")).unwrap_or(&words);
        assert!(line.contains(cause) && line.starts_with("mend"), "{kind} {file}: {words}");
        assert!(took < Duration::from_secs(12), "{kind} {file}: {took:?}");
    }
}

#[test]
fn a_source_that_changes_at_run_time_is_reported_again() {
    let place = Place::new();
    let source = place.path("source");
    let mut vehicle = place.vehicle("clip", &source);
    vehicle.says("there is no clip");
    let put = |name: &str| {
        let _ = std::fs::remove_file(&source);
        std::fs::hard_link(place.path(name), &source).unwrap();
    };
    put("empty.mp4");
    vehicle.says("it is empty");
    put("good.mkv");
    vehicle.says("available again");
    // The reader keeps what it has open, until it is ended.
    put("pipe");
    kill_children(vehicle.process.0.id());
    vehicle.says("it is a pipe");
    put("good.mkv");
    for _ in 0..300 {
        if vehicle.log().matches("available again").count() == 2 {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the clip is not read again: {}", vehicle.log());
}

/// Ends the processes that a process has started.
fn kill_children(id: u32) {
    for task in std::fs::read_dir(format!("/proc/{id}/task")).unwrap().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            crate::faults::rig::signal(child.parse().unwrap(), "KILL");
        }
    }
}

fn tautline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tautline"));
    command.env_remove("TAUTLINE_CONFIG");
    command
}

const NOBODY: u32 = 65_534;
const KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
