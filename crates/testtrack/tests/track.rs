//! Invariants of the car, the course and the camera.

use std::time::Duration;

use tautline_guard::{Controls, Gear};
use tautline_testtrack::{Autopilot, Camera, Course, ROAD_HALF_WIDTH, World};
use tautline_video::Picture;

const STEP: Duration = Duration::from_millis(5);

fn throttle() -> Controls {
    Controls { throttle: 1.0, ..Controls::default() }
}

fn brake() -> Controls {
    Controls { brake: 1.0, ..Controls::default() }
}

/// Simulates `seconds` under `controls`.
fn drive(world: &mut World, controls: &Controls, seconds: f64) {
    for _ in 0..(seconds / STEP.as_secs_f64()).round() as u64 {
        world.step(controls, STEP);
    }
}

#[test]
fn the_same_calls_give_the_same_world_and_the_same_picture() {
    let run = || {
        let mut world = World::new(7);
        let pilot = Autopilot::default();
        for _ in 0..2_000 {
            let controls = pilot.controls(world.course(), world.car());
            world.step(&controls, STEP);
        }
        let mut picture = Picture::new(320, 192).unwrap();
        Camera::new(320, 192).unwrap().render(&world.view(), &mut picture);
        (*world.car(), picture)
    };
    assert_eq!(run(), run());
}

#[test]
fn how_time_is_divided_changes_nothing() {
    let controls = Controls { throttle: 0.6, steering: 0.3, ..Controls::default() };
    let (mut coarse, mut fine) = (World::new(1), World::new(1));
    for _ in 0..100 {
        coarse.step(&controls, Duration::from_millis(30));
        for micros in [1_000, 9_000, 13_000, 7_000] {
            fine.step(&controls, Duration::from_micros(micros));
        }
    }
    assert_eq!(coarse.car(), fine.car());
}

#[test]
fn the_throttle_drives_up_to_the_top_speed() {
    let mut world = World::new(1);
    drive(&mut world, &throttle(), 2.0);
    let soon = world.car().speed;
    assert!(soon > 5.0, "{soon} m/s after two seconds");
    let pilot = Autopilot::default();
    for _ in 0..12_000 {
        let steering = pilot.controls(world.course(), world.car()).steering;
        world.step(&Controls { steering, ..throttle() }, STEP);
        assert!(world.car().speed <= 25.1);
    }
}

#[test]
fn the_brake_stops_and_holds() {
    let mut world = World::new(1);
    drive(&mut world, &throttle(), 3.0);
    let speed = world.car().speed;
    drive(&mut world, &brake(), speed / 8.0 + 0.1);
    assert_eq!(world.car().speed, 0.0);
    let stood = *world.car();
    drive(&mut world, &brake(), 10.0);
    assert_eq!((world.car().x, world.car().y), (stood.x, stood.y));
    drive(&mut world, &Controls::default(), 10.0);
    assert_eq!((world.car().x, world.car().y), (stood.x, stood.y));
}

#[test]
fn positive_steering_turns_left() {
    let mut world = World::new(1);
    drive(&mut world, &throttle(), 1.0);
    drive(&mut world, &Controls { steering: 1.0, ..Controls::default() }, 0.5);
    assert!(world.car().yaw_rate > 0.1 && world.car().steering_angle > 0.1);
}

#[test]
fn reverse_drives_backwards_and_not_fast() {
    let mut world = World::new(1);
    let back = Controls { throttle: 1.0, gear: Gear::Reverse, ..Controls::default() };
    drive(&mut world, &back, 6.0);
    assert!((-5.1..-2.0).contains(&world.car().speed), "{}", world.car().speed);
}

#[test]
fn grass_slows_the_car() {
    let run = |lateral: f64| {
        let mut world = World::new(1);
        world.place_car(5.0, lateral);
        drive(&mut world, &throttle(), 2.0);
        (world.car().on_grass, world.car().speed)
    };
    let (road, grass) = (run(0.0), run(ROAD_HALF_WIDTH + 4.0));
    assert!(!road.0 && grass.0);
    assert!(grass.1 < 0.9 * road.1, "{} on grass, {} on the road", grass.1, road.1);
}

#[test]
fn no_controls_break_the_world() {
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, -0.0];
    let mut world = World::new(1);
    for steering in odd {
        for throttle in odd {
            for brake in odd {
                let controls = Controls { steering, throttle, brake, ..Controls::default() };
                drive(&mut world, &controls, 0.1);
                let car = world.car();
                let all = [car.x, car.y, car.heading, car.speed, car.pitch, car.steering_angle];
                assert!(all.iter().all(|value| value.is_finite()), "{controls:?}: {car:?}");
            }
        }
    }
}

#[test]
fn a_cone_that_is_driven_over_counts_once() {
    let mut world = World::new(1);
    let (x, y) = world.course().cones()[0];
    let place = world.course().nearest(x, y);
    world.place_car(place.distance - 8.0, place.lateral);
    drive(&mut world, &throttle(), 1.5);
    drive(&mut world, &brake(), 3.0);
    let hit = world.cones_hit();
    assert!(hit >= 1);
    drive(&mut world, &brake(), 3.0);
    assert_eq!(world.cones_hit(), hit);
    world.reset();
    assert_eq!(world.cones_hit(), 0);
}

#[test]
fn strips_of_one_view_make_the_whole_picture() {
    let mut world = World::new(3);
    world.place_car(60.0, 0.5);
    let (view, camera) = (world.view(), Camera::new(640, 384).unwrap());
    let mut whole = Picture::new(640, 384).unwrap();
    camera.render(&view, &mut whole);
    let mut joined = Picture::new(640, 384).unwrap();
    for (top, height) in [(0, 48), (48, 64), (112, 112), (224, 160)] {
        let mut strip = Picture::new(640, height).unwrap();
        camera.render_rows(&view, top..top + height, &mut strip);
        joined.place(top, &strip).unwrap();
    }
    assert!(whole == joined);
}

#[test]
fn the_autopilot_drives_a_lap_on_the_road_without_a_cone() {
    for seed in 1..=6 {
        let mut world = World::new(seed);
        let pilot = Autopilot::default();
        let length = world.course().length();
        let mut steps = 0;
        while world.car().odometer < length + 20.0 {
            let controls = pilot.controls(world.course(), world.car());
            world.step(&controls, STEP);
            steps += 1;
            assert!(!world.car().on_grass, "seed {seed}: off the road at {:?}", world.car());
            assert!(steps < 200 * 600, "seed {seed}: no lap in ten minutes");
        }
        assert_eq!(world.cones_hit(), 0, "seed {seed}");
    }
}

#[test]
fn every_course_is_closed_and_its_cones_stand_near_the_road() {
    for seed in 0..50 {
        let course = Course::generate(seed);
        let (start, end) = (course.point(0.0, 0.0), course.point(course.length(), 0.0));
        let gap = (start.x - end.x).hypot(start.y - end.y);
        assert!(gap < 0.5, "seed {seed}: {gap} m between end and start");
        assert!(course.length() > 200.0 && !course.cones().is_empty(), "seed {seed}");
        for (x, y) in course.cones() {
            let lateral = course.nearest(*x, *y).lateral.abs();
            assert!(lateral < ROAD_HALF_WIDTH + 3.0, "seed {seed}: a cone {lateral} m off");
        }
    }
}
