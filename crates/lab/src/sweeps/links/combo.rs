//! Named combinations of rate control, scheduler and code to compare.

use strum::VariantArray;
use tautline_transport::Config;
use tautline_transport::protect::Code;
use tautline_transport::rate::{self, Kind::*};
use tautline_transport::sender::planner::{self, Kind::*};
use tautline_units::Bitrate;

/// One combination of rate control, scheduler and code.
#[derive(Clone, Debug)]
pub struct Combo {
    /// `controller/schedule/code`.
    pub name: String,
    /// True if it is also measured on each link alone, to show the benefit of several links.
    pub alone: bool,
    transport: Config,
}

impl Combo {
    /// Returns the transport's configuration.
    pub fn transport(&self) -> Config {
        self.transport.clone()
    }
}

/// Returns whether the combo with this name always codes 4 packets into 9, as the reference of the
/// comparison does.
pub fn is_four_of_nine(name: &str) -> bool {
    name.ends_with("/4-of-9")
}

/// Returns all combos, the paper's own first and this project's own last. After these come, with
/// default settings, the rate controls that none of them uses.
pub fn all() -> Vec<Combo> {
    let mut all = chosen();
    for kind in rate::Kind::VARIANTS {
        if all.iter().all(|combo| combo.transport.rate.controller != *kind) {
            let name: &str = kind.into();
            all.push(combo(&format!("{name}/quantile/0.5"), |c| c.rate.controller = *kind));
        }
    }
    all
}

fn chosen() -> Vec<Combo> {
    vec![
        // As in [LLMLNCL]: ignores the links' loss and delay.
        combo("two-state/transmission-end/4-of-9", |c| {
            of(c, TwoState, TransmissionEnd, 4.0 / 9.0);
            c.spread = false;
        }),
        combo("two-state/earliest/4-of-9", |c| of(c, TwoState, EarliestDelivery, 4.0 / 9.0)),
        combo("two-state/earliest/4-of-8", |c| of(c, TwoState, EarliestDelivery, 4.0 / 8.0)),
        combo("two-state/earliest/4-of-7", |c| of(c, TwoState, EarliestDelivery, 4.0 / 7.0)),
        combo("two-state/quantile/0.5", |c| of(c, TwoState, Quantile, 1.0)),
        combo("fixed-2-mbps/earliest/4-of-9", |c| {
            of(c, Fixed, EarliestDelivery, 4.0 / 9.0);
            c.rate.initial = Bitrate::from_mbps(2);
        }),
        combo("delay-rate/transmission-end/4-of-9", |c| {
            of(c, DelayRate, TransmissionEnd, 4.0 / 9.0)
        }),
        combo("delay-rate/round-robin/4-of-9", |c| of(c, DelayRate, RoundRobin, 4.0 / 9.0)),
        combo("delay-rate/earliest/4-of-9", |c| of(c, DelayRate, EarliestDelivery, 4.0 / 9.0)),
        combo("delay-rate/earliest/4-of-8", |c| of(c, DelayRate, EarliestDelivery, 4.0 / 8.0)),
        combo("delay-rate/earliest/4-of-7", |c| of(c, DelayRate, EarliestDelivery, 4.0 / 7.0)),
        combo("delay-rate/earliest/stream-4-of-7", |c| {
            of(c, DelayRate, EarliestDelivery, 4.0 / 7.0);
            c.protect.code = Code::Stream;
        }),
        alone("delay-rate/earliest/uncoded", |c| of(c, DelayRate, EarliestDelivery, 1.0)),
        combo("delay-rate/redundant/uncoded", |c| of(c, DelayRate, Redundant, 1.0)),
        combo("delay-rate/best-link/uncoded", |c| of(c, DelayRate, BestLink, 1.0)),
        // Miss target in percent; every unit survives the loss of any one link.
        alone("delay-rate/quantile/0.5", |c| ours(c, 0.005, true)),
        combo("delay-rate/quantile/1", |c| ours(c, 0.01, true)),
        combo("delay-rate/quantile/2", |c| ours(c, 0.02, true)),
        // The same without the requirement that a unit survives the loss of a link.
        combo("delay-rate/quantile-free/0.5", |c| ours(c, 0.005, false)),
        combo("delay-rate/quantile-free/1", |c| ours(c, 0.01, false)),
        combo("delay-rate/quantile-free/2", |c| ours(c, 0.02, false)),
        combo("delay-rate/quantile-free/5", |c| ours(c, 0.05, false)),
        alone("delay-rate/quantile-free/10", |c| ours(c, 0.1, false)),
        combo("delay-rate/quantile-free/20", |c| ours(c, 0.2, false)),
    ]
}

fn combo(name: &str, configure: impl FnOnce(&mut Config)) -> Combo {
    let mut transport = Config::default();
    configure(&mut transport);
    Combo { name: name.to_owned(), alone: false, transport }
}

fn alone(name: &str, configure: impl FnOnce(&mut Config)) -> Combo {
    Combo { alone: true, ..combo(name, configure) }
}

/// Sets the three parameters; the quantile schedule plans its own code rate.
fn of(config: &mut Config, controller: rate::Kind, schedule: planner::Kind, code_rate: f64) {
    config.rate.controller = controller;
    config.schedule = schedule;
    config.protect.code_rate = code_rate;
}

/// Plans size, repair and shares for a miss share of at most `misses`.
fn ours(config: &mut Config, misses: f64, spread: bool) {
    of(config, DelayRate, Quantile, 1.0);
    config.protect.miss_target = misses;
    config.spread = spread;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combo_is_sound_and_has_its_own_name() {
        let all = all();
        for combo in &all {
            combo.transport.validate().unwrap();
            assert_eq!(combo.name.split('/').count(), 3, "{}", combo.name);
            assert_eq!(all.iter().filter(|other| other.name == combo.name).count(), 1);
        }
    }

    #[test]
    fn every_rate_control_is_compared() {
        for kind in rate::Kind::VARIANTS {
            let name: &str = kind.into();
            assert!(all().iter().any(|combo| combo.name.starts_with(name)), "{name}");
        }
    }
}
