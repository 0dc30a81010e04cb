use std::string::ToString;

use super::*;

fn refusal(change: impl FnOnce(&mut Config)) -> std::string::String {
    let mut config = Config::car();
    change(&mut config);
    config.validate().unwrap_err().to_string()
}

#[test]
fn complete_settings_of_each_kind_have_no_fault() {
    for config in [Config::car(), Config::robot(), Config::rover(), Config::cart()] {
        assert_eq!(config.validate(), Ok(()));
    }
}

#[test]
fn a_long_machine_that_turns_fast_requires_the_dead_man_input() {
    let requires = |change: fn(&mut Config)| {
        let mut config = Config::robot();
        config.machine.mass = 20.0;
        change(&mut config);
        config.requires_dead_man()
    };
    assert!(!requires(|_| {}), "1.5 m/s and 30 N");
    assert!(requires(|config| config.envelope.yaw_rate_max = 4.2), "1.68 m/s at its ends");
    assert!(requires(|config| config.machine.length = f32::NAN), "nobody knows");
    assert!(requires(|config| config.machine.mass = f32::NAN), "nobody knows");
}

fn missing(motion: Motion) -> std::vec::Vec<&'static str> {
    let mut config = Config::default();
    config.machine.motion = motion;
    let faults = config.faults().map(|fault| match fault {
        ConfigError::Missing { setting, purpose } => {
            assert!(!purpose.is_empty());
            setting
        }
        other => panic!("{other}"),
    });
    faults.collect()
}

#[test]
fn all_that_only_the_owner_knows_is_missed_at_once() {
    let car = [
        "machine.wheelbase_m",
        "machine.steering_angle_max_rad",
        "machine.deceleration_max_m_per_s2",
        "machine.acceleration_max_m_per_s2",
        "machine.mass_kg",
        "envelope.speed_max_m_per_s",
        "envelope.reverse_speed_max_m_per_s",
        "envelope.acceleration_m_per_s2",
        "envelope.deceleration_m_per_s2",
        "envelope.lateral_acceleration_m_per_s2",
        "manoeuvre.deceleration_begin_m_per_s2",
        "manoeuvre.deceleration_m_per_s2",
        "manoeuvre.deceleration_emergency_m_per_s2",
    ];
    assert_eq!(missing(Motion::Ackermann), car);
    let robot = missing(Motion::Differential);
    assert_eq!(robot.len(), 20, "{robot:?}");
    assert!(robot.contains(&"machine.track_width_m") && robot.contains(&"machine.length_m"));
    assert!(!robot.contains(&"machine.wheelbase_m"));
    let cart = missing(Motion::Omni);
    assert_eq!(cart.len(), 21, "{cart:?}");
    assert!(cart.contains(&"envelope.sideways_speed_max_m_per_s"));
    let told = refusal(|config| config.machine.mass = f32::NAN);
    assert_eq!(
        told,
        "guard.machine.mass_kg is missing: mass with the heaviest load in kg; it decides whether a \
         dead-man input is required"
    );
}

#[test]
fn all_faults_of_all_sorts_are_told_at_once() {
    let mut config = Config::robot();
    config.machine.track_width = f32::NAN;
    config.machine.wheelbase = 0.5;
    config.envelope.yaw_rate_max = 99.0;
    config.manoeuvre.deceleration_emergency = 0.6;
    let told: std::vec::Vec<_> = config.faults().map(|fault| fault.to_string()).collect();
    for part in [
        "guard.machine.wheelbase_m is no setting of a machine whose guard.machine.motion is \
         differential",
        "guard.machine.track_width_m is missing",
        "guard.envelope.yaw_rate_max_rad_per_s = 99: must be 0.05 to 10",
        "guard.manoeuvre.deceleration_m_per_s2 = 1 must be at most \
         guard.manoeuvre.deceleration_emergency_m_per_s2",
    ] {
        assert!(told.iter().any(|told| told.contains(part)), "{part}: {told:#?}");
    }
}

#[test]
fn a_twist_s_settings_that_contradict_each_other_are_named() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::cart();
        change(&mut config);
        config.validate().unwrap_err().to_string()
    };
    let wheel = refused(|config| config.machine.wheel_speed_max = 1.0);
    assert!(wheel.ends_with("the wheels cannot turn so fast"), "{wheel}");
    let spot = refused(|config| config.envelope.yaw_rate_max = 4.0);
    assert!(spot.contains("yaw_rate_max as m/s of a wheel"), "{spot}");
    let bound = refused(|config| config.envelope.speed_bound_slope = 2.0);
    assert!(bound.ends_with("the speed could not follow its bound"), "{bound}");
    let stop = refused(|config| config.manoeuvre.yaw_deceleration = 0.5);
    assert!(stop.ends_with("a turn would make a stop from the top speed longer"), "{stop}");
    let side = refused(|config| config.envelope.sideways_speed_max = 1.3);
    assert!(side.contains("sideways_speed_max_m_per_s = 1.3"), "{side}");
}

/// A setting without bounds would be accepted with any value.
#[test]
fn every_setting_has_bounds() {
    let config = Config::car();
    // "Config { latency: Latency { loop_age_full: 200ms, .. }, .. }"; a kind has no bounds.
    let shown = std::format!("{config:?}");
    let sections = shown.matches(" { ").count();
    let without_bounds = ["dead_man_required: "].len();
    let settings = shown.matches(": ").count() - sections - without_bounds;
    assert_eq!(settings, config.bounds().len(), "{shown}");
}

#[test]
fn a_setting_out_of_its_bounds_is_named_with_them() {
    assert_eq!(
        refusal(|config| config.latency.proposal_timeout = Duration::from_millis(5)),
        "guard.latency.proposal_timeout_ms = 5: must be 20 to 500 ms"
    );
    let nan = refusal(|config| config.envelope.steering_rate = f32::NAN);
    assert_eq!(nan, "guard.envelope.steering_rate_rad_per_s = NaN: must be 0.1 to 5 rad/s");
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
