//! Facts that only the owner of a machine knows, asked for when its settings are written.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use tautline_vehicle::SimulatedMachine;

use crate::preset::{self, Preset};

/// The owner's answers about a machine; those without a flag are asked for at a terminal.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Owner {
    /// Kind of the machine, whose settings are written. Numbers that only its owner knows are asked
    /// at a terminal, else left blank; the guard does not start with blanks
    #[arg(long, value_enum, default_value_t)]
    machine: Preset,
    /// Mass of the machine with its heaviest load, in kg [default: asked at a terminal, else that
    /// of the simulated car, or blank]
    #[arg(long, value_name = "KG")]
    mass_kg: Option<f32>,
    /// Maximum speed for a person who drives it, in m/s [default: asked at a terminal, else that of
    /// the simulated car, or blank]
    #[arg(long, value_name = "M_PER_S")]
    speed_max: Option<f32>,
    /// Require a dead-man input to be held while driving [default: asked at a terminal, else auto]
    #[arg(long, value_enum)]
    dead_man: Option<DeadMan>,
    /// Answers to the further blanks of the machine's settings, each with the setting's name.
    #[arg(skip)]
    others: Vec<(&'static str, f32)>,
}

/// The dead-man input of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DeadMan {
    /// A person must hold it
    Yes,
    /// Not required
    No,
    /// Derived from mass and speed, as described in docs/safety.md
    Auto,
}

impl Owner {
    /// Asks for the answers without a flag, if standard input is a terminal; otherwise returns
    /// those of the flags.
    ///
    /// # Errors
    /// Fails if an answer cannot be read, or is invalid five times.
    pub(crate) fn ask(self) -> anyhow::Result<Self> {
        if std::io::stdin().is_terminal() {
            self.ask_by(&mut std::io::stdin().lock(), &mut std::io::stderr())
        } else {
            Ok(self)
        }
    }

    fn ask_by(self, input: &mut impl BufRead, output: &mut impl Write) -> anyhow::Result<Self> {
        let Self { machine, mut mass_kg, mut speed_max, mut dead_man, mut others } = self;
        let otherwise = |setting| match machine.default_of(setting) {
            Some(number) => number.to_string(),
            None => "blank".to_owned(),
        };
        if mass_kg.is_none() {
            let question = format!(
                "Mass of the machine with its heaviest load, in kg [{}]: ",
                otherwise(MASS)
            );
            mass_kg = answer(&question, input, output, |line| line.parse().ok())?;
        }
        if speed_max.is_none() {
            let question = format!(
                "Most speed that a person may drive it at, in m/s [{}]: ",
                otherwise(SPEED)
            );
            speed_max = answer(&question, input, output, |line| line.parse().ok())?;
        }
        for (setting, about) in machine.blanks() {
            if [MASS, SPEED].contains(&setting) {
                continue;
            }
            let question = format!("{setting}, {about} [blank]: ");
            let number = answer(&question, input, output, |line| line.parse().ok())?;
            others.extend(number.map(|number| (setting, number)));
        }
        if dead_man.is_none() {
            let so_far = Self { machine, mass_kg, speed_max, dead_man, others: others.clone() };
            let derived = if so_far.settings()?.1 { "required" } else { "not required" };
            let question = format!(
                "Must a person hold a dead-man input to drive it (yes, no, auto)? By mass and speed it is {derived} [auto]: "
            );
            dead_man = answer(&question, input, output, |line| DeadMan::from_str(line, true).ok())?;
        }
        Ok(Self { machine, mass_kg, speed_max, dead_man, others })
    }

    /// Returns these answers as sections of a guard's settings file, and whether they, with the
    /// guard's defaults, require a dead-man input.
    ///
    /// # Errors
    /// Fails if a guard rejects the answers.
    pub(crate) fn settings(&self) -> anyhow::Result<(String, bool)> {
        let others = self.others.iter().map(|(setting, number)| (*setting, Some(*number)));
        let answers: Vec<_> =
            [(MASS, self.mass_kg), (SPEED, self.speed_max)].into_iter().chain(others).collect();
        let mut text = self.machine.settings(&answers);
        match self.dead_man {
            Some(DeadMan::Yes) => text += "[guard.presence]\ndead_man_required = true\n",
            Some(DeadMan::No) => text += "[guard.presence]\ndead_man_required = false\n",
            Some(DeadMan::Auto) | None => {}
        }
        let config = preset::checked(&text)?;
        Ok((text, config.requires_dead_man()))
    }
}

