//! The `tautline` binary: every part of the system, each as a process of its own.
#![forbid(unsafe_code)]

mod coding;
mod demo;
mod emulate;
mod keys;
mod lab;
mod local;
mod machine;
mod operator;
mod probe;
mod settings;
mod stand;
mod stats;
mod status;
mod stop;
mod switchboard;
mod vehicle;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Drive a machine you cannot see, over the mobile networks that can be bought.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
struct Tautline {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Drive a simulated car in the browser over emulated mobile links
    Demo(demo::Demo),
    /// The vehicle's side: camera, uplink, actuators and failsafe
    Vehicle(vehicle::Vehicle),
    /// The operator's side: downlink, commands and the browser console
    Operator(operator::Operator),
    /// Bring vehicles and operators together
    Switchboard(switchboard::Switchboard),
    /// Emulate mobile links as a UDP relay
    Emulate(emulate::Emulate),
    Status(status::Status),
    Probe(probe::Probe),
    Keys(keys::Keys),
    Lab(lab::Lab),
}

fn main() -> ExitCode {
    stand::follow_parent();
    let tautline = Tautline::parse();
    let default = match tautline.command {
        Command::Demo(_) | Command::Lab(_) | Command::Status(_) | Command::Probe(_) => "warn",
        Command::Vehicle(_)
        | Command::Operator(_)
        | Command::Switchboard(_)
        | Command::Emulate(_)
        | Command::Keys(_) => "info",
    };
    let filter = EnvFilter::try_from_env("TAUTLINE_LOG").unwrap_or_else(|_| default.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let ended = match tautline.command {
        Command::Demo(demo) => stop::block_on(demo.run()),
        Command::Vehicle(vehicle) => stop::block_on(vehicle.run()),
        Command::Operator(operator) => stop::block_on(operator.run()),
        Command::Switchboard(switchboard) => stop::block_on(switchboard.run()),
        Command::Emulate(emulate) => stop::block_on(emulate.run()),
        Command::Status(status) => stop::block_on(status.run()),
        Command::Probe(probe) => probe.run(),
        Command::Keys(keys) => keys.run(),
        Command::Lab(lab) => lab.run(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tautline: {error:#}");
            ExitCode::FAILURE
        }
    }
}
