//! The `tautline` binary: every component of the system, each as a process of its own.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

mod blackbox;
mod can;
mod coding;
mod demo;
mod doctor;
mod emulate;
mod end;
mod enroll;
mod folders;
mod guard;
mod init;
mod keys;
#[cfg(feature = "lab")]
mod lab;
mod latency;
mod local;
mod local_system;
mod machine;
#[cfg(any(test, not(feature = "quorum")))]
mod missing;
mod operator;
mod owner;
mod path_size;
mod preset;
#[cfg(feature = "lab")]
mod probe;
mod reach;
mod relay;
mod service;
mod settings;
mod source;
mod stats;
mod status;
mod stop;
mod switchboard;
mod thread;
mod up;
mod vehicle;
mod view;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Remote driving over several mobile links.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
struct Tautline {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Drive a simulated machine in the browser over emulated mobile links
    Demo(demo::Demo),
    /// Run the vehicle's side: camera, uplink, and proposals to the guard
    Vehicle(vehicle::Vehicle),
    /// Run the guard between a vehicle and its machine: it alone moves and stops the machine
    Guard(guard::Guard),
    /// Run a simulated machine behind the guard's port, like any other
    Machine(machine::Simulated),
    Can(can::Can),
    /// Run the operator's side: downlink, commands and the browser console
    Operator(operator::Operator),
    /// Run the switchboard, which brings vehicles and operators together
    Switchboard(switchboard::Switchboard),
    /// Run a relay, which forwards sealed datagrams between the two ends of a lease
    Relay(relay::Relay),
    /// Emulate mobile links, as a UDP relay or as network devices for any kind of socket
    Emulate(emulate::Emulate),
    Status(status::Status),
    Reach(reach::Reach),
    Latency(latency::Latency),
    #[cfg(feature = "lab")]
    Probe(probe::Probe),
    /// Run an experiment on a running session [not in this binary]
    #[cfg(not(feature = "lab"))]
    Probe(missing::Missing),
    Init(init::Init),
    Enroll(enroll::Enroll),
    Up(up::Up),
    End(end::End),
    Doctor(doctor::Doctor),
    Keys(keys::Keys),
    Blackbox(blackbox::Blackbox),
    #[cfg(feature = "lab")]
    Lab(lab::Lab),
    /// Measure: the papers' tables and figures, and the whole system [not in this binary]
    #[cfg(not(feature = "lab"))]
    Lab(missing::Missing),
}

fn main() -> ExitCode {
    local_system::follow_parent();
    let tautline = Tautline::parse();
    let default = match tautline.command {
        Command::Demo(_)
        | Command::Lab(_)
        | Command::Doctor(_)
        | Command::Status(_)
        | Command::Reach(_)
        | Command::Latency(_)
        | Command::End(_)
        | Command::Up(_)
        | Command::Probe(_)
        | Command::Blackbox(_) => "warn",
        Command::Vehicle(_)
        | Command::Guard(_)
        | Command::Machine(_)
        | Command::Can(_)
        | Command::Operator(_)
        | Command::Switchboard(_)
        | Command::Relay(_)
        | Command::Emulate(_)
        | Command::Init(_)
        | Command::Enroll(_)
        | Command::Keys(_) => "info",
    };
    let filter = EnvFilter::try_from_env("TAUTLINE_LOG").unwrap_or_else(|_| default.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // A log whose reader has gone must not end the thread that writes it.
        .log_internal_errors(false)
        .init();
    if let Err(error) = tautline_net::open_files::raise_limit() {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
    let ended = match tautline.command {
        Command::Demo(demo) => stop::block_on(demo.run()),
        Command::Vehicle(vehicle) => stop::block_on(vehicle.run()),
        Command::Guard(guard) => stop::block_on(guard.run()),
        Command::Machine(machine) => stop::block_on(machine.run()),
        Command::Can(can) => stop::block_on(can.run()),
        Command::Operator(operator) => stop::block_on(operator.run()),
        Command::Switchboard(switchboard) => stop::block_on(switchboard.run()),
        Command::Relay(relay) => stop::block_on(relay.run()),
        Command::Emulate(emulate) => stop::block_on(emulate.run()),
        Command::Status(status) => stop::block_on(status.run()),
        Command::Reach(reach) => stop::block_on(reach.run()),
        Command::Latency(latency) => latency.run(),
        #[cfg(feature = "lab")]
        Command::Probe(probe) => probe.run(),
        #[cfg(not(feature = "lab"))]
        Command::Probe(probe) => probe.run("probe", "lab"),
        Command::Init(init) => init.run(),
        Command::Enroll(enroll) => stop::block_on(enroll.run()),
        Command::Up(up) => stop::block_on(up.run()),
        Command::End(end) => stop::block_on(end.run()),
        Command::Doctor(doctor) => stop::block_on(doctor.run()),
        Command::Keys(keys) => keys.run(),
        Command::Blackbox(blackbox) => blackbox.run(),
        #[cfg(feature = "lab")]
        Command::Lab(lab) => lab.run(),
        #[cfg(not(feature = "lab"))]
        Command::Lab(lab) => lab.run("lab", "lab"),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("tautline: {error:#}");
            if let Some(unheld) = error.downcast_ref::<end::Unheld>() {
                return ExitCode::from(unheld.exit_code());
            }
            match settings::is_wrong(&error) {
                true => ExitCode::from(settings::WRONG),
                false => ExitCode::FAILURE,
            }
        }
    }
}
