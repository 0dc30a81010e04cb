//! Either end and the switchboard may restart: video and commands continue.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tautline_switchboard::Store;
use tautline_switchboard::store::Kept;

use crate::tries::tried;

pub(crate) struct Demo {
    process: Child,
    pub(crate) console: String,
    ids: Vec<(String, u32)>,
    restarted: Vec<Child>,
    folder: tempfile::TempDir,
}

impl Demo {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let recordings = folder.path().to_owned();
        Self::recording(folder, &recordings)
    }

    /// Starts a demo with its recordings below `recordings`.
    pub(crate) fn start_in(recordings: PathBuf) -> Self {
        Self::recording(tempfile::tempdir().expect("a folder"), &recordings)
    }

    fn recording(folder: tempfile::TempDir, recordings: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_tautline"))
            .args(["demo", "--console", "127.0.0.1:0", "--links", "lan"])
            .args(["--pictures-per-second", "10"])
            // Without a viewer or a recording, fewer pictures are sent.
            .arg("--record")
            .arg(recordings)
            .arg("--blackbox")
            .arg(recordings.join("blackbox"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("our own binary");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let lines = lines.map(|line| line.expect("text"));
        let (mut console, mut list) = (String::new(), String::new());
        for line in lines {
            if let Some(address) = line.strip_prefix("Open  http://") {
                let (address, _token) = address.split_once('/').expect("a path");
                console = address.to_owned();
            } else if let Some(processes) = line.strip_prefix("Processes: ") {
                list = processes.split('.').next().expect("a list").to_owned();
                break;
            }
        }
        let ids = list.split(", ").map(|entry| {
            let (name, id) = entry.split_once(' ').expect("name and number");
            (name.to_owned(), id.parse().expect("a number"))
        });
        Self { process, console, ids: ids.collect(), restarted: Vec::new(), folder }
    }

    /// Returns the process id of a component that runs since the demo's start.
    pub(crate) fn id(&self, name: &str) -> u32 {
        self.ids.iter().find(|(of, _)| of == name).expect("it runs").1
    }

    /// Returns the log of a process that runs since the start.
    pub(crate) fn first_log(&self, name: &str) -> String {
        let line = std::fs::read_to_string(format!("/proc/{}/cmdline", self.id(name)));
        let line = line.expect("it runs");
        let config = line.split('\0').skip_while(|word| *word != "--config").nth(1);
        let log = PathBuf::from(config.expect("settings")).with_file_name(format!("{name}.log"));
        std::fs::read_to_string(log).expect("a log")
    }

    /// Kills a process like a crash, and starts it again with the same settings.
    fn restart(&mut self, name: &str) {
        let (_, id) = self.ids.iter().find(|(of, _)| of == name).expect("it runs");
        let line = std::fs::read(format!("/proc/{id}/cmdline")).expect("it still runs");
        let arguments: Vec<String> = line
            .split(|byte| *byte == 0)
            .filter(|part| !part.is_empty())
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect();
        let killed = Command::new("kill").args(["-9", &id.to_string()]).status().expect("kill");
        assert!(killed.success());
        let log = std::fs::File::create(self.log(name)).expect("a log");
        let again = Command::new(&arguments[0])
            .args(&arguments[1..])
            .env("TAUTLINE_LOG", "info")
            .stderr(log)
            .spawn()
            .expect("our own binary");
        self.restarted.push(again);
    }

    /// Returns the path of a restarted process's log.
    fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    /// Waits until a restarted process logs these words.
    #[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
    fn await_words(&self, name: &str, words: &str) {
        let begun = Instant::now();
        loop {
            let log = std::fs::read_to_string(self.log(name)).expect("a log");
            if log.contains(words) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "no {words:?} in: {log}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns the switchboard's stored state, from a backup.
    fn kept(&self) -> Kept {
        let (_, id) = self.ids.iter().find(|(of, _)| of == "switchboard").expect("it runs");
        let ids = self.restarted.last().map_or(*id, Child::id);
        let line = std::fs::read_to_string(format!("/proc/{ids}/cmdline")).expect("it still runs");
        let config = line.split('\0').skip_while(|word| *word != "--config").nth(1);
        let folder = self.folder.path().join(format!("backup-{ids}"));
        std::fs::create_dir(&folder).expect("a folder");
        let output = Command::new(env!("CARGO_BIN_EXE_tautline"))
            .args(["switchboard", "backup", "--config", config.expect("settings")])
            .arg(folder.join("switchboard.redb"))
            .output()
            .expect("our own binary");
        assert!(output.status.success(), "{output:?}");
        Store::open(&folder).and_then(|store| store.load()).expect("a store")
    }

    /// Returns the number of units of video that the operator has received in its present session;
    /// 0 while it does not answer.
    pub(crate) fn units(&self) -> u64 {
        let Ok(mut stream) = TcpStream::connect(&self.console) else { return 0 };
        let request = format!("GET /metrics HTTP/1.0\r\nHost: {}\r\n\r\n", self.console);
        let mut page = String::new();
        if stream.write_all(request.as_bytes()).is_err()
            || stream.read_to_string(&mut page).is_err()
        {
            return 0;
        }
        let line = page.lines().find_map(|line| line.strip_prefix(DELIVERED));
        line.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Waits until video arrives: the count of units rises for one second.
    #[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
    pub(crate) fn await_video(&self, what: &str) {
        let begun = Instant::now();
        let mut last = self.units();
        let mut rises = 0;
        while rises < 5 {
            assert!(begun.elapsed() < Duration::from_secs(20), "no video {what}");
            std::thread::sleep(Duration::from_millis(200));
            let now = self.units();
            rises = if now > last { rises + 1 } else { 0 };
            last = now;
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        for child in &mut self.restarted {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

const DELIVERED: &str =
    "tautline_operator_channel_units_total{channel=\"video\",what=\"delivered\"} ";

#[test]
fn video_goes_on_after_any_part_restarts() {
    tried(|| {
        let mut demo = Demo::start();
        demo.await_video("at first");
        let (kept, units) = (demo.kept(), demo.units());
        let lease = kept.vehicles.values().next().and_then(|vehicle| vehicle.lease.as_ref());
        assert!(lease.is_some_and(|lease| lease.name.is_some()), "{kept:?}");
        demo.restart("switchboard");
        demo.await_words("switchboard", "both ends are back");
        assert_eq!(demo.kept(), kept, "the lease is the same");
        demo.await_video("after the switchboard's restart");
        assert!(demo.units() > units, "the session is the same");

        demo.restart("vehicle");
        demo.await_video("after the vehicle's restart");
        demo.restart("operator");
        demo.await_video("after the operator's restart");
    });
}
