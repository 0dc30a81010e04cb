//! Settings to begin from, for each kind of machine.

use clap::ValueEnum;
use tautline_guard::{Config, ConfigError};
use tautline_vehicle::SimulatedMachine;

use crate::machine::kind;

/// A kind of machine whose settings `init` writes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub(crate) enum Preset {
    /// The simulated car of the test track, complete
    #[default]
    Simulated,
    /// A car-like machine: steering, throttle, brake
    Car,
    /// A robot on two driven wheels, which turns on the spot
    Robot,
    /// A rover on tracks
    Rover,
    /// A cart on wheels that also roll sideways
    Cart,
}

impl Preset {
    /// Returns the sections of the guard's settings. A number in `answers` replaces that of the
    /// same name; without one, a number that only the owner knows is a marked blank.
    pub(crate) fn settings(self, answers: &[(&str, Option<f32>)]) -> String {
        let line = |line: &str| {
            let Some((setting, rest)) = line.split_once(" = ") else { return format!("{line}\n") };
            let known = answers.iter().find(|(name, _)| *name == setting).and_then(|(_, it)| *it);
            match (known, rest.strip_prefix(BLANK)) {
                (Some(number), _) => format!("{setting} = {number:?}\n"),
                (None, Some(about)) => format!("# {setting} =  # FILL IN: {}\n", about.trim()),
                (None, None) => format!("{line}\n"),
            }
        };
        self.text().lines().map(line).collect()
    }

    /// Returns the sections of the guard's settings with the numbers of the test track's machine of
    /// this kind: complete.
    pub(crate) fn simulated(machine: SimulatedMachine) -> String {
        let config = kind(machine).settings();
        let preset = match machine {
            SimulatedMachine::Car => Self::Simulated,
            SimulatedMachine::Robot => Self::Robot,
            SimulatedMachine::Rover => Self::Rover,
            SimulatedMachine::Cart => Self::Cart,
        };
        preset.settings(&numbers(&config))
    }

    /// Returns the simulated machine that stands in for one of this kind.
    pub(crate) fn stand_in(self) -> SimulatedMachine {
        match self {
            Self::Simulated | Self::Car => SimulatedMachine::Car,
            Self::Robot => SimulatedMachine::Robot,
            Self::Rover => SimulatedMachine::Rover,
            Self::Cart => SimulatedMachine::Cart,
        }
    }

    /// Returns the settings that only the owner knows, and what they are.
    pub(crate) fn blanks(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.text().lines().filter_map(|line| {
            let (setting, rest) = line.split_once(" = ")?;
            Some((setting, rest.strip_prefix(BLANK)?.trim()))
        })
    }

    fn text(self) -> &'static str {
        match self {
            Self::Simulated => include_str!("presets/simulated.toml"),
            Self::Car => include_str!("presets/car.toml"),
            Self::Robot => include_str!("presets/robot.toml"),
            Self::Rover => include_str!("presets/rover.toml"),
            Self::Cart => include_str!("presets/cart.toml"),
        }
    }

    /// Returns the number of `setting` in this kind's settings; `None` if it is a blank or not
    /// there.
    pub(crate) fn default_of(self, setting: &str) -> Option<f32> {
        let table: toml::Table = self.settings(&[]).parse().ok()?;
        let sections = table.get("guard")?.as_table()?;
        let found = sections.values().find_map(|section| section.get(setting))?;
        found.as_float().map(|number| number as f32)
    }
}

/// Returns the guard's settings in this text, which may have blanks.
///
/// # Errors
/// Fails with every fault other than a blank.
pub(crate) fn checked(text: &str) -> anyhow::Result<Config> {
    let table: toml::Table = text.parse()?;
    let guard = table.get("guard").cloned().unwrap_or_else(|| toml::Table::new().into());
    let config: Config = guard.try_into()?;
    let is_blank = |fault: &ConfigError| matches!(fault, ConfigError::Missing { .. });
    let faults = config.faults().filter(|fault| !is_blank(fault));
    let faults: Vec<String> = faults.map(|fault| fault.to_string()).collect();
    anyhow::ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(config)
}

/// Returns how many settings of a machine are still to be filled in.
pub(crate) fn blanks(config: &Config) -> usize {
    config.faults().filter(|fault| matches!(fault, ConfigError::Missing { .. })).count()
}

/// Returns the numbers of a machine that only its owner knows, with the settings' names.
fn numbers(config: &Config) -> Vec<(&'static str, Option<f32>)> {
    let Config { machine, envelope, .. } = config;
    let all = [
        ("wheelbase_m", machine.wheelbase),
        ("steering_angle_max_rad", machine.steering_angle_max),
        ("track_width_m", machine.track_width),
        ("length_m", machine.length),
        ("wheel_speed_max_m_per_s", machine.wheel_speed_max),
        ("deceleration_max_m_per_s2", machine.deceleration_max),
        ("acceleration_max_m_per_s2", machine.acceleration_max),
        ("mass_kg", machine.mass),
        ("speed_max_m_per_s", envelope.speed_max),
    ];
    all.map(|(name, number)| (name, Some(number).filter(|number| !number.is_nan()))).into()
}

/// Beginning of the value of a setting that only the owner knows; what the number means follows it.
const BLANK: &str = "?  #";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_with_the_owners_numbers_is_complete() {
        for (machine, config) in [
            (SimulatedMachine::Car, Config::car()),
            (SimulatedMachine::Robot, Config::robot()),
            (SimulatedMachine::Rover, Config::rover()),
            (SimulatedMachine::Cart, Config::cart()),
        ] {
            let read = checked(&Preset::simulated(machine)).unwrap();
            assert_eq!(read.validate(), Ok(()), "{machine}");
            // NaN is not equal to NaN: the texts are.
            assert_eq!(format!("{read:?}"), format!("{config:?}"), "{machine}");
        }
        let car = checked(&Preset::Car.settings(&numbers(&Config::car()))).unwrap();
        assert_eq!(car.validate(), Ok(()));
    }

    #[test]
    fn the_owners_numbers_are_blanks_that_no_guard_starts_with() {
        for (preset, count) in
            [(Preset::Car, 6), (Preset::Robot, 7), (Preset::Rover, 7), (Preset::Cart, 7)]
        {
            let text = preset.settings(&[]);
            assert_eq!(text.matches("FILL IN: ").count(), count, "{text}");
            let config = checked(&text).unwrap();
            assert_eq!(blanks(&config), count, "{preset:?}: {:?}", config.faults().next());
            assert!(config.requires_dead_man(), "until the numbers say otherwise");
        }
        assert_eq!(blanks(&checked(&Preset::Simulated.settings(&[])).unwrap()), 0);
    }
}
