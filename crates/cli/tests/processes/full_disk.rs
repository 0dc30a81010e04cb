//! A full disk under every process that writes: the drive continues, each says "disk full" by name,
//! and recording resumes when there is room.
//!
//! The disk is a file system in memory in a mount namespace of its own. It is reached through
//! `/proc`, so no process needs privileges.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tautline_guard::frame;

use crate::faults::remote::{Place, Remote};
use crate::faults::rig::{BlackBox, Limits, Rig, Setup};
use crate::restart::Demo;
use crate::tries::tried;

#[test]
fn a_full_disk_under_guard_and_switchboard_stops_no_drive() {
    let Some(_) = Disk::mount() else { return };
    tried(|| {
        let disk = Disk::mount().expect("it was mounted before");
        let setup = Setup {
            limits: Limits::Late,
            black_box: BlackBox::Records,
            box_at: Some(disk.path("box")),
            ..Setup::default()
        };
        let place = Place { state_at: Some(disk.path("state")), ..Place::default() };
        let mut rig = Rig::remote_at(&place, "", &setup);
        rig.drive(3.0);
        rig.vehicle.operator.throttle(0.2);
        let told = |rig: &Rig<Remote>, what: frame::BlackBox| {
            rig.vehicle.operator.eventually("the black box's state", |operator| {
                operator.guard().is_some_and(|guard| guard.black_box == what)
            });
            let guard = rig.vehicle.operator.guard();
            assert!(guard.is_some_and(|guard| guard.mode.is_driving()), "{guard:?}");
        };
        told(&rig, frame::BlackBox::Records);
        disk.fill();
        told(&rig, frame::BlackBox::DiskFull);
        // The switchboard must store whom it lets in.
        let invited = rig.vehicle.invite("mule");
        assert!(invited.status.code().is_some(), "{invited:?}");
        assert!(rig.log().contains("disk full"), "{}", rig.log());
        let begun = rig.car("odometer_metres");
        std::thread::sleep(Duration::from_secs(2));
        assert!(
            rig.car("odometer_metres") > begun + 1.0 && rig.car("hazard") == 0.0,
            "{:?}",
            rig.cause()
        );
        disk.free();
        told(&rig, frame::BlackBox::Records);
        rig.end_guard();
        let (verified, is_sound) = rig.black_box("verify");
        assert!(is_sound, "{verified}");
    });
}

#[test]
fn a_full_disk_of_the_recorder_is_named_and_then_recorded_on() {
    let Some(_) = Disk::mount() else { return };
    tried(|| {
        let disk = Disk::mount().expect("it was mounted before");
        let demo = Demo::start_in(disk.path(""));
        demo.await_video("at first");
        disk.fill();
        let log = |words: &str| {
            for _ in 0..400 {
                if demo.first_log("operator").contains(words) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            panic!("not said: {words}: {}", demo.first_log("operator"));
        };
        log("disk full");
        demo.await_video("with a full disk");
        disk.free();
        log("recording continues");
        demo.await_video("with room again");
        assert_eq!(demo.first_log("operator").matches("disk full").count(), 1);
    });
}

/// A file system of [`DISK_BYTES`] in memory, mounted in a namespace of its own.
struct Disk {
    holder: Child,
    folder: tempfile::TempDir,
}

impl Disk {
    /// Mounts one; `None` where this user may not.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            "mount -t tmpfs -o size={DISK_BYTES} tmpfs \"$0\" && touch \"$0/mounted\" && exec sleep 600"
        );
        let mut holder = Command::new("unshare");
        holder.args(["-rm", "sh", "-c", &script]).arg(folder.path());
        let holder = holder.stderr(Stdio::null()).spawn().expect("unshare");
        let mut disk = Self { holder, folder };
        for _ in 0..200 {
            if disk.path("mounted").exists() {
                return Some(disk);
            }
            if disk.holder.try_wait().expect("it was started").is_some() {
                println!("not run: a file system of its own needs user namespaces (unshare -rm)");
                return None;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the file system is not mounted");
    }

    /// Returns a path on the disk.
    fn path(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        let folder = self.folder.path().strip_prefix("/").expect("an absolute path");
        root.join(folder).join(name)
    }

    /// Writes a file until the disk is full.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.path(FILLING)).expect("room for a name");
        let bytes = [7; 4_096];
        while file.write_all(&bytes).is_ok() {}
    }

    /// Removes that file.
    fn free(&self) {
        let filling: &Path = &self.path(FILLING);
        std::fs::remove_file(filling).expect("it is there");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

const FILLING: &str = "filling";
/// Several seconds of recordings.
const DISK_BYTES: usize = 8 << 20;