impl Owner {
    /// Returns the simulated machine that drives in the place of the owner's.
    pub(crate) fn stand_in(&self) -> SimulatedMachine {
        self.machine.stand_in()
    }

    /// Returns a text for the owner if numbers are still to be filled in.
    ///
    /// # Errors
    /// Fails if a guard rejects the answers.
    pub(crate) fn blanks_words(&self) -> anyhow::Result<Option<String>> {
        let count = preset::blanks(&preset::checked(&self.settings()?.0)?);
        Ok((count > 0).then(|| {
            format!(
                "Fill in the numbers that only you know: they are marked FILL IN in guard.toml ({count}). \
                 The guard does not start without them."
            )
        }))
    }
}

/// Asks up to five times until the answer is valid; `None` for an empty line or the end of the
/// input. Fails after that.
fn answer<T>(
    question: &str,
    input: &mut impl BufRead,
    output: &mut impl Write,
    read: impl Fn(&str) -> Option<T>,
) -> anyhow::Result<Option<T>> {
    for _ in 0..TRIES {
        write!(output, "{question}")
            .and_then(|()| output.flush())
            .context("nothing can be asked")?;
        let mut line = String::new();
        input.read_line(&mut line).context("no answer can be read")?;
        match line.trim() {
            "" => return Ok(None),
            line => {
                if let Some(answer) = read(line) {
                    return Ok(Some(answer));
                }
            }
        }
    }
    bail!("no answer to: {question}")
}

const TRIES: usize = 5;
const MASS: &str = "mass_kg";
const SPEED: &str = "speed_max_m_per_s";

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lines: &str) -> anyhow::Result<(Owner, String)> {
        let mut shown = Vec::new();
        let owner = Owner::default().ask_by(&mut lines.as_bytes(), &mut shown)?;
        Ok((owner, String::from_utf8(shown)?))
    }

    #[test]
    fn an_owner_is_asked_for_mass_speed_and_a_dead_man_input() {
        let (owner, shown) = asked("20\n1.5\n\n").unwrap();
        assert!(shown.contains("By mass and speed it is not required"), "{shown}");
        let (text, is_required) = owner.settings().unwrap();
        assert!(text.contains("mass_kg = 20.0") && text.contains("speed_max_m_per_s = 1.5"));
        assert!(!is_required);
        let (owner, shown) = asked("\nfast\n\nno\n").unwrap();
        assert!(shown.contains("By mass and speed it is required"), "{shown}");
        let (text, _) = owner.settings().unwrap();
        assert!(text.contains("mass_kg = 1400.0\n"), "{text}");
        assert!(text.ends_with("[guard.presence]\ndead_man_required = false\n"), "{text}");
        assert!(asked(&"?\n".repeat(9)).is_err());
    }

    #[test]
    fn an_owner_of_a_robot_is_asked_for_what_only_the_owner_knows() {
        let robot = || Owner { machine: Preset::Robot, ..Owner::default() };
        let mut shown = Vec::new();
        let lines = "60\n1.5\n0.5\n\n1.8\n2.5\n1.5\n\n";
        let owner = robot().ask_by(&mut lines.as_bytes(), &mut shown).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains("length_m, of the machine, which a turn swings [blank]"), "{shown}");
        let (text, is_required) = owner.settings().unwrap();
        assert!(text.contains("track_width_m = 0.5\n") && text.contains("mass_kg = 60.0\n"));
        assert_eq!(text.matches("FILL IN").count(), 1 + 1, "the length, and what it means: {text}");
        assert!(is_required, "while something is not known");
        assert!(owner.blanks_words().unwrap().unwrap().contains("guard.toml (1)"));
        let wrong = Owner { speed_max: Some(99.0), mass_kg: Some(-1.0), ..robot() };
        let told = wrong.settings().unwrap_err().to_string();
        assert!(told.contains("mass_kg = -1") && told.contains("speed_max_m_per_s = 99"), "{told}");
    }

    #[test]
    fn answers_that_a_guard_refuses_are_named() {
        let owner = Owner { mass_kg: Some(-4.0), ..Owner::default() };
        assert!(owner.settings().unwrap_err().to_string().contains("machine.mass_kg = -4"));
        assert!(Owner::default().settings().unwrap().1, "a car's");
    }
}
