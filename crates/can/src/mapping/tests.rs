use proptest::prelude::*;

use super::*;

const DBC: &str = include_str!("../../../../adapters/can/car.dbc");
const MAP: &str = include_str!("../../../../adapters/can/car.toml");

fn resolve(map: &str) -> Result<Adapter, Vec<Mistake>> {
    Mapping::parse(map).resolve(Database::parse(DBC).as_ref().map_err(Clone::clone))
}

/// Returns the mistakes of the example's map after these replacements.
fn mistakes(changes: &[(&str, &str)]) -> Vec<String> {
    let mut map = MAP.to_owned();
    for (from, to) in changes {
        assert!(map.contains(from), "{from}");
        map = map.replacen(from, to, 1);
    }
    resolve(&map).err().unwrap_or_default().iter().map(Mistake::to_string).collect()
}

/// Asserts that a replacement is one mistake with these words.
fn refused(from: &str, to: &str, words: &str) {
    let mistakes = mistakes(&[(from, to)]);
    assert_eq!(mistakes.len(), 1, "{to}: {mistakes:#?}");
    assert!(mistakes[0].contains(words), "{to}: {}", mistakes[0]);
}

#[test]
fn the_example_is_sound_and_shown() {
    let adapter = resolve(MAP).unwrap();
    let table = crate::table(&adapter);
    for row in [
        "send     STEERING_COMMAND  2E4       10 ms     ANGLE           deg    \
         steering x 450; -450 to 450, at most 500/s up and 700/s down",
        "throttle x 4.2 + brake x -8; -8 to 4.2",
        "at end: REQUEST = 0",
        "receive  VEHICLE_STATUS    18FF50E5  < 250 ms  STEERING_STATE         \
         fault steering if fault",
        "notice local_control if below -3 or above 3",
        "else: speed",
    ] {
        assert!(table.contains(row), "{row}\n{table}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_lines() {
    let mistakes = mistakes(&[
        ("bus = \"can0\"", "buss = \"can0\""),
        ("STEERING_COMMAND", "STERING_COMMAND"),
        ("PARKING_BRAKE = { from = \"parking_brake\" }", "PARKIN_BRAKE = { from = \"parking\" }"),
        ("timeout_ms = 50", "timeout = 50"),
        ("CHARGE = { state = \"charge\" }", "CHARGE = 3"),
    ]);
    let lines: Vec<&str> = mistakes.iter().filter_map(|it| it.split(':').next()).collect();
    assert_eq!(lines, ["line 3", "line 5", "line 23", "line 36", "line 55"], "{mistakes:#?}");
    assert!(mistakes[0].contains("unknown field `buss`"), "{}", mistakes[0]);
    assert!(mistakes[1].contains("did you mean STEERING_COMMAND"), "{}", mistakes[1]);
    assert!(mistakes[2].contains("did you mean PARKING_BRAKE"), "{}", mistakes[2]);
    assert!(mistakes[3].contains("unknown field `timeout`"), "{}", mistakes[3]);
}

#[test]
fn what_a_map_lacks_is_named() {
    refused("message = \"VEHICLE_STATUS\"\n", "", "message = \"..\" is missing");
    refused("kind = \"toyota\"", "data_ids = [1]", "kind = \"..\"");
    refused("kind = \"toyota\"", "kind = \"crc\"", "unknown variant `crc`");
    refused(", data_id = 0x343", "", "data_id is missing");
    refused("{ state = \"speed\", scale = 0.2777778 }", "{ fault = \"speed\" }", "gives the speed");
    refused(", { from = \"brake\", scale = -8 }", "", "nothing sends the brake");
    refused(
        "values = { drive = \"D\", reverse = \"R\" } }",
        "values = { drive = \"D\" } }",
        "each of",
    );
}

#[test]
fn what_cannot_be_is_refused() {
    refused("TORQUE_MAX = 8 ", "TORQUE_MAX = 80 ", "not within 0 to 15");
    refused("reverse = \"R\" } }", "reverse = \"B\" } }", "no value \"B\"");
    refused("REQUEST = 1", "REQUEST = true", "a number, or the name of a value");
    refused("REQUEST = 1", "COUNTER = 1", "COUNTER is filled in");
    refused("min = -450, max = 450", "min = 9, max = 1", "min is above max");
    refused("fault = \"speed\"", "fault = \"sped\"", "did you mean speed");
    refused("timeout_ms = 250", "fault = \"none\"", "leave fault = \"none\" out");
    refused("mismatch_max = 5", "mismatch_max = 0", "at least 1");
    refused("timeout_ms = 50", "timeout_ms = 0", "not 1 to 10000");
    refused("signal = \"CRC\"", "signal = \"COUNTER\"", "no checksum of one byte");
    refused("{ state = \"charge\" }", "{ state = \"speed\" }", "line 42 gives the same state");
    refused("notice = \"local_stop\"", "notice = \"guard_silent\"", "the adapter itself");
    refused(
        "notice = \"local_stop\"",
        "notice = \"local_stop\", scale = 2",
        "scale has no meaning",
    );
    refused("above = 3", "above = -9", "higher than above");
    let twice = "[[receive]]\nmessage = \"VEHICLE_STATUS\"\n[[receive]]";
    refused("[[receive]]", twice, "above: join the two");
}

/// Returns the mistakes of the rover's map after a replacement.
fn rover(from: &str, to: &str) -> Vec<String> {
    let (dbc, map) = (
        include_str!("../../../../adapters/can/rover.dbc"),
        include_str!("../../../../adapters/can/rover.toml"),
    );
    assert!(map.contains(from), "{from}");
    let mapping = Mapping::parse(&map.replacen(from, to, 1));
    let resolved = mapping.resolve(Database::parse(dbc).as_ref().map_err(Clone::clone));
    resolved.err().unwrap_or_default().iter().map(Mistake::to_string).collect()
}

#[test]
fn declarations_are_checked() {
    let told = |from: &str, to: &str, words: &str| {
        let mistakes = rover(from, to);
        // Signals of what is not declared follow it.
        let first = mistakes.first().map_or("", String::as_str);
        assert!(first.contains(words), "{to}: {mistakes:#?}");
    };
    assert_eq!(rover("boom", "boom"), [""; 0]);
    told("rate = 0.4\n", "", "line 5: boom: its rate must be");
    told("on_stop = \"hold\"", "on_stop = \"stay\"", "no on_stop \"stay\"");
    told("on_stop = \"hold\"", "on_stop = 3.0", "set point of a stop must lie in its range");
    told("form = \"request\"", "form = \"requests\"", "did you mean request?");
    told("name = \"lights\"", "name = \"boom\"", "an entry above has that name");
    told("TURN = { state = \"yaw_rate\" }\n", "", "yaw_rate: it is commanded and not reported");
    told("LIGHTS = { from = \"lights\" }\n", "", "line 13: no signal follows it");
    told("VOLTAGE = { value = \"battery\" }\n", "", "line 23: no signal gives it");
    told("{ axis = \"boom\", ", "{ axis = \"bom\", ", "no axis \"bom\": did you mean boom");
    told("{ from = \"dock\" }", "{ from = \"battery\" }", "it can only be received");
    told("answer = \"dock\", values", "answer = \"lights\", values", "of the form request");
    told("accepted = \"accepted\", ", "", "values names no accepted");
}

#[test]
fn a_map_without_actions_declares_those_of_a_car_that_it_sends() {
    let names = |map: &str| {
        let adapter = resolve(map).unwrap();
        adapter.description().iter().map(|item| item.name().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(MAP), ["horn", "lights", "left", "right", "hazard"]);
    let line = MAP.lines().find(|line| line.starts_with("INDICATORS")).unwrap();
    assert_eq!(names(&MAP.replace(line, "")), ["horn", "lights"]);
}

#[test]
fn a_multiplexed_signal_sets_its_switch_and_stands_alone() {
    let send = |signals: &str| {
        let entry = format!("[[send]]\nmessage = \"VEHICLE_STATUS\"\n[send.signals]\n{signals}\n");
        mistakes(&[("[[receive]]", &format!("{entry}[[receive]]"))])
    };
    assert_eq!(send("MOTOR_TEMPERATURE = 20"), [""; 0]);
    assert_eq!(send("PAGE = 1\nMOTOR_TEMPERATURE = 20"), [""; 0]);
    let wrong = send("PAGE = 0\nMOTOR_TEMPERATURE = 20");
    assert!(wrong[0].contains("it takes an entry of its own"), "{wrong:?}");
    let both = send("VOLTAGE = 12\nMOTOR_TEMPERATURE = 20");
    assert_eq!(both.len(), 1, "{both:?}");
}

#[test]
fn a_dbc_that_is_none_is_the_first_mistake() {
    let mapping = Mapping::parse("buss = 1\n");
    let mistakes = mapping.resolve(Database::parse("no DBC").as_ref().map_err(Clone::clone));
    let mistakes: Vec<String> = mistakes.unwrap_err().iter().map(Mistake::to_string).collect();
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    assert!(mistakes[0].starts_with("it is no DBC file"), "{mistakes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_map_is_resolved_or_refused(
        at: proptest::sample::Index,
        length in 0_usize..30,
        with in "[ -~\n]{0,20}",
    ) {
        let mut map = MAP.to_owned();
        let is_edge = |at: &usize| MAP.is_char_boundary(*at);
        let from = (0..=at.index(MAP.len())).rfind(is_edge).unwrap();
        let to = ((from + length).min(MAP.len())..=MAP.len()).find(is_edge).unwrap();
        map.replace_range(from..to, &with);
        for map in [&map, &with] {
            if let Err(mistakes) = resolve(map) {
                prop_assert!(!mistakes.is_empty());
            }
        }
    }
}
