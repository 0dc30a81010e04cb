use super::*;

fn demand(sequence: u64, throttle: f32) -> Demand {
    let controls = Controls { steering: 0.25, throttle, ..Controls::default() };
    Demand { sequence, controls, emergency_stop: false }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Makes a failsafe that drives at 1000 ms, its newest command of that instant.
fn driving() -> Failsafe {
    let mut failsafe = Failsafe::new(Config::default());
    assert!(failsafe.handle_command(demand(1, 0.0), Some(at(990)), at(1000)));
    failsafe.controls(0.0, at(1000));
    assert_eq!(failsafe.mode(), Mode::Driving);
    failsafe
}

#[test]
fn a_car_without_an_operator_holds_its_brake() {
    let mut failsafe = Failsafe::new(Config::default());
    let controls = failsafe.controls(0.0, at(10));
    assert_eq!((controls.throttle, controls.brake), (0.0, 1.0));
}

#[test]
fn a_fresh_command_reaches_the_actuators() {
    let mut failsafe = driving();
    failsafe.handle_command(demand(2, 0.7), Some(at(1010)), at(1020));
    let controls = failsafe.controls(3.0, at(1030));
    assert_eq!((controls.throttle, controls.brake, controls.steering), (0.7, 0.0, 0.25));
}

#[test]
fn silence_of_the_configured_time_brakes_to_a_stop() {
    let mut failsafe = driving();
    assert_eq!(failsafe.controls(9.0, at(1299)).brake, 0.0);
    let controls = failsafe.controls(9.0, at(1300));
    assert_eq!((controls.throttle, controls.brake), (0.0, 1.0));
    assert_eq!(failsafe.mode(), Mode::Stopping(Reason::CommandTimeout));
    failsafe.controls(0.0, at(3000));
    assert_eq!(failsafe.mode(), Mode::Stopped(Reason::CommandTimeout));
}

#[test]
fn a_command_that_was_long_under_way_is_not_acted_on() {
    let mut failsafe = driving();
    assert!(!failsafe.handle_command(demand(2, 1.0), Some(at(1000)), at(1251)));
    assert_eq!(failsafe.stale_count(), 1);
    assert_eq!(failsafe.controls(5.0, at(1301)).brake, 1.0);
}

#[test]
fn a_command_of_unknown_age_is_not_acted_on() {
    let mut failsafe = Failsafe::new(Config::default());
    assert!(!failsafe.handle_command(demand(1, 0.0), None, at(5)));
    failsafe.controls(0.0, at(6));
    assert_eq!(failsafe.mode(), Mode::AwaitingOperator);
}

#[test]
fn an_overtaken_or_repeated_command_is_not_acted_on() {
    let mut failsafe = driving();
    assert!(failsafe.handle_command(demand(5, 0.1), Some(at(1010)), at(1020)));
    assert!(!failsafe.handle_command(demand(4, 0.9), Some(at(1015)), at(1025)));
    assert!(!failsafe.handle_command(demand(5, 0.9), Some(at(1015)), at(1025)));
    assert_eq!(failsafe.controls(1.0, at(1030)).throttle, 0.1);
}

#[test]
fn after_a_stop_the_pedal_must_be_let_go_first() {
    let mut failsafe = driving();
    failsafe.controls(9.0, at(1400));
    failsafe.controls(0.0, at(3000));
    failsafe.handle_command(demand(2, 0.8), Some(at(3090)), at(3100));
    assert_eq!(failsafe.controls(0.0, at(3100)).brake, 1.0);
    assert_eq!(failsafe.mode(), Mode::AwaitingRelease(Reason::CommandTimeout));
    failsafe.handle_command(demand(3, 0.0), Some(at(3110)), at(3120));
    failsafe.handle_command(demand(4, 0.8), Some(at(3130)), at(3140));
    // Only the newest command is seen; it presses again, so the release must show in a turn.
    assert_eq!(failsafe.controls(0.0, at(3140)).brake, 1.0);
    failsafe.handle_command(demand(5, 0.0), Some(at(3150)), at(3160));
    failsafe.controls(0.0, at(3160));
    failsafe.handle_command(demand(6, 0.8), Some(at(3170)), at(3180));
    assert_eq!(failsafe.controls(0.0, at(3180)).throttle, 0.8);
}

#[test]
fn commands_that_come_back_while_braking_do_not_end_the_stop() {
    let mut failsafe = driving();
    failsafe.controls(9.0, at(1400));
    failsafe.handle_command(demand(2, 0.0), Some(at(1410)), at(1420));
    let controls = failsafe.controls(8.0, at(1420));
    assert_eq!((controls.brake, controls.steering), (1.0, 0.25));
    assert_eq!(failsafe.mode(), Mode::Stopping(Reason::CommandTimeout));
}

#[test]
fn an_emergency_stop_stops_at_once_and_holds() {
    let mut failsafe = driving();
    let stop = Demand { emergency_stop: true, ..demand(2, 0.0) };
    failsafe.handle_command(stop, Some(at(1010)), at(1020));
    assert_eq!(failsafe.controls(9.0, at(1020)).brake, 1.0);
    failsafe.controls(0.0, at(1200));
    failsafe.handle_command(Demand { sequence: 3, ..stop }, Some(at(1210)), at(1220));
    failsafe.controls(0.0, at(1220));
    assert_eq!(failsafe.mode(), Mode::Stopped(Reason::EmergencyStop));
    failsafe.handle_command(demand(4, 0.0), Some(at(1230)), at(1240));
    failsafe.controls(0.0, at(1240));
    assert_eq!(failsafe.mode(), Mode::Driving);
}

#[test]
fn a_new_session_counts_its_commands_from_the_beginning() {
    let mut failsafe = driving();
    failsafe.handle_new_session();
    failsafe.controls(5.0, at(1100));
    assert_eq!(failsafe.mode(), Mode::Driving);
    assert!(failsafe.handle_command(demand(1, 0.0), Some(at(1100)), at(1110)));
}

#[test]
fn a_machine_of_unknown_speed_never_counts_as_standing() {
    let mut failsafe = driving();
    failsafe.controls(9.0, at(1400));
    assert_eq!(failsafe.controls(f32::NAN, at(9000)).brake, 1.0);
    assert_eq!(failsafe.mode(), Mode::Stopping(Reason::CommandTimeout));
}

#[test]
fn a_setting_out_of_bounds_is_told_by_its_name() {
    let refused =
        |config: Config| std::string::ToString::to_string(&config.validate().unwrap_err());
    let millis = Duration::from_millis;
    let timeout = |time| refused(Config { command_timeout: millis(time), ..Config::default() });
    assert_eq!(timeout(49), "failsafe.command_timeout_ms = 49: must be 50 to 5000");
    assert_eq!(timeout(5001), "failsafe.command_timeout_ms = 5001: must be 50 to 5000");
    let age = refused(Config { command_age_max: millis(19), ..Config::default() });
    assert_eq!(age, "failsafe.command_age_max_ms = 19: must be 20 to 5000");
    for brake in [0.2, 1.1, f32::NAN] {
        let brake = refused(Config { brake, ..Config::default() });
        assert!(brake.starts_with("failsafe.brake = "), "{brake}");
    }
    Config::default().validate().unwrap();
}
