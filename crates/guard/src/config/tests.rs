use std::string::ToString;

use super::*;

fn refusal(change: impl FnOnce(&mut Config)) -> std::string::String {
    let mut config = Config::default();
    change(&mut config);
    config.validate().unwrap_err().to_string()
}

#[test]
fn the_defaults_fit_each_other() {
    assert_eq!(Config::default().validate(), Ok(()));
}

/// A setting without bounds would be accepted with any value.
#[test]
fn every_setting_has_bounds() {
    let config = Config::default();
    // "Config { latency: Latency { loop_age_full: 200ms, .. }, .. }"
    let shown = std::format!("{config:?}");
    let sections = shown.matches(" { ").count() - 1;
    assert_eq!(shown.matches(": ").count() - sections, config.bounds().len(), "{shown}");
}

#[test]
fn a_setting_out_of_its_bounds_is_named_with_them() {
    assert_eq!(
        refusal(|config| config.latency.proposal_timeout = Duration::from_millis(5)),
        "guard.latency.proposal_timeout_ms = 5: must be 20 to 500"
    );
    let nan = refusal(|config| config.envelope.speed_max = f32::NAN);
    assert_eq!(nan, "guard.envelope.speed_max_m_per_s = NaN: must be 0.5 to 40");
}

#[test]
fn settings_that_contradict_each_other_are_named_both() {
    let sum = refusal(|config| config.latency.picture_age_max = Duration::from_millis(300));
    assert_eq!(
        sum,
        "guard.latency.picture_age_max_ms + guard.latency.command_age_max_ms = 550 must be at most \
         guard.latency.loop_age_max_ms = 500: a picture and a command that are both in time would \
         stop the machine"
    );
    let full = refusal(|config| config.latency.loop_age_full = Duration::from_millis(600));
    assert!(full.contains("loop_age_full_ms = 600 must be at most guard.latency.loop_age_max_ms"));
    let brakes = refusal(|config| config.machine.deceleration_max = 5.0);
    assert!(brakes.contains("deceleration_emergency_m_per_s2 = 8"), "{brakes}");
    let hold = refusal(|config| config.manoeuvre.hold_brake = 0.2);
    assert!(hold.ends_with("an armed machine must stand on its steepest slope"), "{hold}");
}
