//! `tautline lab gate-alone`: the ends of a drive in which nothing but the gate is at work.

use clap::Subcommand;
use tautline_lab::papers::leave_gate_alone;

use crate::operator::Operator;
use crate::stop;
use crate::vehicle::Vehicle;

/// An end with a fixed rate and a fixed code rate, started by `ugv-files-gate` and
/// `ugv-files-sizes`.
#[derive(Debug, Subcommand)]
pub(crate) enum GateAlone {
    Vehicle(Vehicle),
    Operator(Operator),
}

impl GateAlone {
    /// Runs the end until it is asked to end.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Vehicle(vehicle) => stop::block_on(vehicle.run_with(leave_gate_alone)),
            Self::Operator(operator) => stop::block_on(operator.run_with(leave_gate_alone)),
        }
    }
}
