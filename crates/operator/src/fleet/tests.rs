use proptest::prelude::*;
use tautline_transport::crypto::Identity;

use super::*;

const NOW: Instant = Instant::from_millis(10_000);

fn entry(name: &str, state: VehicleState, driver: Option<&str>) -> VehicleEntry {
    VehicleEntry {
        name: name.to_owned(),
        key: [7; 32],
        state,
        round_trip_ms: Some(42.0),
        driver: driver.map(str::to_owned),
        since: Some(Duration::from_secs(5)),
        place: Some("yard".to_owned()),
        link_count: 4,
        links: 3,
    }
}

fn fleet(config: &Config) -> Fleet {
    let mut fleet = Fleet::new(config).unwrap();
    fleet.set_reached(true, NOW);
    fleet.on_asked(NOW);
    let vehicles = vec![
        entry("away", VehicleState::Away, None),
        entry("free", VehicleState::Free, None),
        entry("mine", VehicleState::Taken, Some("anna")),
        entry("their", VehicleState::Taken, Some("bert")),
        entry("theirs, away", VehicleState::Away, Some("bert")),
    ];
    fleet.handle_list(vehicles, NOW + Duration::from_millis(7));
    fleet
}

fn anna() -> Config {
    Config { name: "anna".to_owned(), ..Config::default() }
}

fn told(fleet: &Fleet) -> serde_json::Value {
    serde_json::from_str(&fleet.told()).unwrap()
}

#[test]
fn the_vehicle_list_is_polled_each_second_until_one_is_picked() {
    let mut fleet = fleet(&anna());
    let all = told(&fleet);
    assert_eq!((&all["picked"], &all["isReached"]), (&serde_json::Value::Null, &true.into()));
    assert_eq!(all["roundTripMs"], 7.0);
    let states: Vec<_> = (0..5).map(|at| all["vehicles"][at]["state"].clone()).collect();
    assert_eq!(states, ["away", "free", "own", "taken", "away"]);
    let expected = serde_json::json!({
        "name": "their", "state": "taken", "driver": "bert", "sinceUnixMs": 5_000, "place": "yard", "links": 3,
        "linkCount": 4, "roundTripMs": 42.0,
    });
    assert_eq!(all["vehicles"][3], expected);
    assert_eq!(fleet.poll_timeout(), Some(NOW + LIST_INTERVAL));
    fleet.pick("free").unwrap();
    assert_eq!((fleet.poll_timeout(), fleet.picked()), (None, Some("free")));
    fleet.leave(None, NOW);
    assert_eq!((fleet.poll_timeout(), fleet.picked()), (Some(NOW), None));
    fleet.set_reached(false, NOW);
    assert_eq!(fleet.poll_timeout(), None);
    assert_eq!(told(&fleet)["roundTripMs"], serde_json::Value::Null);
}

#[test]
fn a_vehicle_that_cannot_be_picked_is_refused_with_a_word() {
    let mut fleet = fleet(&anna());
    for (name, word) in [
        ("their", Word::Taken),
        ("theirs, away", Word::Taken),
        ("nobody", Word::Unknown),
        ("", Word::Unknown),
    ] {
        assert_eq!(fleet.pick(name), Err(word), "{name}");
        let refused = serde_json::json!({ "vehicle": name, "word": word.name() });
        assert_eq!((fleet.picked(), &told(&fleet)["refused"]), (None, &refused));
    }
    for name in ["free", "mine", "away"] {
        fleet.pick(name).unwrap();
        assert_eq!(told(&fleet)["refused"], serde_json::Value::Null);
        assert_eq!(fleet.pick(name), Ok(()), "a second press of the same");
        assert_eq!(fleet.pick("nobody"), Err(Word::Busy));
        assert_eq!(fleet.picked(), Some(name), "one at a time");
        fleet.keep(Word::Moving);
        assert_eq!(
            (fleet.picked(), &told(&fleet)["refused"]["word"]),
            (Some(name), &"moving".into())
        );
        fleet.leave(None, NOW);
    }
    fleet.pick("free").unwrap();
    fleet.handle_refused(Refusal::VehicleTaken.into(), NOW);
    assert_eq!((fleet.picked(), &told(&fleet)["refused"]["word"]), (None, &"taken".into()));
}

#[test]
fn a_configured_vehicle_is_picked_at_start_and_its_key_is_kept() {
    let [own, other] = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]).public());
    let named = Config {
        vehicle: Some("free".to_owned()),
        vehicle_key: Some(own.to_string()),
        vehicles: [("mine".to_owned(), other.to_string())].into(),
        ..anna()
    };
    let mut fleet = fleet(&named);
    assert_eq!((fleet.picked(), fleet.is_by_person()), (Some("free"), false));
    fleet.check_key(own).unwrap();
    let refused = fleet.check_key(other).unwrap_err().to_string();
    assert_eq!(refused, format!("its key is {other}, but the one known here is {own}"));
    fleet.leave(None, NOW);
    fleet.pick("mine").unwrap();
    assert!(fleet.is_by_person() && fleet.check_key(own).is_err(), "its key is set too");
    fleet.leave(Some(other), NOW);
    fleet.pick("away").unwrap();
    fleet.check_key(own).unwrap();
    fleet.leave(Some(own), NOW);
    fleet.pick("away").unwrap();
    assert!(fleet.check_key(other).is_err(), "it was driven under another key");
    let two = Config { vehicles: [("free".to_owned(), other.to_string())].into(), ..named };
    assert!(two.vehicle_keys().unwrap_err().to_string().contains("a different key for \"free\""));
}

proptest! {
    /// Whichever messages pages and the switchboard send, the fleet requests only a listed vehicle
    /// that no other operator has.
    #[test]
    fn nothing_is_wanted_that_is_not_free(
        acts in prop::collection::vec((0..5_u8, 0..7_usize, any::<String>()), 0..40)
    ) {
        let mut fleet = fleet(&anna());
        let names = ["away", "free", "mine", "their", "theirs, away", "", "x"];
        for (act, of, text) in acts {
            let before = fleet.picked().map(str::to_owned);
            match act {
                0 => { let _ = fleet.pick(names[of]); }
                1 => { let _ = fleet.pick(&text); }
                2 => fleet.leave(None, NOW),
                3 => fleet.handle_refused(Word::Refused, NOW),
                _ => fleet.keep(Word::Moving),
            }
            let picked = fleet.picked();
            prop_assert!(picked.is_none_or(|name| names[..3].contains(&name)));
            if let (Some(before), Some(now)) = (&before, picked) {
                prop_assert_eq!(before, now, "another one only after the first was let go of");
            }
            told(&fleet);
        }
    }
}
