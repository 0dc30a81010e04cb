use proptest::prelude::*;

use super::*;

const STEP: Duration = Duration::from_millis(10);

fn twist(forward: f32, sideways: f32, yaw_rate: f32) -> Twist {
    Twist { forward, sideways, yaw_rate }
}

/// Commands `wanted` for `seconds` from standstill; the machine follows at once.
fn reached(config: &Config, wanted: Twist, bound: f32, seconds: f32) -> (Twist, Limits) {
    let (mut envelope, mut last) = (TwistEnvelope::default(), Twist::ZERO);
    let mut limits = Limits::NONE;
    for _ in 0..(seconds * 100.0) as u32 {
        let moved = Some(last);
        (last, limits) = envelope.hold(config, wanted, (last, moved), bound, STEP);
    }
    (last, limits)
}

#[test]
fn a_turn_on_the_spot_reaches_the_yaw_rate_and_no_more() {
    for config in [Config::robot(), Config::rover(), Config::cart()] {
        let most = config.envelope.yaw_rate_max;
        let (held, limits) = reached(&config, twist(0.0, 0.0, 9.0), 9.0, 3.0);
        assert_eq!(held, twist(0.0, 0.0, most));
        assert!(limits.contains(Limit::YawRate));
        assert_eq!(reached(&config, twist(0.0, 0.0, -9.0), 9.0, 3.0).0.yaw_rate, -most);
    }
}

#[test]
fn only_an_omni_machine_moves_sideways() {
    let wanted = twist(0.0, 5.0, 0.0);
    assert_eq!(reached(&Config::robot(), wanted, 1.5, 3.0).0, Twist::ZERO);
    let cart = Config::cart();
    let (held, limits) = reached(&cart, wanted, 1.2, 3.0);
    assert!((held.sideways - 0.5).abs() < 1e-3 && limits.contains(Limit::Speed), "{held:?}");
    // Half of the bound leaves half of each part.
    let half = reached(&cart, twist(9.0, 9.0, 9.0), 0.6, 6.0).0;
    assert!(half.speed() <= 0.6 + 1e-4 && half.sideways <= 0.25 + 1e-4, "{half:?}");
    assert!(half.yaw_rate <= 0.4 + 1e-4, "{half:?}");
}

#[test]
fn the_loop_age_bounds_speed_and_yaw_rate_by_the_same_share() {
    let config = Config::rover();
    assert_eq!(reached(&config, twist(0.0, 0.0, 9.0), 1.0, 3.0).0.yaw_rate, 0.4);
    let straight = reached(&config, twist(9.0, 0.0, 0.0), 1.0, 5.0).0;
    assert!((straight.forward - 1.0).abs() < 1e-3, "{straight:?}");
    assert_eq!(
        Most::of(&config, 0.5),
        Most { forward: 0.5, back: 0.5, sideways: 0.0, yaw_rate: 0.2 }
    );
}

#[test]
fn reverse_is_slower() {
    let back = reached(&Config::robot(), twist(-9.0, 0.0, 0.0), 1.5, 3.0).0;
    assert!((back.forward + 0.5).abs() < 1e-3, "{back:?}");
}

#[test]
fn a_wheel_that_is_fast_enough_for_one_slows_both_on_their_arc() {
    let mut config = Config::robot();
    config.machine.wheel_speed_max = 1.5;
    config.envelope.lateral_acceleration = 10.0;
    let (held, limits) = reached(&config, twist(1.5, 0.0, 1.0), 1.5, 5.0);
    assert!(limits.contains(Limit::WheelSpeed));
    // 1.5 m/s and a turn of 0.25 m/s at the wheel share 1.5 m/s.
    assert!((held.forward - 1.5 * 1.5 / 1.75).abs() < 2e-3, "{held:?}");
    assert!((held.yaw_rate - 1.5 / 1.75).abs() < 2e-3, "{held:?}");
}

/// Any sequence of wants: no limit is exceeded, and no rate unless the bound falls.
#[derive(Clone, Debug)]
struct Wants(std::vec::Vec<([f32; 3], f32, u8)>);

fn any_wants() -> impl Strategy<Value = Wants> {
    let want = (any::<[u32; 3]>(), 0.2_f32..=1.0, 1_u8..60);
    let wants = proptest::collection::vec(want, 1..12);
    wants.prop_map(|wants| {
        let sane = |bits: [u32; 3]| bits.map(|bits| (bits % 6_001) as f32 / 1e3 - 3.0);
        Wants(wants.into_iter().map(|(bits, share, steps)| (sane(bits), share, steps)).collect())
    })
}

proptest! {
    #[test]
    fn a_set_point_is_within_the_envelope_whatever_is_wanted(wants in any_wants(), kind in 0..3) {
        let config = [Config::robot(), Config::rover(), Config::cart()][kind as usize];
        let envelope = &config.envelope;
        let (mut held, mut last) = (TwistEnvelope::default(), Twist::ZERO);
        for ([forward, sideways, yaw_rate], share, steps) in wants.0 {
            let wanted = twist(forward, sideways, yaw_rate).sane();
            let bound = envelope.speed_max * share;
            for step in 0..steps {
                let (next, _) = held.hold(&config, wanted, (last, Some(last)), bound, STEP);
                let most = Most::of(&config, bound);
                prop_assert!(next.forward <= most.forward + 1e-4 && -next.forward <= most.back + 1e-4);
                prop_assert!(next.sideways.abs() <= most.sideways + 1e-4, "{next:?}");
                prop_assert!(next.yaw_rate.abs() <= most.yaw_rate + 1e-4, "{next:?}");
                prop_assert!(next.speed() <= bound + 1e-4, "{next:?}");
                let across = next.speed() * next.yaw_rate.abs();
                prop_assert!(across <= envelope.lateral_acceleration + 1e-3, "{across} across");
                prop_assert!(wheel_speed(&config, next) <= config.machine.wheel_speed_max + 1e-4);
                if step > 0 {
                    let hardest = envelope.acceleration.max(envelope.deceleration);
                    let along = (next.forward - last.forward).abs();
                    prop_assert!(along <= hardest * 0.01 + 1e-4, "{along} along");
                    let turned = (next.yaw_rate - last.yaw_rate).abs();
                    let sharpest = envelope.yaw_acceleration.max(envelope.yaw_deceleration);
                    prop_assert!(turned <= sharpest * 0.01 + 1e-4, "{turned} turned");
                }
                last = next;
            }
        }
    }
}
