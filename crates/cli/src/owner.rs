//! Facts that only the owner of a machine knows, asked for when its settings are written.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

/// The owner's answers about a machine; those without a flag are asked for at a terminal.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Owner {
    /// Mass of the machine with its heaviest load, in kg [default: asked at a terminal, else 1400]
    #[arg(long, value_name = "KG")]
    mass_kg: Option<f32>,
    /// Maximum speed for a person who drives it, in m/s [default: asked at a terminal, else 15]
    #[arg(long, value_name = "M_PER_S")]
    speed_max: Option<f32>,
    /// Require a dead-man input to be held while driving [default: asked at a terminal, else auto]
    #[arg(long, value_enum)]
    dead_man: Option<DeadMan>,
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
        let Self { mut mass_kg, mut speed_max, mut dead_man } = self;
        if mass_kg.is_none() {
            let question = "Mass of the machine with its heaviest load, in kg [1400]: ";
            mass_kg = answer(question, input, output, |line| line.parse().ok())?;
        }
        if speed_max.is_none() {
            let question = "Most speed that a person may drive it at, in m/s [15]: ";
            speed_max = answer(question, input, output, |line| line.parse().ok())?;
        }
        if dead_man.is_none() {
            let so_far = Self { mass_kg, speed_max, dead_man };
            let derived = if so_far.settings()?.1 { "required" } else { "not required" };
            let question = format!(
                "Must a person hold a dead-man input to drive it (yes, no, auto)? By mass and speed it is {derived} [auto]: "
            );
            dead_man = answer(&question, input, output, |line| DeadMan::from_str(line, true).ok())?;
        }
        Ok(Self { mass_kg, speed_max, dead_man })
    }

    /// Returns these answers as sections of a guard's settings file, and whether they, with the
    /// guard's defaults, require a dead-man input.
    ///
    /// # Errors
    /// Fails if a guard rejects the answers.
    pub(crate) fn settings(&self) -> anyhow::Result<(String, bool)> {
        let mut text = String::new();
        if let Some(mass) = self.mass_kg {
            text += &format!("[guard.machine]\nmass_kg = {mass:?}\n");
        }
        if let Some(speed) = self.speed_max {
            text += &format!("[guard.envelope]\nspeed_max_m_per_s = {speed:?}\n");
        }
        match self.dead_man {
            Some(DeadMan::Yes) => text += "[guard.presence]\ndead_man_required = true\n",
            Some(DeadMan::No) => text += "[guard.presence]\ndead_man_required = false\n",
            Some(DeadMan::Auto) | None => {}
        }
        let table: toml::Table = text.parse().context("the answers make no settings")?;
        let guard = table.get("guard").cloned().unwrap_or_else(|| toml::Table::new().into());
        let config: tautline_guard::Config = guard.try_into()?;
        config.validate()?;
        Ok((text, config.requires_dead_man()))
    }
}

/// Asks up to five times until the answer is valid; `None` for an empty line. Fails after that.
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
        assert_eq!(owner.settings().unwrap().0, "[guard.presence]\ndead_man_required = false\n");
        assert!(asked(&"?\n".repeat(9)).is_err());
    }

    #[test]
    fn answers_that_a_guard_refuses_are_named() {
        let owner = Owner { mass_kg: Some(-4.0), ..Owner::default() };
        assert!(owner.settings().unwrap_err().to_string().contains("machine.mass_kg = -4"));
        assert!(Owner::default().settings().unwrap().1, "a car's");
    }
}
