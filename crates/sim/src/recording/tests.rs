use std::io::Write;

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn parse(text: &str, operator: Option<&str>) -> Result<Recording, Error> {
    Recording::parse(text.as_bytes(), Columns { operator, interval: SECOND })
}

fn recording(text: &str) -> Recording {
    parse(text, None).expect("well formed")
}

fn rtt_ms(recording: &Recording, at_ms: u64) -> f64 {
    recording.round_trip(Instant::from_millis(at_ms)).as_secs_f64() * 1e3
}

/// Converts intervals to milliseconds, as the tests below state them.
fn intervals_ms(intervals: &[(u64, u64)]) -> Vec<(u64, u64)> {
    intervals.iter().map(|(from, to)| (from / 1_000_000, to / 1_000_000)).collect()
}

#[test]
fn round_trips_are_straight_between_samples_and_loop() {
    let recording = recording("t_ms,rtt_ms,v_mps\n0,40,1.0\n100,60,1.0\n200,50,1.0\n");
    assert_eq!(recording.period(), Duration::from_millis(300));
    let expected = [(0, 40.0), (50, 50.0), (100, 60.0), (150, 55.0), (299, 50.0), (350, 50.0)];
    for (at, rtt) in expected {
        assert_eq!(rtt_ms(&recording, at), rtt, "at {at} ms");
    }
    assert_eq!((recording.lost_share(), recording.held_share()), (0.0, 0.0));
}

#[test]
fn one_operator_of_a_file_with_a_row_each() {
    let text = "day,operator,run,seq,t_send_epoch_s,rtt_ms\n\
                d,att,1,1,1683987762.656,80.0\n\
                d,verizon,1,1,1683987762.700,50.0\n\
                d,att,1,2,1683987762.856,\n\
                d,verizon,1,2,1683987762.900,52.0\n\
                d,att,1,3,1683987763.056,84.0\n\
                d,att,2,1,1683999999.056,90.0\n";
    let att = parse(text, Some("att")).expect("well formed");
    assert_eq!(intervals_ms(&att.lost), [(100, 300)], "half-way to half-way");
    assert_eq!(att.period().as_millis(), 800, "the pause of hours is cut to one interval");
    assert_eq!(rtt_ms(&att, 600).round(), 90.0);
    let verizon = parse(text, Some("verizon")).expect("well formed");
    assert_eq!(verizon.lost_share(), 0.0);
    let error = |operator| parse(text, operator).expect_err("unclear").to_string();
    assert_eq!(error(None), "operator = none: choose one of att, verizon");
    assert_eq!(error(Some("sprint")), "operator = sprint: choose one of att, verizon");
}

#[test]
fn one_operator_of_a_file_with_a_column_each() {
    let text = "speed,alpha,beta\n0.0,60.0,-1.0\n0.0,62.0,30.0\n0.0,64.0,32.0\n";
    let beta = parse(text, Some("beta")).expect("well formed");
    assert_eq!(beta.period(), 3 * SECOND, "lines are one interval apart");
    assert_eq!(intervals_ms(&beta.lost), [(0, 500)]);
    assert_eq!(rtt_ms(&beta, 1_500), 31.0);
    let error = parse(text, None).expect_err("unclear").to_string();
    assert_eq!(error, "no column \"rtt_ms\" among speed, alpha, beta; name one with operator");
}

#[test]
fn samples_that_came_back_together_were_held() {
    // Sent every 100 ms; those from 200 to 600 ms all came back at 650 ms.
    let text = "t_ms,rtt_ms\n0,50\n100,50\n200,450\n300,350\n400,250\n500,150\n600,50\n700,50\n";
    let recording = recording(text);
    assert_eq!(intervals_ms(&recording.held), [(150, 600)]);
    assert_eq!(rtt_ms(&recording, 400), 50.0, "the path's own");
    // A slow swing is the path's own delay.
    let text = "t_ms,rtt_ms\n0,50\n1000,900\n2000,400\n3000,50\n";
    assert_eq!(self::recording(text).held_share(), 0.0);
}

