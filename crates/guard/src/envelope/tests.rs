use proptest::prelude::*;

use super::*;

const STEP: Duration = Duration::from_millis(10);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Steps the bound for `seconds` at a loop age in ms and a speed in m/s; returns the bound.
fn bound_after(bound: &mut SpeedBound, age: u64, speed: f32, seconds: f32) -> f32 {
    for _ in 0..(seconds * 100.0) as u32 {
        bound.step(&Config::car(), Some(ms(age)), speed, STEP);
    }
    bound.get()
}

#[test]
fn the_speed_bound_falls_with_the_loop_age_beyond_200_ms() {
    let config = Config::car();
    for (age, wanted) in [(0, 15.0), (200, 15.0), (250, 12.0), (400, 7.5), (500, 6.0), (900, 6.0)] {
        let mut bound = SpeedBound::new(&config);
        let reached = bound_after(&mut bound, age, 15.0, 10.0);
        assert!((reached - wanted).abs() < 0.01, "{age} ms: {reached}");
    }
}

#[test]
fn the_bound_falls_from_the_machine_s_own_speed_by_2_m_per_s2() {
    let mut bound = SpeedBound::new(&Config::car());
    bound.step(&Config::car(), Some(ms(400)), 9.0, STEP);
    assert!((bound.get() - 8.98).abs() < 1e-4, "{bound:?}");
    let half = bound_after(&mut bound, 400, 9.0, 0.5);
    assert!((half - 7.98).abs() < 0.01, "{half}");
    let rising = bound_after(&mut bound, 100, 8.0, 1.0);
    assert!((rising - 9.98).abs() < 0.02, "{rising}");
}

#[test]
fn a_ripple_below_the_hysteresis_does_not_move_the_bound() {
    let mut bound = SpeedBound::new(&Config::car());
    let reached = bound_after(&mut bound, 300, 15.0, 10.0);
    for age in [285, 300, 281, 299, 290] {
        assert_eq!(bound_after(&mut bound, age, 15.0, 0.2), reached, "{age} ms");
    }
    assert!(bound_after(&mut bound, 250, 10.0, 3.0) > reached + 0.5);
}

#[test]
fn throttle_fades_at_the_speed_bound_and_braking_begins_above() {
    let config = Config::car();
    let wanted = Controls { throttle: 1.0, ..Controls::default() };
    let held = |speed| hold(&config, &wanted, &wanted, speed, 10.0, STEP);
    assert_eq!(held(5.0).0.throttle, 1.0);
    assert!((held(9.75).0.throttle - 0.25).abs() < 1e-3);
    let (controls, limits) = held(10.5);
    assert_eq!(controls.throttle, 0.0);
    assert!((controls.brake * 8.0 - 1.5).abs() < 1e-3, "{controls:?}");
    assert!(limits.contains(Limit::Speed));
}

#[test]
fn the_gear_changes_only_near_standstill() {
    let config = Config::car();
    let wanted = Controls { gear: Gear::Reverse, throttle: 0.5, ..Controls::default() };
    let (controls, limits) = hold(&config, &wanted, &Controls::default(), 3.0, 15.0, STEP);
    assert_eq!((controls.gear, controls.throttle), (Gear::Drive, 0.0));
    assert!(limits.contains(Limit::Gear));
    let (controls, _) = hold(&config, &wanted, &Controls::default(), 0.2, 15.0, STEP);
    assert_eq!((controls.gear, controls.throttle), (Gear::Reverse, 0.5));
    // A machine that rolls back on a hill may drive forwards.
    let wanted = Controls { throttle: 0.5, ..Controls::default() };
    let (controls, _) = hold(&config, &wanted, &Controls::default(), -1.0, 15.0, STEP);
    assert_eq!(controls.throttle, 0.5);
}

#[test]
fn lateral_acceleration_limits_the_steering_angle() {
    let config = Config::car();
    // 15 m/s in a curve of 37.5 m radius: 6 m/s² lateral acceleration.
    let angle = angle_max(&config, 15.0);
    assert!((15.0f32.powi(2) * angle.tan() / 2.6 - 6.0).abs() < 1e-3, "{angle}");
    assert_eq!(angle_max(&config, 0.0), 0.52);
    assert_eq!(angle_max(&config, -15.0), angle);
}

proptest! {
    /// For any request at any speed, the output is within the envelope.
    #[test]
    fn applied_controls_are_within_the_envelope(
        steering in -1.0f32..=1.0,
        throttle in 0.0f32..=1.0,
        brake in 0.0f32..=1.0,
        is_reverse: bool,
        last in -1.0f32..=1.0,
        speed in -50.0f32..50.0,
        bound in 0.0f32..15.0,
    ) {
        let config = Config::car();
        let gear = if is_reverse { Gear::Reverse } else { Gear::Drive };
        let wanted = Controls { steering, throttle, brake, gear, ..Controls::default() };
        let before = Controls { steering: last, ..Controls::default() };
        let (held, _) = hold(&config, &wanted, &before, speed, bound, STEP);
        prop_assert_eq!(held, held.sane());
        prop_assert!(held.throttle <= throttle && held.brake >= brake);
        prop_assert!(held.throttle == 0.0 || speed.abs() < bound);
        let turned = (held.steering - last).abs() * 0.52;
        prop_assert!(turned <= 1.05 * 0.01 + 1e-5, "{}", turned);
    }
}
