use crate::generated::telemetry;
use crate::point_cloud::{Point, Reader, View};
use crate::{
    Builder, Command, Control, Description, LinkAction, OperatorStatus, PointCloud, ProbeAnswer,
    ProbeQuestion, QuorumStep, Sight, Sights, Snapshot, StripReport, Telemetry, Values,
    VideoFeedback,
};
use flatbuffers::FlatBufferBuilder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tautline_guard::{Axes, Twist};
use tautline_units::{ByteCount, Instant};

use super::arbitrary;

macro_rules! comes_back_as_it_was {
    ($($test:ident: $message:ident of $any:ident;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(64))]
            $(
                #[test]
                fn $test(first in arbitrary::$any(), second in arbitrary::$any()) {
                    let bytes = first.encode();
                    prop_assert_eq!($message::decode(&bytes), Ok(first.clone()));
                    // A reused builder leaves no trace of the previous message.
                    let mut builder = Builder::new();
                    second.encode_into(&mut builder);
                    prop_assert_eq!(first.encode_into(&mut builder), bytes);
                }
            )*
        }
    };
}

comes_back_as_it_was! {
    a_command_comes_back_as_it_was: Command of command;
    video_feedback_comes_back_as_it_was: VideoFeedback of video_feedback;
    a_link_action_comes_back_as_it_was: LinkAction of link_action;
    telemetry_comes_back_as_it_was: Telemetry of telemetry;
    operator_status_comes_back_as_it_was: OperatorStatus of operator_status;
    control_comes_back_as_it_was: Control of control;
    a_snapshot_comes_back_as_it_was: Snapshot of snapshot;
    a_probe_question_comes_back_as_it_was: ProbeQuestion of probe_question;
    a_probe_answer_comes_back_as_it_was: ProbeAnswer of probe_answer;
    a_quorum_step_comes_back_as_it_was: QuorumStep of quorum_step;
    a_point_cloud_comes_back_as_it_was: PointCloud of point_cloud;
    values_come_back_as_they_were: Values of values;
}