#[test]
fn a_burst_may_end_in_losses_and_at_the_files_end() {
    let quiet = "t_ms,rtt_ms\n0,50\n100,50\n200,50\n";
    let recording = recording(&format!("{quiet}300,\n400,\n500,450\n600,350\n700,250\n"));
    assert_eq!(intervals_ms(&recording.lost), [(250, 450)]);
    assert_eq!(intervals_ms(&recording.held), [(350, 800)]);
    let text = "t_ms,rtt_ms\n0,50\n100,50\n200,\n300,\n";
    assert_eq!(intervals_ms(&self::recording(text).lost), [(150, 400)]);
}

#[test]
fn errors_name_their_line() {
    let error = |text: &str| parse(text, None).expect_err("malformed").to_string();
    assert_eq!(error(""), "no line with a round trip");
    assert_eq!(error("t_ms,rtt_ms\n"), "no line with a round trip");
    assert_eq!(error("t_ms,rtt_ms\n0,\n1,-1\n"), "no line with a round trip");
    assert_eq!(
        error("t_ms,rtt_ms\n0,1\n1,abc\n"),
        "line 3: rtt_ms = \"abc\" is no round trip in ms, up to an hour"
    );
    assert_eq!(
        error("t_ms,rtt_ms\n0,nan\n"),
        "line 2: rtt_ms = \"nan\" is no round trip in ms, up to an hour"
    );
    assert_eq!(error("t_ms,rtt_ms\n\nx,1\n"), "line 3: t_ms = \"x\" is no time");
    assert_eq!(error("t_ms,rtt_ms\n0,1,2\n"), "line 2: 3 fields in place of 2");
    let backwards = "line 3: its time does not come after the one before it";
    assert_eq!(error("t_ms,rtt_ms\n5,1\n5,1\n"), backwards);
    let days: String = (0..3).map(|day| format!("{},1\n", day * 80_000)).collect();
    assert_eq!(error(&format!("t_s,rtt_ms\n{days}")), "line 4: more than a day after the start");
}

#[test]
fn gzip_is_read_and_truncated_gzip_refused() {
    let text = b"t_ms,rtt_ms\n0,50\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).expect("memory");
    let gzip = gzip.finish().expect("memory");
    assert_eq!(decompressed(gzip.clone()).expect("gzip"), text);
    assert_eq!(decompressed(text.to_vec()).expect("plain"), text);
    assert!(decompressed(gzip[..gzip.len() - 9].to_vec()).is_err());
}

/// Returns realistic files and malformed ones.
fn files() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        4 => (0_u32..2_000).prop_map(|ms| ms.to_string()),
        1 => Just(String::new()),
        1 => Just("-1".to_owned()),
        1 => (0.0..1e7_f64).prop_map(|ms| ms.to_string()),
        1 => "[a-z,\"\\n #]{0,5}",
    ];
    let times = proptest::collection::vec((1_u64..300, field), 0..60);
    (times, prop_oneof![Just("t_ms"), Just("t_s"), Just("seq")]).prop_map(|(rows, time)| {
        let mut at = 0;
        let rows = rows.into_iter().map(|(gap, field)| {
            at += gap;
            format!("{at},{field}\n")
        });
        format!("{time},rtt_ms\n{}", rows.collect::<String>())
    })
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, operator: Option<String>, millis in 1_u64..10_000_000) {
        let interval = Duration::from_millis(millis);
        let _ = Recording::parse(&bytes, Columns { operator: operator.as_deref(), interval });
        let _ = decompressed(bytes);
    }

    #[test]
    fn any_recording_that_parses_is_consistent(text in files(), at: u64) {
        let Ok(recording) = parse(&text, None) else { return Ok(()) };
        let longest = recording.samples.iter().map(|sample| sample.rtt).max();
        prop_assert!(Some(recording.rtt_at(at)) <= longest);
        for list in [&recording.lost, &recording.held] {
            prop_assert!(list.iter().all(|(from, to)| from < to && *to <= recording.period));
            prop_assert!(list.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        }
    }
}
