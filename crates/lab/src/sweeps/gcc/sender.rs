//! A WebRTC video sender: its congestion control, its pacer, and an encoder that follows the
//! target.

use std::collections::VecDeque;
use std::time::Duration;

use goog_cc::network_control::{NetworkControllerConfig, NetworkControllerInterface};
use goog_cc::transport::{
    NetworkAvailability, NetworkControlUpdate, PacedPacketInfo, PacketResult, ProbeClusterConfig,
    ProcessInterval, SentPacket, StreamsConfig, TargetRateConstraints, TransportPacketsFeedback,
};
use goog_cc::units::{DataRate, DataSize, Timestamp};
use goog_cc::{GoogCcConfig, GoogCcNetworkController};
use tautline_units::{ByteCount, Instant};

use super::super::links::trail::Passage;
use super::feedback::Feedback;

/// A sender that behaves like WebRTC's.
pub(super) struct Sender {
    controller: GoogCcNetworkController,
    /// The encoder's rate, bit/s.
    target: f64,
    /// The pacer's rate, bit/s.
    pacing: f64,
    /// Congestion window in bytes; `None` for no limit.
    window: Option<i64>,
    probes: VecDeque<Probe>,
    /// Sizes of the media packets queued in the pacer, in bytes.
    queue: VecDeque<usize>,
    unit_at: Instant,
    send_at: Instant,
    process_at: Instant,
    /// All packets by number, in the controller's representation.
    sent: Vec<SentPacket>,
    /// All packets by number; the receiver fills in `arrived`.
    pub(super) passages: Vec<Passage>,
    /// Number of the first packet that no feedback covers yet.
    open: usize,
    in_flight: i64,
}

/// A probe cluster requested by the controller.
struct Probe {
    config: ProbeClusterConfig,
    packets: i32,
    bytes: i64,
}

impl Sender {
    pub(super) fn new(now: Instant) -> Self {
        let constraints = TargetRateConstraints {
            at_time: time(now),
            min_data_rate: Some(DataRate::from_bits_per_sec(RATE_MIN)),
            max_data_rate: Some(DataRate::from_bits_per_sec(RATE_MAX)),
            starting_rate: Some(DataRate::from_bits_per_sec(RATE_START)),
        };
        let streams = StreamsConfig {
            at_time: time(now),
            requests_alr_probing: Some(true),
            max_total_allocated_bitrate: Some(DataRate::from_bits_per_sec(RATE_MAX)),
            ..StreamsConfig::default()
        };
        let config = NetworkControllerConfig {
            constraints,
            stream_based_config: streams,
            ..NetworkControllerConfig::default()
        };
        // Losses and round-trip times come from the transport-wide feedback: there is no RTCP here.
        let feedback_only = GoogCcConfig { feedback_only: true };
        let mut sender = Self {
            controller: GoogCcNetworkController::new(config, feedback_only),
            target: RATE_START as f64,
            pacing: RATE_START as f64,
            window: None,
            probes: VecDeque::new(),
            queue: VecDeque::new(),
            unit_at: now,
            send_at: now,
            process_at: now,
            sent: Vec::new(),
            passages: Vec::new(),
            open: 0,
            in_flight: 0,
        };
        let at_time = time(now);
        let available = NetworkAvailability { at_time, network_available: true };
        let update = sender.controller.on_network_availability(available);
        sender.obey(update);
        sender
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        let next = self.unit_at.min(self.process_at);
        if self.may_send() { next.min(self.send_at) } else { next }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if now >= self.process_at {
            self.process_at = now + PROCESS_INTERVAL;
            let waiting = DataSize::from_bytes(self.queue.iter().sum::<usize>() as i64);
            let update = self.controller.on_process_interval(ProcessInterval {
                at_time: time(now),
                pacer_queue: Some(waiting),
            });
            self.obey(update);
        }
        if now >= self.unit_at {
            self.unit_at += UNIT_INTERVAL;
            self.encode();
        }
    }

    /// Records the next packet as sent and returns its number and its size in bytes, headers
    /// excluded; `None` if none may be sent at `now`.
    pub(super) fn poll_packet(&mut self, now: Instant) -> Option<(u32, usize)> {
        if now < self.send_at || !self.may_send() {
            return None;
        }
        // A probe carries queued media, filled up with padding.
        let bytes = self.queue.pop_front().unwrap_or(PACKET_BYTES);
        let wire = (bytes + HEADERS) as i64;
        let mut pacing_info = PacedPacketInfo::default();
        let mut rate = self.pacing;
        if let Some(probe) = self.probes.front_mut() {
            pacing_info = probe.note(wire);
            rate = probe.config.target_data_rate.bps_float();
            if probe.is_over() {
                self.probes.pop_front();
            }
        }
        self.send_at = self.send_at.max(now) + Duration::from_secs_f64(wire as f64 * 8.0 / rate);
        self.in_flight += wire;
        let number = self.sent.len();
        let packet = SentPacket {
            send_time: time(now),
            size: DataSize::from_bytes(wire),
            pacing_info,
            sequence_number: number as i64,
            data_in_flight: DataSize::from_bytes(self.in_flight),
            ..SentPacket::default()
        };
        self.sent.push(packet);
        let size = ByteCount::new(bytes as u64);
        self.passages.push(Passage { at: now, link: 0, bytes: size, media: true, arrived: None });
        let update = self.controller.on_sent_packet(packet);
        self.obey(update);
        Some((number as u32, bytes))
    }

