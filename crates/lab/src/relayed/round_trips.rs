use tautline_net::latency::{Leg, OneWay, Sample};
use tautline_transport::RoundTrip;
use tautline_units::{Duration, Instant};

/// Samples of a session that an operator's process would write into latency files.
#[derive(Default)]
pub(super) struct RoundTrips {
    samples: Vec<Sample>,
    next_number: u64,
}

impl RoundTrips {
    /// Records those of the session's `newest` round trips that are not recorded yet.
    pub(super) fn take<'a>(&mut self, newest: impl Iterator<Item = &'a RoundTrip>) {
        for trip in newest {
            if trip.number >= self.next_number {
                self.next_number = trip.number + 1;
                self.samples.push(sample(trip));
            }
        }
    }

    /// Returns the samples whose ping was sent at `from` or later, and before `until`.
    pub(super) fn within(&self, from: Instant, until: Instant) -> Vec<Sample> {
        let is_within =
            |sample: &&Sample| (from..until).contains(&(Instant::ZERO + sample.sent_at));
        self.samples.iter().filter(is_within).cloned().collect()
    }
}

fn sample(trip: &RoundTrip) -> Sample {
    let RoundTrip { sent_at, seen_at, answered_at, back_at, .. } = *trip;
    // The virtual world starts at the Unix epoch.
    let unix = |at: Instant| -> Duration { at.since(Instant::ZERO) };
    let times = [sent_at, seen_at, answered_at, back_at];
    Sample {
        leg: Leg::OperatorVehicle,
        peer: "vehicle".into(),
        link: trip.link.get().to_string().into(),
        sent_at: unix(sent_at),
        seen_at: Some(unix(seen_at)),
        back_at: unix(back_at),
        held: trip.held(),
        one_way: trip.clock.as_ref().map(|clock| OneWay::of(times, clock)),
    }
}
