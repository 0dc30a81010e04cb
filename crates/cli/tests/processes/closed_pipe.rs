//! Commands that print into a pipe whose reader has gone.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::bad_input::Board;

/// Runs a command without a reader of its standard output, as with `| head -n 0`.
fn unread(arguments: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tautline"));
    command.args(arguments).env_remove("TAUTLINE_CONFIG").env("TAUTLINE_LOG", "off");
    command.stdin(Stdio::null()).stdout(writer).output().unwrap()
}

#[test]
fn every_command_ends_quietly_on_a_closed_pipe() {
    let board = Board::start();
    let path = |name: &str| board.folder.path(name).to_str().unwrap().to_owned();
    let (board_key, new_key) = (path("board.key"), path("another.key"));
    let (init, drives, samples) = (path("init"), path("drives"), path("samples"));
    std::fs::create_dir_all(&drives).unwrap();
    std::fs::create_dir_all(&samples).unwrap();
    let state = ["--key", &board_key, "--listen", &board.address];
    let who = [&["switchboard", "who"][..], &state].concat();
    let name = ["--role", "vehicle", "--name", "car-7"];
    let invite = [&["switchboard", "invite"][..], &name, &state].concat();
    let copy = path("copy.redb");
    let backup = [&["switchboard", "backup", &copy][..], &state].concat();
    let doctor = format!("{init}/operator/operator.toml");
    let commands: Vec<Vec<&str>> = vec![
        vec!["--help"],
        vec!["--version"],
        vec!["vehicle", "--help"],
        vec!["keys", "new", &new_key],
        vec!["keys", "show", &board_key],
        vec!["init", &init],
        who,
        invite,
        backup,
        vec!["reach", &board.address],
        vec!["emulate", "--check", "1"],
        vec!["doctor", "--operator", &doctor],
        vec!["status", "127.0.0.1:1"],
        vec!["latency", &samples],
        vec!["blackbox", "list", &drives],
        #[cfg(feature = "lab")]
        vec!["lab", "list"],
    ];
    let mut said = Vec::new();
    for arguments in commands {
        let output = unread(&arguments);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!words.contains("panicked"), "{arguments:?}: {words}");
        let code = output.status.code();
        assert!(code.is_some_and(|code| code <= 2), "{arguments:?}: {:?}: {words}", output.status);
        // The switchboard of this test answers them, however busy the machine is.
        let is_answered = arguments[0] != "switchboard" || output.status.success();
        assert!(is_answered, "{arguments:?}: {:?}: {words}", output.status);
        said.push(format!("{}: {words}", arguments.join(" ")));
    }
    for written in [new_key, copy] {
        assert!(std::fs::exists(&written).unwrap(), "{written} is missing: {said:#?}");
    }
}

#[test]
fn a_full_disk_is_reported_without_a_panic() {
    let board = Board::start();
    let key = board.folder.path("board.key");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tautline"))
        .args(["keys", "show", key.to_str().unwrap()])
        .stdout(full)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("the answer cannot be written: No space left"), "{words}");
}

#[test]
fn a_process_with_an_unread_log_keeps_running() {
    let board = Board::start();
    let folder = board.folder.path("guard");
    std::fs::create_dir_all(&folder).unwrap();
    let socket = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (vehicle, machine) = (socket("vehicle.sock"), socket("machine.sock"));
    let settings = folder.join("guard.toml");
    std::fs::write(&settings, include_str!("../../src/presets/simulated.toml")).unwrap();
    let settings = settings.to_str().unwrap();
    let guard = ["guard", "--config", settings, "--vehicle", &vehicle, "--machine", &machine];
    let operator_key = board.folder.path("operator-1.key").to_str().unwrap().to_owned();
    let operator = [
        &["operator", "--name", "operator-1", "--key", &operator_key][..],
        &["--switchboard", &board.address, "--switchboard-key", &board.key],
        &["--link", "127.0.0.1:0", "--console", "127.0.0.1:0", "--vehicle", "car-9"],
    ];
    for arguments in [&guard[..], &operator.concat()] {
        let pipes = [std::io::pipe().unwrap(), std::io::pipe().unwrap()];
        let [output, errors] = pipes.map(|(_reader, writer)| writer);
        let mut process = Command::new(env!("CARGO_BIN_EXE_tautline"))
            .args(arguments)
            .env_remove("TAUTLINE_CONFIG")
            .env("TAUTLINE_LOG", "trace")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .unwrap();
        for _ in 0..40 {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "{arguments:?} ended: {ended:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
        let id = rustix::process::Pid::from_raw(process.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        let status = process.wait().unwrap();
        assert!(status.success(), "{arguments:?}: {status:?}");
    }
}