    pub(super) fn handle_feedback(&mut self, feedback: &Feedback, now: Instant) {
        let mut results = Vec::new();
        for (number, came) in feedback.packets() {
            let Some(sent_packet) = self.sent.get(number as usize) else { continue };
            let receive_time = came.map_or(Timestamp::plus_infinity(), time);
            results.push(PacketResult {
                sent_packet: *sent_packet,
                receive_time,
                ..PacketResult::default()
            });
            // Feedback may be lost: everything up to the newest number is accounted for.
            while self.open <= number as usize {
                self.in_flight -= self.sent[self.open].size.bytes();
                self.open += 1;
            }
        }
        let update = self.controller.on_transport_packets_feedback(TransportPacketsFeedback {
            feedback_time: time(now),
            data_in_flight: DataSize::from_bytes(self.in_flight),
            packet_feedbacks: results,
            sendless_arrival_times: Vec::new(),
        });
        self.obey(update);
    }

    /// Splits one unit into packets for the pacer, unless the pacer holds more than [`QUEUE_MAX`].
    fn encode(&mut self) {
        let waiting: usize = self.queue.iter().sum();
        if waiting as f64 * 8.0 > self.target * QUEUE_MAX.as_secs_f64() {
            return;
        }
        let mut unit = (self.target / 8.0 * UNIT_INTERVAL.as_secs_f64()) as usize;
        while unit > 0 {
            let packet = unit.min(PACKET_BYTES);
            self.queue.push_back(packet);
            unit -= packet;
        }
    }

    fn may_send(&self) -> bool {
        let open = self.window.is_none_or(|window| self.in_flight < window);
        !self.probes.is_empty() || (open && !self.queue.is_empty())
    }

    fn obey(&mut self, update: NetworkControlUpdate) {
        if let Some(target) = update.target_rate {
            // The encoder drops this share of its pictures while too much is in flight.
            self.target = target.target_rate.bps_float() * (1.0 - target.cwnd_reduce_ratio);
        }
        if let Some(pacer) = update.pacer_config {
            self.pacing = pacer.data_rate().bps_float().max(RATE_MIN as f64);
        }
        if let Some(window) = update.congestion_window {
            self.window = window.is_finite().then(|| window.bytes());
        }
        let probes = update.probe_cluster_configs.into_iter();
        self.probes.extend(probes.map(|config| Probe { config, packets: 0, bytes: 0 }));
    }
}

impl Probe {
    fn note(&mut self, bytes: i64) -> PacedPacketInfo {
        let info = PacedPacketInfo {
            send_bitrate: self.config.target_data_rate,
            probe_cluster_bytes_sent: self.bytes,
            ..PacedPacketInfo::new(
                self.config.id,
                i64::from(self.config.target_probe_count),
                self.bytes_wanted(),
            )
        };
        self.packets += 1;
        self.bytes += bytes;
        info
    }

    fn is_over(&self) -> bool {
        self.packets >= self.config.target_probe_count && self.bytes >= self.bytes_wanted()
    }

    fn bytes_wanted(&self) -> i64 {
        (self.config.target_data_rate * self.config.target_duration).bytes()
    }
}

fn time(at: Instant) -> Timestamp {
    Timestamp::from_micros((at.as_nanos() / 1_000) as i64)
}

/// Interval of units: six slices of 60 pictures per second, as for Tautline's sender.
const UNIT_INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 360);
/// Interval at which WebRTC calls its controllers.
const PROCESS_INTERVAL: Duration = Duration::from_millis(25);
/// Content of the pacer, as time at the target rate, above which the encoder pauses, as WebRTC's
/// does. Its own limit of 2 s would show as delay of the pictures, which is not measured here.
const QUEUE_MAX: Duration = Duration::from_millis(500);
const PACKET_BYTES: usize = 1_200;
/// Bytes of the IPv4 and UDP headers of a packet.
const HEADERS: usize = 28;
/// WebRTC's own minimum rate, bit/s.
const RATE_MIN: i64 = 30_000;
/// WebRTC's own initial rate, bit/s.
const RATE_START: i64 = 300_000;
/// Maximum rate in bit/s: high enough never to be the limit.
const RATE_MAX: i64 = 80_000_000;
