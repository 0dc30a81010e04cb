//! How a media unit is shared among the links, and how large the application may make it.

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::planner;
use super::planner::quantile::{self, LinkBudget};
use super::protect::{self, Plan};
use super::{Sender, too_large};
use crate::error::SendError;
use crate::links::Links;
use crate::shared::Shared;
use crate::wire::{LinkNumber, SYMBOL_AROUND_BYTES};

impl Sender {
    /// Plans a media unit and chooses a link for each of its packets, into `assignment`: the link's
    /// place, or `None` for a packet that is not sent.
    pub(super) fn assign(
        &mut self,
        unit: &[u8],
        symbol_bytes_max: usize,
        deadline: Instant,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<Plan, SendError> {
        self.budget.on_unit(now);
        self.budget_stale = true;
        self.media_span = deadline.since(now);
        let places = links.carrier_places();
        if places.get().is_empty() {
            return Err(SendError::NoLink);
        }
        if self.policy.is_none() {
            return self.assign_jointly(unit, symbol_bytes_max, deadline, links, shared, now);
        }
        let config = &shared.config.protect;
        let plan = match &mut self.recovery.stream {
            None => protect::plan_media(config, unit.len(), symbol_bytes_max),
            Some(stream) => protect::plan_stream(unit.len(), symbol_bytes_max, |source_count| {
                stream.due(source_count, config.code_rate)
            }),
        };
        let plan = plan.map_err(|most| too_large(unit, most))?;
        let clock = links.clock(now);
        let mut views = [IDLE; LinkNumber::COUNT];
        for (view, place) in views.iter_mut().zip(places.get()) {
            let link = &links[*place];
            *view = planner::Link {
                free_at: link.free_at(now),
                rate: link.rate(),
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
        let Self { policy: Some(policy), assignment, .. } = self else {
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
        deadline: Instant,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<Plan, SendError> {
        let places = links.carrier_places();
        let places = places.get();
        let budgets = self.budgets(links, places, deadline.since(now), shared, now);
        let budgets = &budgets[..places.len()];
        for (budget, place) in budgets.iter().zip(places) {
            links[*place].set_reserve(ByteCount::new(budget.reserve as u64));
        }
        let target = self.price.target(shared.config.spread);
        let shares = quantile::plan(unit.len(), symbol_bytes_max, budgets, &target);
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
            let link = &mut links[*place];
            let idle = *count == 0 && now.since(link.media_at()) >= PROBE_INTERVAL;
            if idle && plan.packet_count < PACKETS_MAX && link.has_room(datagram) {
                *count = 1;
                plan.packet_count += 1;
                link.show(now);
            }
        }
        let assignment = &mut self.assignment;
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

    /// What each link budgets for a unit that is worth something for `span`.
    fn budgets(
        &self,
        links: &Links,
        places: &[usize],
        span: Duration,
        shared: &Shared,
        now: Instant,
    ) -> [LinkBudget; LinkNumber::COUNT] {
        let clock = links.clock(now);
        let interval = self.budget.unit_interval();
        let reserve = reserve(shared.config.protect.floor, span, interval);
        let mut budgets = [LinkBudget::NONE; LinkNumber::COUNT];
        for (budget, place) in budgets.iter_mut().zip(places) {
            let link = &links[*place];
            let rate = link.rate();
            let wait = link.free_at(now).since(now);
            let bytes = |time: Duration| (rate * time).get() as f64;
            let spare = span.saturating_sub(wait + interval + link.owd_out_or_guess(clock));
            let standing = link.standing(spare, &shared.config, now);
            let unreported = (link.bytes_in_flight() + link.queued()).get() as f64;
            *budget = LinkBudget {
                pace: bytes(interval),
                credit: bytes(CREDIT_TIME) - bytes(wait),
                room: link.window().map_or(f64::INFINITY, |most| most.get() as f64 - unreported),
                reserve,
                idle: wait.is_zero(),
                probability: link.on_time_probability(standing),
                loss: link.chance_loss(),
            };
        }
        budgets
    }

    /// Source bits per second that the application may send.
    pub(super) fn affordable(&self, links: &Links, shared: &Shared, now: Instant) -> Bitrate {
        let span = self.media_span;
        let configured = shared.config.datagram_bytes_max.get() as usize;
        let datagram_bytes = links.datagram_bytes_max(configured);
        if let Some(policy) = &self.policy {
            let clock = links.clock(now);
            let in_time = links.carriers().filter(|link| link.owd_out_or_guess(clock) < span);
            let mut granted: Vec<Bitrate> = in_time.map(|link| link.budget(span)).collect();
            granted.sort_unstable_by(|a, b| b.cmp(a));
            return self.budget.fixed(policy.usable(&granted), &shared.config, datagram_bytes);
        }
        let places = links.carrier_places();
        let places = places.get();
        if places.is_empty() {
            return Bitrate::ZERO;
        }
        let budgets = self.budgets(links, places, span, shared, now);
        let room = |budget: &LinkBudget| budget.room + budget.reserve;
        if !budgets[..places.len()].iter().any(|budget| room(budget) >= ROOM_LEAST) {
            // Nothing says that what is on its way arrives: no path is confirmed.
            return Bitrate::ZERO;
        }
        let target = self.price.target(shared.config.spread);
        let symbol_bytes = datagram_bytes - SYMBOL_AROUND_BYTES;
        let bytes = quantile::size(&budgets[..places.len()], &target, symbol_bytes);
        let bits = bytes * 8.0 / self.budget.unit_interval().as_secs_f64();
        Bitrate::from_bps(bits as u64).max(shared.config.protect.floor)
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
