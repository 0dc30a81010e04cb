use std::path::Path;

use proptest::prelude::*;
use tautline_guard::{Guard, Input};

use super::*;
use crate::rehearsal::Rehearsal;
use crate::{Config, Recorder, Signer, drives};

/// Records drives into `root`, each by a separate process.
fn record(root: &Path, count: u32, change: impl Fn(&mut Config)) {
    for _ in 0..count {
        let folder = root.to_path_buf();
        let mut config = Config { folder, before_s: 1, after_s: 1, ..Config::default() };
        change(&mut config);
        let signer = Signer::from_seed(&[7; 32]);
        let mut recorder = Recorder::start(config, signer, UNIX_NANOS).unwrap();
        let mut step = |guard: &mut Guard, input: &Input, now| recorder.step(guard, input, now);
        Rehearsal::new().drive(1, 60, &mut step);
    }
}

/// Returns the faults of a folder: of each file, and of all together.
fn wrong(root: &Path) -> Vec<String> {
    let mut folder = Folder::default();
    let mut wrong = Vec::new();
    for drive in drives::list(root).unwrap() {
        folder.take_drive(drive.number);
        for file in &drive.files {
            let at = Place { drive: drive.number, part: drives::part_of(file).unwrap() };
            let recording = Recording::read(file).unwrap();
            wrong.extend((!recording.is_right()).then(|| format!("{at} is broken")));
            wrong.extend(folder.take(at, &recording).map(|fault| fault.to_string()));
        }
    }
    let faults = folder.faults(&Note::read(root));
    wrong.extend(faults.iter().map(ToString::to_string));
    wrong
}

fn part(root: &Path, drive: u32) -> std::path::PathBuf {
    root.join(format!("drive-{drive:06}/part-001.mcap"))
}

fn copy(root: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for drive in drives::list(root).unwrap() {
        let folder = copy.path().join(drive.folder.file_name().unwrap());
        std::fs::create_dir(&folder).unwrap();
        for file in &drive.files {
            std::fs::copy(file, folder.join(file.file_name().unwrap())).unwrap();
        }
    }
    std::fs::copy(root.join(note::NAME), copy.path().join(note::NAME)).unwrap();
    copy
}

#[test]
fn missing_shortened_and_replaced_files_are_named() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), 3, |_| {});
    assert_eq!(wrong(root.path()), [""; 0]);
    let told = |act: &dyn Fn(&Path)| {
        let copy = copy(root.path());
        act(copy.path());
        wrong(copy.path()).join("; ")
    };
    for drive in 1..=3 {
        let gone =
            told(&|root| std::fs::remove_dir_all(root.join(format!("drive-{drive:06}"))).unwrap());
        let missing = format!("drive {drive} is missing, and no deletion of it is recorded");
        assert!(gone.contains(&missing), "{gone}");
        let emptied = told(&|root| std::fs::remove_file(part(root, drive)).unwrap());
        assert!(emptied.contains(&format!("drive {drive}, part 1 is missing: ")), "{emptied}");
        let shortened = told(&|root| {
            let bytes = std::fs::read(part(root, drive)).unwrap();
            std::fs::write(part(root, drive), &bytes[..bytes.len() * 9 / 10]).unwrap();
        });
        let by = if drive == 3 {
            "newest.json".to_owned()
        } else {
            format!("drive {}, part 1", drive + 1)
        };
        assert!(
            shortened.contains(&format!("drive {drive}, part 1 was shortened or replaced: ")),
            "{shortened}"
        );
        assert!(shortened.contains(&format!(" that {by} refers to")), "{shortened}");
    }
    let replaced = told(&|root| {
        std::fs::copy(part(root, 1), part(root, 2)).unwrap();
    });
    assert!(replaced.contains("drive 2, part 1 claims to be drive 1, part 1"), "{replaced}");
    assert!(replaced.contains("drive 2, part 1 was shortened or replaced"), "{replaced}");
    let noteless = told(&|root| std::fs::remove_file(root.join(note::NAME)).unwrap());
    assert!(noteless.starts_with("newest.json is missing"), "{noteless}");
    let forged = told(&|root| std::fs::write(root.join(note::NAME), "{}").unwrap());
    assert!(forged.starts_with("newest.json: it does not match its signature"), "{forged}");
}

#[test]
fn a_missing_newest_drive_is_still_named_after_the_next() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), 2, |_| {});
    std::fs::remove_dir_all(root.path().join("drive-000002")).unwrap();
    record(root.path(), 1, |_| {});
    let wrong = wrong(root.path()).join("; ");
    assert!(part(root.path(), 3).exists(), "its number is not given twice");
    assert!(wrong.contains("drive 2 is missing"), "{wrong}");
    assert!(wrong.contains("drive 2, part 1 is missing: drive 3, part 1 refers to it"), "{wrong}");
}

#[test]
fn a_drive_deleted_as_the_settings_say_is_not_missing() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), 2, |_| {});
    // The drive ended a long time ago.
    let file = std::fs::File::options().append(true).open(part(root.path(), 1)).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
    record(root.path(), 1, |config| config.keep_days = 7);
    assert!(!part(root.path(), 1).exists());
    assert_eq!(wrong(root.path()), [""; 0]);
    // The next process knows about the deletion; a drive deleted by hand is reported.
    record(root.path(), 1, |_| {});
    assert_eq!(wrong(root.path()), [""; 0]);
    std::fs::remove_dir_all(root.path().join("drive-000002")).unwrap();
    let wrong = wrong(root.path()).join("; ");
    assert!(wrong.starts_with("drive 2 is missing, and no deletion of it is recorded"), "{wrong}");
}

#[test]
fn a_folder_of_the_first_format_goes_on_in_the_second() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("drive-000001")).unwrap();
    let first = include_bytes!("../recording/files/first-format.mcap");
    std::fs::write(part(root.path(), 1), first).unwrap();
    assert_eq!(wrong(root.path()), [""; 0]);
    record(root.path(), 1, |_| {});
    assert_eq!(wrong(root.path()), [""; 0]);
    std::fs::write(part(root.path(), 1), &first[..first.len() * 2 / 3]).unwrap();
    let wrong = wrong(root.path()).join("; ");
    assert!(wrong.starts_with("drive 1, part 1 was shortened or replaced"), "{wrong}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_cut_or_a_flip_of_any_file_of_a_folder_is_named(
        drive in 1u32..=3,
        at in 0.0..1.0f64,
        bit in 0u8..8,
        is_cut: bool,
    ) {
        static ROOT: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
        let root = ROOT.get_or_init(|| {
            let root = tempfile::tempdir().unwrap();
            record(root.path(), 3, |_| {});
            root
        });
        let copy = copy(root.path());
        let mut bytes = std::fs::read(part(copy.path(), drive)).unwrap();
        let at = (at * bytes.len() as f64) as usize;
        match is_cut {
            // A cut within the end of the file is no fault.
            true => bytes.truncate(at.min(bytes.len() - 600)),
            false => bytes[at] ^= 1 << bit,
        }
        std::fs::write(part(copy.path(), drive), bytes).unwrap();
        prop_assert!(!wrong(copy.path()).is_empty());
    }
}

const UNIX_NANOS: u64 = 1_795_391_100_000_000_000;
