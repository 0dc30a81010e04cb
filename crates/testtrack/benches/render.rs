//! Cost of a picture and of a strip.

use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use tautline_testtrack::{Autopilot, Camera, Viewpoint, Windscreen, World};
use tautline_video::Picture;

fn main() {
    divan::main();
}

const WIDTH: usize = Windscreen::WIDTH;
const HEIGHT: usize = Windscreen::HEIGHT;
/// Views on the first lap, ten seconds apart.
const VIEWS: [u64; 5] = [0, 10, 20, 30, 40];

fn view(seconds: u64) -> Viewpoint {
    let mut world = World::new(1);
    let pilot = Autopilot::default();
    for _ in 0..seconds * 60 {
        let controls = pilot.controls(world.course(), world.car());
        world.step(&controls, Duration::from_micros(16_667));
    }
    world.view()
}

#[divan::bench(args = VIEWS)]
fn picture_720(bencher: Bencher, seconds: u64) {
    let camera = Camera::new(WIDTH, HEIGHT).expect("valid dimensions");
    let mut picture = Picture::new(WIDTH, HEIGHT).expect("valid dimensions");
    let view = view(seconds);
    bencher
        .counter(ItemsCount::new(WIDTH * HEIGHT))
        .bench_local(|| camera.render(&view, &mut picture));
}

/// Renders the six strips of a picture, 112 and 128 rows in turn.
#[divan::bench(args = [0, 112, 240, 352, 480, 592])]
fn strip_720(bencher: Bencher, top: usize) {
    let rows = if top.is_multiple_of(240) { 112 } else { 128 };
    let camera = Camera::new(WIDTH, HEIGHT).expect("valid dimensions");
    let mut strip = Picture::new(WIDTH, rows).expect("valid dimensions");
    let view = view(20);
    bencher
        .counter(ItemsCount::new(WIDTH * rows))
        .bench_local(|| camera.render_rows(&view, top..top + rows, &mut strip));
}

/// Measures the cost of the world per picture: the car, the cones and six views.
#[divan::bench]
fn world_sixtieth(bencher: Bencher) {
    let mut world = World::new(1);
    let pilot = Autopilot::default();
    bencher.bench_local(move || {
        for _ in 0..6 {
            let controls = pilot.controls(world.course(), world.car());
            world.step(&controls, Duration::from_micros(2_778));
            divan::black_box(world.view());
        }
    });
}
