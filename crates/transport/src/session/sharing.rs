//! How a media unit is shared among the links, and how large the application may make it.

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::Shared;
use super::active::Active;
use super::outgoing::Outgoing;
use super::rescue::Carrying;
use crate::error::SendError;
use crate::link::Link;
use crate::sender::planner;
use crate::sender::planner::quantile::{self, Offer};
use crate::sender::protect::{self, Plan};
use crate::wire::{LinkNumber, SYMBOL_AROUND_BYTES};

impl Active {
    /// Plans a media unit and chooses a link for each of its packets, into `assignment`: the link's
    /// place, or `None` for a packet that is not sent.
    pub(super) fn assign(
        &mut self,
        unit: &[u8],
        symbol_bytes_max: usize,
        deadline: Instant,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<Plan, SendError> {
        self.budget.on_unit(now);
        self.unsettled = true;
        self.outgoing.media_span = deadline.since(now);
        let carrying = Carrying::of(&self.links);
        let places = Places::of(&self.links, |link| carrying.allows(link));
        if places.get().is_empty() {
            return Err(SendError::NoLink);
        }
        if self.outgoing.policy.is_none() {
            return self.assign_jointly(
                unit,
                symbol_bytes_max,
                places.get(),
                deadline,
                shared,
                now,
            );
        }
        let config = &shared.config.protect;
        let plan = match &mut self.outgoing.stream {
            None => protect::plan_media(config, unit.len(), symbol_bytes_max),
            Some(stream) => protect::plan_stream(unit.len(), symbol_bytes_max, |source_count| {
                stream.due(source_count, config.code_rate)
            }),
        };
        let plan = plan.map_err(|most| too_large(unit, most))?;
        let clock = self.clock(now);
        let mut views = [IDLE; LinkNumber::COUNT];
        for (view, place) in views.iter_mut().zip(places.get()) {
            let link = &self.links[*place];
            *view = planner::Link {
                free_at: link.pacer.free_at(now),
                rate: link.pacer.rate(),
                owd: link.owd_out_or_guess(clock),
            };
        }
        let block = planner::Block {
            source_count: plan.source_count,
            packet_count: plan.packet_count,
            datagram_bytes: ByteCount::new((plan.symbol_bytes + SYMBOL_AROUND_BYTES) as u64),
            deadline,
            spread: shared.config.spread,
            now,
        };
        let Outgoing { policy: Some(policy), assignment, .. } = &mut self.outgoing else {
            return Err(SendError::NoLink);
        };
        policy.assign(&block, &views[..places.get().len()], assignment);
        for choice in assignment.iter_mut().flatten() {
            *choice = places.get()[*choice];
        }
        Ok(plan)
    }

    /// Chooses repair and shares of a unit together: see [`quantile`].
    fn assign_jointly(
        &mut self,
        unit: &[u8],
        symbol_bytes_max: usize,
        places: &[usize],
        deadline: Instant,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<Plan, SendError> {
        let offers = self.offers(places, deadline.since(now), shared, now);
        let offers = &offers[..places.len()];
        for (offer, place) in offers.iter().zip(places) {
            self.links[*place].reserve = ByteCount::new(offer.reserve as u64);
        }
        let aim = self.outgoing.price.aim(shared.config.spread);
        let shares = quantile::plan(unit.len(), symbol_bytes_max, offers, &aim);
        let Some(quantile::Shares { mut plan, mut counts }) = shares else {
            let most = quantile::unit_bytes_max(symbol_bytes_max);
            return Err(match unit.len() > most {
                true => too_large(unit, ByteCount::new(most as u64)),
                false => SendError::Congested,
            });
        };
        // A link that carries nothing shows nothing: now and then it gets a repair packet.
        let datagram = ByteCount::new((plan.symbol_bytes + SYMBOL_AROUND_BYTES) as u64);
        for (count, place) in counts.iter_mut().zip(places) {
            let link = &mut self.links[*place];
            let idle = *count == 0 && now.since(link.media_at) >= PROBE_INTERVAL;
            if idle && plan.packet_count < PACKETS_MAX && link.has_room(datagram) {
                *count = 1;
                plan.packet_count += 1;
                link.media_at = now;
            }
        }
        let assignment = &mut self.outgoing.assignment;
        assignment.clear();
        // Each link's packets lie apart in the block, so that its failure costs sources and repairs
        // alike.
        while assignment.len() < plan.packet_count {
            for (count, place) in counts.iter_mut().zip(places).filter(|(count, _)| **count > 0) {
                *count -= 1;
                assignment.push(Some(*place));
            }
        }
        Ok(plan)
    }

    /// What each link offers for a unit that is worth something for `span`.
    fn offers(
        &self,
        places: &[usize],
        span: Duration,
        shared: &Shared,
        now: Instant,
    ) -> [Offer; LinkNumber::COUNT] {
        let clock = self.clock(now);
        let interval = self.budget.unit_interval();
        let reserve = reserve(shared.config.protect.floor, span, interval);
        let mut offers = [Offer::NONE; LinkNumber::COUNT];
        for (offer, place) in offers.iter_mut().zip(places) {
            let link = &self.links[*place];
            let rate = link.pacer.rate();
            let wait = link.pacer.free_at(now).since(now);
            let bytes = |time: Duration| (rate * time).get() as f64;
            let spare = span.saturating_sub(wait + interval + link.owd_out_or_guess(clock));
            let standing = link.standing(spare, &shared.config, now);
            let unreported = (link.in_flight.in_flight() + link.pacer.queued()).get() as f64;
            *offer = Offer {
                pace: bytes(interval),
                credit: bytes(CREDIT_TIME) - bytes(wait),
                room: link
                    .grant
                    .window
                    .map_or(f64::INFINITY, |most| most.get() as f64 - unreported),
                reserve,
                idle: wait.is_zero(),
                probability: link.on_time.probability(standing),
                loss: link.on_time.loss(),
            };
        }
        offers
    }

    /// Source bits per second that the application may send.
    pub(super) fn affordable(&self, carrying: Carrying, shared: &Shared, now: Instant) -> Bitrate {
        let span = self.outgoing.media_span;
        let clock = self.clock(now);
        let in_time = |link: &Link| carrying.allows(link) && link.owd_out_or_guess(clock) < span;
        let datagram_bytes = self.datagram_bytes_max(shared);
        if let Some(policy) = &self.outgoing.policy {
            let links = self.links.iter().filter(|link| in_time(link));
            let mut granted: Vec<Bitrate> = links.map(|link| link.to_hand_out(span)).collect();
            granted.sort_unstable_by(|a, b| b.cmp(a));
            return self.budget.fixed(policy.usable(&granted), &shared.config, datagram_bytes);
        }
        let places = Places::of(&self.links, |link| carrying.allows(link));
        let places = places.get();
        if places.is_empty() {
            return Bitrate::ZERO;
        }
        let offers = self.offers(places, span, shared, now);
        let room = |offer: &Offer| offer.room + offer.reserve;
        if !offers[..places.len()].iter().any(|offer| room(offer) >= ROOM_LEAST) {
            // Nothing says that what is on its way arrives: no path is confirmed.
            return Bitrate::ZERO;
        }
        let aim = self.outgoing.price.aim(shared.config.spread);
        let symbol_bytes = datagram_bytes - SYMBOL_AROUND_BYTES;
        let bytes = quantile::size(&offers[..places.len()], &aim, symbol_bytes);
        let bits = bytes * 8.0 / self.budget.unit_interval().as_secs_f64();
        Bitrate::from_bps(bits as u64).max(shared.config.protect.floor)
    }
}

/// The places of some links.
#[derive(Debug, Clone, Copy)]
struct Places {
    places: [usize; LinkNumber::COUNT],
    count: usize,
}

impl Places {
    fn of(links: &[Link], chosen: impl Fn(&Link) -> bool) -> Self {
        let mut found = Self { places: [0; LinkNumber::COUNT], count: 0 };
        for (place, _) in links.iter().enumerate().filter(|(_, link)| chosen(link)) {
            found.places[found.count] = place;
            found.count += 1;
        }
        found
    }

    fn get(&self) -> &[usize] {
        &self.places[..self.count]
    }
}

/// Bytes that units at the floor's rate may have on their way beyond a link's window.
///
/// The window stops what would only lengthen a stall. Small units lengthen it little, and those of
/// its last `span` are in time if they wait in the link rather than here, where the end of the stall
/// is known half a round trip late.
fn reserve(floor: Bitrate, span: Duration, interval: Duration) -> f64 {
    let units = span.as_secs_f64() / interval.as_secs_f64();
    (floor * span).get() as f64 + SYMBOL_AROUND_BYTES as f64 * units
}

pub(super) fn too_large(unit: &[u8], most: ByteCount) -> SendError {
    SendError::TooLarge { found: ByteCount::of(unit), most }
}

/// A link without media gets a packet so often.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// How long a packet may wait for its link's pace beside what one unit's time carries.
const CREDIT_TIME: Duration = Duration::from_millis(5);
/// A link with less room has none: bytes of a small packet.
const ROOM_LEAST: f64 = 150.0;
/// GF(2^8) has room for 256 packets in a block.
const PACKETS_MAX: usize = 256;
const IDLE: planner::Link = planner::Link {
    free_at: Instant::ZERO,
    rate: tautline_units::Bitrate::ZERO,
    owd: Duration::ZERO,
};
