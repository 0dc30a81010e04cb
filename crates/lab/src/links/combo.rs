//! The ways of sending that are compared: rate control, scheduler and code, each by name.

use tautline_transport::send::schedule;
use tautline_transport::{Config, rate};
use tautline_units::Bitrate;

/// Is one way of sending.
#[derive(Clone, Copy, Debug)]
pub struct Combo {
    /// `controller/schedule/code`.
    pub name: &'static str,
    /// Whether it is also measured on each link alone: what several links are worth.
    pub alone: bool,
    configure: fn(&mut Config),
}

impl Combo {
    /// The transport's configuration.
    pub fn transport(&self) -> Config {
        let mut config = Config::default();
        (self.configure)(&mut config);
        config
    }

    /// Whether it codes 4 packets into 9 whatever happens: what the others are held against.
    pub fn is_four_of_nine(&self) -> bool {
        self.name.ends_with("/4-of-9")
    }
}

/// Every combo, the paper's own first.
pub const ALL: &[Combo] = &[
    // As [LLMLNCL]: no thought of a link's loss, no delay.
    combo("two-state/transmission-end/4-of-9", |c| {
        c.schedule = schedule::Kind::TransmissionEnd;
        c.spread = false;
        c.protect.code_rate = 4.0 / 9.0;
    }),
    combo("two-state/earliest/4-of-9", |c| c.protect.code_rate = 4.0 / 9.0),
    combo("two-state/earliest/4-of-8", |c| c.protect.code_rate = 4.0 / 8.0),
    combo("two-state/earliest/4-of-7", |c| c.protect.code_rate = 4.0 / 7.0),
    alone("two-state/earliest/uncoded", |c| c.protect.code_rate = 1.0),
    combo("fixed-2-mbps/earliest/4-of-9", |c| {
        fixed(c, Bitrate::from_mbps(2));
        c.protect.code_rate = 4.0 / 9.0;
    }),
];

const fn combo(name: &'static str, configure: fn(&mut Config)) -> Combo {
    Combo { name, alone: false, configure }
}

const fn alone(name: &'static str, configure: fn(&mut Config)) -> Combo {
    Combo { name, alone: true, configure }
}

fn fixed(config: &mut Config, rate: Bitrate) {
    config.rate.controller = rate::Kind::Fixed;
    config.rate.initial = rate;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combo_is_sound_and_has_its_own_name() {
        for combo in ALL {
            combo.transport().validate().unwrap();
            assert_eq!(combo.name.split('/').count(), 3, "{}", combo.name);
            assert_eq!(ALL.iter().filter(|other| other.name == combo.name).count(), 1);
        }
    }
}
