//! Tautline's own channels: numbers, orders, priorities, caps and contents.
//!
//! Both ends of a session open all of them, so that the first unit of any is accepted. An
//! application's own channels begin at [`APPLICATION_MIN`].

use tautline_message::ProtocolVersions;
use tautline_message::schema::{self, Schema};
use tautline_transport::channel::{Channel, Descriptor, OpenError, Order, Priority};
use tautline_transport::{ChannelNumber, Session, VersionMismatch, Versions};
use tautline_units::Bitrate;

/// Driving commands: [`tautline_message::Command`], operator to vehicle.
pub const COMMAND: ChannelNumber = ChannelNumber::COMMAND;
/// Slices of video, vehicle to operator.
pub const VIDEO: ChannelNumber = ChannelNumber::MEDIA;
/// Video feedback and encoder control: [`tautline_message::VideoFeedback`], operator to vehicle.
pub const VIDEO_FEEDBACK: ChannelNumber = ChannelNumber::new(2);
/// State of the vehicle: [`tautline_message::Telemetry`], vehicle to operator.
pub const TELEMETRY: ChannelNumber = ChannelNumber::new(3);
/// Stats of the vehicle: [`tautline_message::Snapshot`], vehicle to operator. A newer unit does not
/// replace an older one.
pub const SNAPSHOT: ChannelNumber = ChannelNumber::new(4);
/// Questions of a packet-size probe: [`tautline_message::ProbeQuestion`], operator to vehicle.
pub const PROBE_QUESTION: ChannelNumber = ChannelNumber::new(5);
/// Answers of a packet-size probe: [`tautline_message::ProbeAnswer`], vehicle to operator.
pub const PROBE_ANSWER: ChannelNumber = ChannelNumber::new(6);
/// Axes, actions and values that the machine declares: [`tautline_message::Description`], vehicle
/// to operator.
pub const DESCRIPTION: ChannelNumber = ChannelNumber::new(7);
/// Newest readings of the machine's values: [`tautline_message::Values`], vehicle to operator.
pub const VALUES: ChannelNumber = ChannelNumber::new(8);
/// First number for an application; lower numbers are reserved.
pub const APPLICATION_MIN: u8 = 16;

/// Returns the protocol versions of this build, for the switchboard; never `None`.
pub fn versions() -> Option<ProtocolVersions> {
    let Versions { lowest, highest } = Versions::OURS;
    Some(ProtocolVersions { lowest, highest })
}

/// Returns the mismatch, if the peer's versions from the switchboard share none with this build;
/// `None` also if the peer's versions are unknown or invalid.
pub fn mismatch(peer: Option<ProtocolVersions>) -> Option<VersionMismatch> {
    let peer = Versions::new(peer?.lowest, peer?.highest)?;
    VersionMismatch::of(Versions::OURS, peer)
}

/// Opens every channel of Tautline.
///
/// # Errors
/// [`OpenError`] if the session's other channels leave no room.
pub fn open(session: &mut Session) -> Result<(), OpenError> {
    all().into_iter().try_for_each(|channel| session.open(channel))
}

/// Returns every channel of Tautline, in order of their numbers.
///
/// Commands and video have no cap. Each other cap is several times the normal rate: it bounds the
/// traffic of a fault.
pub fn all() -> [Channel; 9] {
    let newest = |number, priority, kbps, topic, schema| Channel {
        number,
        order: Order::NewestWins,
        priority,
        rate_cap: Some(Bitrate::from_kbps(kbps)),
        descriptor: flatbuffer(topic, schema),
    };
    let video = Descriptor {
        topic: "/vehicle/video".into(),
        message_encoding: "tautline-slice".into(),
        ..Descriptor::default()
    };
    [
        Channel {
            descriptor: flatbuffer("/operator/command", schema::COMMAND),
            ..Channel::command()
        },
        Channel { descriptor: video, ..Channel::media() },
        newest(
            VIDEO_FEEDBACK,
            Priority::Feedback,
            256,
            "/operator/video_feedback",
            schema::VIDEO_FEEDBACK,
        ),
        newest(TELEMETRY, Priority::Telemetry, 512, "/vehicle/telemetry", schema::TELEMETRY),
        Channel {
            order: Order::ByDeadline,
            ..newest(SNAPSHOT, Priority::Telemetry, 256, "/vehicle/snapshot", schema::SNAPSHOT)
        },
        newest(
            PROBE_QUESTION,
            Priority::Telemetry,
            128,
            "/operator/probe_question",
            schema::PROBE_QUESTION,
        ),
        newest(
            PROBE_ANSWER,
            Priority::Telemetry,
            128,
            "/vehicle/probe_answer",
            schema::PROBE_ANSWER,
        ),
        newest(
            DESCRIPTION,
            Priority::Telemetry,
            256,
            "/vehicle/machine/description",
            schema::DESCRIPTION,
        ),
        newest(VALUES, Priority::Telemetry, 256, "/vehicle/machine/values", schema::VALUES),
    ]
}

/// Returns the display name of `channel`; for any other than Tautline's own, its number.
pub fn name(channel: ChannelNumber) -> String {
    match channel {
        COMMAND => "command".to_owned(),
        VIDEO => "video".to_owned(),
        VIDEO_FEEDBACK => "video feedback".to_owned(),
        TELEMETRY => "telemetry".to_owned(),
        SNAPSHOT => "snapshot".to_owned(),
        PROBE_QUESTION => "probe question".to_owned(),
        PROBE_ANSWER => "probe answer".to_owned(),
        DESCRIPTION => "description".to_owned(),
        VALUES => "values".to_owned(),
        other => other.to_string(),
    }
}

fn flatbuffer(topic: &str, schema: Schema) -> Descriptor {
    Descriptor {
        topic: topic.into(),
        message_encoding: "flatbuffer".into(),
        schema_name: schema.name.into(),
        schema_encoding: "flatbuffer".into(),
        schema: schema.bytes.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_says_nothing_of_versions_is_the_one_to_update() {
        let unsaid = Some(ProtocolVersions { lowest: 1, highest: 1 });
        let told = mismatch(unsaid).unwrap().told("the vehicle");
        assert_eq!(told, "this end speaks version 3, the vehicle version 1: update the vehicle");
        // An older switchboard reports no versions, and this build matches itself.
        assert_eq!((mismatch(None), mismatch(versions())), (None, None));
    }

    #[test]
    fn built_in_channels_have_one_byte_numbers_and_unique_topics() {
        let all = all();
        assert!(all.iter().all(|channel| channel.number.get() < 15));
        let topics: std::collections::BTreeSet<_> =
            all.iter().map(|channel| channel.descriptor.topic.as_str()).collect();
        assert_eq!(topics.len(), all.len());
    }
}
