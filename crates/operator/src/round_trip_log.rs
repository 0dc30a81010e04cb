//! The round-trip log: end to end, separately for each link.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tautline_net::clock::Clock;
use tautline_net::latency::{Leg, Log, OneWay, Sample};
use tautline_transport::{LinkNumber, RoundTrip};
use tautline_units::{ByteCount, Instant};

/// Log of the sessions' round trips, each recorded once, in files of latency.
#[derive(Debug)]
pub(crate) struct RoundTripLog {
    log: Log,
    vehicle: Arc<str>,
    clock: Clock,
    /// Number of the next round trip to record; `None` before the first of a session.
    next_number: Option<u64>,
}

impl RoundTripLog {
    /// Creates `folder` if it is missing, and begins new files of latency there.
    ///
    /// # Errors
    /// Fails if the folder or a file cannot be created.
    pub(crate) fn create(folder: &Path, clock: Clock) -> anyhow::Result<Self> {
        let log = Log::begin_anew(folder, BYTES_MAX, clock)?;
        Ok(Self { log, vehicle: "".into(), clock, next_number: None })
    }

    /// Sets the vehicle of the following round trips; nothing is written. The first round trip seen
    /// of the new session sets where its numbering begins.
    pub(crate) fn handle_new_session(&mut self, vehicle: &str) {
        (self.next_number, self.vehicle) = (None, vehicle.into());
    }

    /// Records those of the newest round trips, in ascending order, that are not recorded yet; gaps
    /// in their numbers count as dropped. `links` has the links' names; a link without one gets its
    /// number.
    pub(crate) fn record<'a>(
        &mut self,
        newest: impl Iterator<Item = &'a RoundTrip>,
        links: &[(LinkNumber, Arc<str>)],
    ) {
        for trip in newest {
            let next = self.next_number.unwrap_or(trip.number);
            if trip.number < next {
                continue;
            }
            self.log.lose(trip.number - next);
            self.next_number = Some(trip.number + 1);
            let name = links.iter().find(|(number, _)| *number == trip.link);
            let link =
                name.map_or_else(|| trip.link.get().to_string().into(), |(_, name)| name.clone());
            self.log.note(self.sample(trip, link));
        }
    }

    /// Returns how many round trips were dropped, because they were seen too late or the disk was
    /// too slow.
    pub(crate) fn dropped(&self) -> u64 {
        self.log.lost()
    }

    fn sample(&self, trip: &RoundTrip, link: Arc<str>) -> Sample {
        let RoundTrip { sent_at, seen_at, answered_at, back_at, .. } = *trip;
        let unix = |at| Duration::from_nanos(self.clock.unix_nanos(at));
        let times = [sent_at, seen_at, answered_at, back_at];
        Sample {
            leg: Leg::OperatorVehicle,
            peer: self.vehicle.clone(),
            link,
            sent_at: unix(sent_at),
            seen_at: Some(seen_at.since(Instant::ZERO)),
            back_at: unix(back_at),
            held: trip.held(),
            one_way: trip.clock.as_ref().map(|clock| OneWay::of(times, clock)),
        }
    }
}

/// Limit of the log's size: more than three hours of four links with a ping every 20 ms.
const BYTES_MAX: ByteCount = ByteCount::new(256 << 20);

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::BufReader;

    use tautline_net::latency::{files_in, read};

    use super::*;

    fn trip(number: u64) -> RoundTrip {
        let [sent_at, seen_at] = [number, number + 500_000].map(Instant::from_millis);
        RoundTrip {
            number,
            link: LinkNumber::new((number % 2) as u8).unwrap(),
            sent_at,
            seen_at,
            answered_at: seen_at + Duration::from_millis(3),
            back_at: sent_at + Duration::from_millis(23),
            clock: None,
        }
    }

    #[test]
    fn each_round_trip_is_logged_once_and_missed_ones_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let mut trips = RoundTripLog::create(folder.path(), Clock::start()).unwrap();
        let links = [(LinkNumber::new(0).unwrap(), "lte-a".into())];
        let mut look = |numbers: std::ops::Range<u64>| {
            let newest: Vec<RoundTrip> = numbers.map(trip).collect();
            trips.record(newest.iter(), &links);
        };
        look(40..44);
        look(41..46);
        look(50..52);
        trips.handle_new_session("car-1");
        trips.record([trip(0)].iter(), &links);
        assert_eq!(trips.dropped(), 4);
        drop(trips);
        let (_, file) = files_in(folder.path()).unwrap().pop().unwrap();
        let mut found = Vec::new();
        read(BufReader::new(File::open(file).unwrap()), |_, line| {
            let line = line.unwrap();
            assert_eq!(line.sample.round_trip(), Duration::from_millis(20));
            let seen = line.sample.seen_at.unwrap().as_millis();
            found.push((seen, line.sample.link.to_string(), line.lost));
        })
        .unwrap();
        let expected = [40, 41, 42, 43, 44, 45, 50, 51, 0].map(|number| {
            let link = if number % 2 == 0 { "lte-a" } else { "1" };
            (500_000 + number, link.to_owned(), if number == 50 { 4 } else { 0 })
        });
        assert_eq!(found, expected);
    }
}
