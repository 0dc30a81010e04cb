//! Named combinations of rate control, scheduler and code to compare.

use strum::VariantArray;
use tautline_scenario::policies::planner::{self, Kind::*};
use tautline_scenario::policies::rate::{self, Kind::*};
use tautline_transport::Config;
use tautline_transport::protect::Code;
use tautline_units::Bitrate;

/// One combination of rate control, scheduler and code.
#[derive(Clone, Debug)]
pub struct Combo {
    /// `controller/schedule/code`.
    pub name: String,
    /// True if it is also measured on each link alone, to show the benefit of several links.
    pub alone: bool,
    control: rate::Kind,
    transport: Config,
}

impl Combo {
    fn with(mut self, configure: impl FnOnce(&mut Config)) -> Self {
        configure(&mut self.transport);
        self
    }

    fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

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
        if all.iter().all(|combo| combo.control != *kind) {
            let name: &str = kind.into();
            all.push(combo(&format!("{name}/quantile/0.5"), *kind, Quantile, 1.0));
        }
    }
    all
}

fn chosen() -> Vec<Combo> {
    vec![
        // As in [LLMLNCL]: ignores the links' loss and delay.
        combo("two-state/transmission-end/4-of-9", TwoState, TransmissionEnd, 4.0 / 9.0)
            .with(|c| c.spread = false),
        combo("two-state/earliest/4-of-9", TwoState, EarliestDelivery, 4.0 / 9.0),
        combo("two-state/earliest/4-of-8", TwoState, EarliestDelivery, 4.0 / 8.0),
        combo("two-state/earliest/4-of-7", TwoState, EarliestDelivery, 4.0 / 7.0),
        combo("two-state/quantile/0.5", TwoState, Quantile, 1.0),
        combo("fixed-2-mbps/earliest/4-of-9", Fixed, EarliestDelivery, 4.0 / 9.0)
            .with(|c| c.rate.initial = Bitrate::from_mbps(2)),
        combo("delay-rate/transmission-end/4-of-9", DelayRate, TransmissionEnd, 4.0 / 9.0),
        combo("delay-rate/round-robin/4-of-9", DelayRate, RoundRobin, 4.0 / 9.0),
        combo("delay-rate/earliest/4-of-9", DelayRate, EarliestDelivery, 4.0 / 9.0),
        combo("delay-rate/earliest/4-of-8", DelayRate, EarliestDelivery, 4.0 / 8.0),
        combo("delay-rate/earliest/4-of-7", DelayRate, EarliestDelivery, 4.0 / 7.0),
        combo("delay-rate/earliest/stream-4-of-7", DelayRate, EarliestDelivery, 4.0 / 7.0)
            .with(|c| c.protect.code = Code::Stream),
        combo("delay-rate/earliest/uncoded", DelayRate, EarliestDelivery, 1.0).alone(),
        combo("delay-rate/redundant/uncoded", DelayRate, Redundant, 1.0),
        combo("delay-rate/best-link/uncoded", DelayRate, BestLink, 1.0),
        // Miss target in percent; every unit survives the loss of any one link.
        ours("delay-rate/quantile/0.5", 0.005, true).alone(),
        ours("delay-rate/quantile/1", 0.01, true),
        ours("delay-rate/quantile/2", 0.02, true),
        // The same without the requirement that a unit survives the loss of a link.
        ours("delay-rate/quantile-free/0.5", 0.005, false),
        ours("delay-rate/quantile-free/1", 0.01, false),
        ours("delay-rate/quantile-free/2", 0.02, false),
        ours("delay-rate/quantile-free/5", 0.05, false),
        ours("delay-rate/quantile-free/10", 0.1, false).alone(),
        ours("delay-rate/quantile-free/20", 0.2, false),
    ]
}

/// Returns a combination; the quantile planner plans its own code rate.
fn combo(name: &str, control: rate::Kind, planner: planner::Kind, code_rate: f64) -> Combo {
    let transport = Config {
        controllers: control.factory(),
        planner: planner.factory(planner::Code::of_rate(code_rate)),
        ..Config::default()
    };
    Combo { name: name.to_owned(), alone: false, control, transport }
}

/// Returns our own combination, planned for a miss share of at most `misses`.
fn ours(name: &str, misses: f64, spread: bool) -> Combo {
    combo(name, DelayRate, Quantile, 1.0).with(|config| {
        config.protect.miss_target = misses;
        config.spread = spread;
    })
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