proptest! {
    #[test]
    fn points_come_back_as_they_were(points in arbitrary::points()) {
        let mut cloud = PointCloud::new(Instant::from_millis(7), "lidar");
        cloud.set_points(&points);
        let bytes = cloud.encode();
        let mut builder = Builder::new();
        prop_assert_eq!(cloud.encode_points_into(&points, &mut builder), &bytes);
        let view = View::of(&bytes).unwrap();
        prop_assert_eq!(view.point_count(), points.len());
        let mut reader = Reader::new();
        prop_assert_eq!(&reader.read(&bytes), &Ok(view.clone()));
        prop_assert_eq!(&reader.read(&bytes), &Ok(view.clone()));
        prop_assert_eq!(view.point::<Point>(points.len()), None);
        let mut read = vec![Point::default(); 3];
        view.read_points(&mut read);
        prop_assert_eq!(&read, &points);

        // The same records in another layout: one more field, and the reverse order.
        let mut widened = cloud;
        widened.data = widened.data.chunks(16).flat_map(|r| [&[9; 4], r].concat()).collect();
        widened.stride = ByteCount::new(20);
        for field in &mut widened.fields {
            field.offset += ByteCount::new(4);
        }
        widened.fields.reverse();
        let bytes = widened.encode();
        View::of(&bytes).unwrap().read_points(&mut read);
        prop_assert_eq!(&read, &points);
    }

    #[test]
    fn the_data_of_a_cloud_are_aligned_within_the_message(cloud in arbitrary::point_cloud()) {
        let bytes = cloud.encode();
        let data = View::of(&bytes).unwrap().data();
        prop_assert_eq!((data.as_ptr() as usize - bytes.as_ptr() as usize) % 16, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Clouds of one sensor with more and fewer points, clouds of others, and malformed ones
    /// between.
    #[test]
    fn a_reader_says_of_every_message_what_a_view_says(
        sensors in vec(arbitrary::point_cloud(), 1..3),
        turns in vec((any::<Index>(), any::<u16>(), 0usize..40, any::<Option<(Index, u8)>>()), 1..12),
    ) {
        let mut reader = Reader::new();
        for (sensor, time, count, spoilt) in turns {
            let mut cloud = sensor.get(&sensors).clone();
            cloud.captured_at = Instant::from_millis(time.into());
            cloud.data.resize(count * cloud.stride.get() as usize, 7);
            let mut message = cloud.encode();
            if let Some((at, byte)) = spoilt {
                *at.get_mut(&mut message) ^= byte;
            }
            let (known, anew) = (reader.read(&message), View::of(&message));
            prop_assert_eq!(known, anew);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn clouds_of_any_size_leave_no_trace_in_a_builder(
        clouds in vec((arbitrary::point_cloud(), arbitrary::points()), 1..6),
        command in arbitrary::command(),
    ) {
        let mut builder = Builder::new();
        for (cloud, points) in clouds {
            prop_assert_eq!(cloud.encode_into(&mut builder), cloud.encode());
            let mut filled = cloud.clone();
            filled.fields.clear();
            filled.set_points(&points);
            prop_assert_eq!(cloud.encode_points_into(&points, &mut builder), filled.encode());
            prop_assert_eq!(command.encode_into(&mut builder), command.encode());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// By the bytes: a limit that is not a number equals none.
    #[test]
    fn a_description_comes_back_as_it_was(description in arbitrary::description()) {
        let bytes = description.encode();
        let read = Description::decode(&bytes).unwrap();
        prop_assert_eq!(&read.encode(), &bytes);
        prop_assert_eq!(format!("{read:?}"), format!("{description:?}"));
    }
}

#[test]
fn a_command_takes_64_bytes_and_8_fewer_of_no_console() {
    let command = Command {
        sequence: 1,
        sent_at: Instant::from_millis(2),
        steering: 0.5,
        throttle: 0.25,
        brake: 0.0,
        gear: Default::default(),
        emergency_stop: false,
        ..Command::default()
    };
    assert_eq!(command.encode().len(), 56);
    assert_eq!(Command { console: u64::MAX, ..command }.encode().len(), 64);
    // The fields about the person come on top: a console and the tick of a picture, as usual.
    let cited = Command { console: 1 << 40, cited: 77, ..command };
    assert!(cited.encode().len() <= 80, "{}", cited.encode().len());
    // A twist adds 12 bytes and its place in the table.
    let twist = Twist { forward: 1.0, sideways: 0.0, yaw_rate: -0.5 };
    let twisted = Command { twist, ..cited }.encode().len();
    assert!(twisted <= 104, "{twisted}");
    // Axes without a set point at the end of the list are not sent.
    let mut axes = Axes::NONE;
    axes.0[1] = 0.5;
    let boom = Command { axes, twist, ..cited }.encode().len();
    assert!(boom <= 128, "{boom}");
}

#[test]
fn feedback_takes_8_bytes_a_strip() {
    let nothing = VideoFeedback::default();
    let report = StripReport { newest: 7, clean_before: Some(2), lost_before: None };
    let strips = |count: usize| {
        let mut strips = [None; VideoFeedback::STRIPS_MAX];
        strips[..count].fill(Some(report));
        VideoFeedback { strips, ..nothing }.encode().len()
    };
    assert!(nothing.encode().len() <= 24, "{}", nothing.encode().len());
    assert_eq!(strips(6) - strips(2), 32);
    assert!(strips(8) <= 104, "{}", strips(8));
}

/// A reader skips fields that a later version appends, and fills in missing ones.
#[test]
fn a_field_that_is_not_known_is_skipped() {
    let mut builder = FlatBufferBuilder::new();
    let table = builder.start_table();
    builder.push_slot_always(telemetry::Telemetry::VT_SEQUENCE, 4_u64);
    builder.push_slot_always(telemetry::Telemetry::VT_SIGHT, 1_u32 << 31 | 1);
    builder.push_slot_always(4 + 2 * 100, 77_u64);
    let root = builder.end_table(table);
    builder.finish(root, Some(telemetry::TELEMETRY_IDENTIFIER));
    let read = Telemetry::decode(builder.finished_data()).unwrap();
    assert_eq!((read.sequence, read.status.as_ref()), (4, None));
    assert_eq!(read.sight, Sights::of(Sight::Drawn), "a bit of a later version is ignored");
}
