//! Coding of a vehicle's pictures: flags common to all commands that start a vehicle.

use std::fmt::Write;

use anyhow::ensure;
use clap::Args;
use tautline_vehicle::{AfterPause, Config, EncoderChoice, LossRecovery};

use crate::settings::set;

/// Flags of the coding, each with a setting of the same name.
#[derive(Clone, Debug, Args)]
pub(crate) struct Coding {
    /// Encoder of the strips: own or openh264 [default: own]
    #[arg(long, env = "TAUTLINE_ENCODER", value_name = "NAME")]
    encoder: Option<EncoderChoice>,
    /// Loss recovery of Tautline's own encoder: idr, intra-refresh, intra-columns,
    /// intra-refresh-on-loss, acknowledged-references, reference-selection or references-by-loss
    /// [default: references-by-loss]
    #[arg(long, env = "TAUTLINE_LOSS_RECOVERY", value_name = "WAY")]
    loss_recovery: Option<LossRecovery>,
    /// Pictures per intra refresh, and distance in columns between refreshed columns, 2 to 250
    /// [default: 8]
    #[arg(long, value_name = "PICTURES")]
    refresh_period: Option<u8>,
    /// Maximum distance of a reference picture in pictures, for acknowledged-references,
    /// reference-selection and references-by-loss, 1 to 16 [default: 16]
    #[arg(long, value_name = "PICTURES")]
    references: Option<u8>,
    /// Let Tautline's own encoder produce strips that an operator's --record can also join to
    /// complete pictures, for ordinary players. Strips are then not predicted from beyond their
    /// edges. This costs 4 to 12 % of rate at the same quality, most where much moves vertically
    /// across strips
    #[arg(long)]
    joinable: bool,
    /// Reaction after a pause without any link: recover, each strip by its encoder's own method, or
    /// idr [default: recover]
    #[arg(long, value_name = "WAY")]
    after_pause: Option<AfterPause>,
}

impl Coding {
    /// Overrides the settings with the flags that were given.
    pub(crate) fn set(&self, config: &mut Config) {
        set(&mut config.encoder, self.encoder);
        set(&mut config.loss_recovery, self.loss_recovery);
        set(&mut config.refresh_period, self.refresh_period);
        set(&mut config.references, self.references);
        set(&mut config.joinable, self.joinable.then_some(true));
        set(&mut config.after_pause, self.after_pause);
    }

    /// Checks that this binary has the chosen encoder.
    ///
    /// # Errors
    /// Returns one line that says how to build a binary with the encoder.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let mut config = Config::default();
        self.set(&mut config);
        ensure!(
            config.backend().is_built(),
            "--encoder {0} is not in this binary: \
             cargo build --release --package tautline --features {0}",
            config.encoder
        );
        Ok(())
    }

    /// Returns the given flags as lines of a settings file.
    pub(crate) fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                writeln!(text, "{name} = {value}").expect("a string takes all");
            }
        };
        line("encoder", self.encoder.map(|name| format!("\"{name}\"")));
        line("loss_recovery", self.loss_recovery.map(|name| format!("\"{name}\"")));
        line("refresh_period", self.refresh_period.map(|count| count.to_string()));
        line("references", self.references.map(|count| count.to_string()));
        line("joinable", self.joinable.then(|| "true".into()));
        line("after_pause", self.after_pause.map(|name| format!("\"{name}\"")));
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
        coding: Coding,
    }

    #[test]
    fn flags_and_file_say_the_same() {
        let flags = [
            "tautline",
            "--encoder",
            "own",
            "--loss-recovery",
            "intra-refresh-on-loss",
            "--refresh-period",
            "5",
        ];
        let flags =
            flags.into_iter().chain(["--references", "3", "--after-pause", "idr", "--joinable"]);
        let coding = Flags::try_parse_from(flags).unwrap().coding;
        let mut flagged = Config::default();
        coding.set(&mut flagged);
        let filed: Config = toml::from_str(&coding.to_toml()).unwrap();
        assert_eq!(flagged.backend(), filed.backend());
        assert!(filed.joinable);
        assert_eq!(
            (
                filed.encoder,
                filed.loss_recovery,
                filed.refresh_period,
                filed.references,
                filed.after_pause
            ),
            (EncoderChoice::Own, LossRecovery::IntraRefreshOnLoss, 5, 3, AfterPause::Idr)
        );
    }

    #[test]
    fn a_name_that_is_none_is_refused_with_those_that_are() {
        let error = Flags::try_parse_from(["tautline", "--encoder", "x265"]).unwrap_err();
        assert!(error.to_string().contains("not one of own, openh264"), "{error}");
    }
}
