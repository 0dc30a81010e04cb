//! The vehicle's encoders over low-rate links, in virtual time; `tautline lab budgets` shows more
//! of them.

use tautline_lab::sweeps::budgets::{Drive, Figures, Scene};
use tautline_units::{Bitrate, Duration};

fn drive(kbps: u64) -> Figures {
    let scene = Scene::simulated(true, 60, 60, 1).expect("a scene can be drawn");
    let figures = Drive::over(Bitrate::from_kbps(kbps), 1, 1).run(&scene);
    let figures = figures.expect("a link of that rate can be had");
    println!("{kbps} kbit/s: {figures}");
    figures
}

#[test]
fn pictures_come_whole_over_a_thin_link() {
    let found = drive(200);
    assert!(found.picture_rate >= 5.0, "{found}");
    assert!(found.whole >= 0.95, "{found}");
    assert!(found.refused_share() <= 0.01, "{found}");
}

#[test]
fn a_megabit_is_used_and_nothing_refused() {
    let found = drive(1_000);
    assert!(found.whole >= 0.95, "{found}");
    assert!(found.refused_share() <= 0.01, "{found}");
}

#[test]
fn a_long_round_trip_causes_one_idr_per_strip() {
    let scene = Scene::simulated(true, 60, 60, 1).expect("a scene can be drawn");
    for round_trip_ms in [298, 500] {
        let mut drive = Drive::over(Bitrate::from_mbps(8), 1, 1);
        for pair in &mut drive.links {
            for way in [&mut pair.up, &mut pair.down] {
                *way = way.clone().with_delay(Duration::from_millis(round_trip_ms / 2));
            }
        }
        (drive.length, drive.deadline) = (Duration::from_secs(5), Duration::from_millis(600));
        let found = drive.run(&scene).expect("a link of that delay can be had");
        println!("{round_trip_ms} ms: {} IDRs, {found}", found.idrs);
        assert_eq!(found.idrs, 6, "{round_trip_ms} ms: {found}");
        assert!(found.whole >= 0.95, "{round_trip_ms} ms: {found}");
    }
}
