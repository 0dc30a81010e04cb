//! The driving console: one at a time, replaced by consent or at standstill.

use super::named::named;
use std::num::NonZeroU64;

/// Random number, not 0, of a loaded page, kept when the page reconnects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ConsoleId(pub(crate) NonZeroU64);

/// State of which console drives and which asks to.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    holding: Option<ConsoleId>,
    request: Option<Request>,
    /// Request that the driving console has granted, until the vehicle's guard hands over; `None`
    /// if there is none.
    agreed: Option<Request>,
    /// Console that was refused last, until a new request of it is pending, it leaves, or the
    /// driving console changes; `None` if there is none.
    refused: Option<ConsoleId>,
    request_count: u32,
}

/// Request of a console to drive in place of the driving one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// Increasing number that ties an answer to this request.
    pub(crate) number: u32,
    pub(crate) from: ConsoleId,
}

/// Change of the driving console: from which, to which, and why; `None` for no console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) from: Option<ConsoleId>,
    pub(crate) to: Option<ConsoleId>,
    pub(crate) reason: Reason,
}

named! {
    /// Reason for a change of the driving console.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Reason {
        /// No other console drove.
        Vacant: "vacant",
        /// The former driving console agreed.
        Consent: "consent",
        /// The vehicle stood still, and another console had asked to drive.
        Standstill: "standstill",
        /// The former driving console is gone.
        Gone: "gone",
    }
}

named! {
    /// Role of a console towards the vehicle and the driving console.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Role {
        /// Drives the vehicle.
        Drives: "drives",
        /// Does not drive and has not asked to.
        Waits: "waits",
        /// Has asked to drive and has no answer yet.
        Asks: "asks",
        /// Has asked to drive and was refused by the driving console.
        Refused: "refused",
        /// Has asked to drive and was accepted; takes over once its person does so at the guard.
        Succeeds: "succeeds",
        /// May only watch, not drive or ask.
        Watches: "watches",
    }
}

impl Holder {
    /// Returns the console that drives; `None` if none does.
    pub(crate) fn holding(&self) -> Option<ConsoleId> {
        self.holding
    }

    /// Returns the request that the driving console has not answered yet, if any.
    pub(crate) fn request(&self) -> Option<Request> {
        self.request
    }

    /// Returns the request that the driving console has granted, if any, until the guard hands
    /// over.
    pub(crate) fn agreed(&self) -> Option<Request> {
        self.agreed
    }

    /// Returns the console that may take over at any moment, because the driving one has agreed;
    /// `None` if there is none.
    pub(crate) fn successor(&self) -> Option<ConsoleId> {
        self.agreed.map(|request| request.from)
    }

    /// Returns the role of `console`.
    pub(crate) fn role(&self, console: ConsoleId) -> Role {
        if self.holding == Some(console) {
            Role::Drives
        } else if self.successor() == Some(console) {
            Role::Succeeds
        } else if self.request.is_some_and(|request| request.from == console) {
            Role::Asks
        } else if self.refused == Some(console) {
            Role::Refused
        } else {
            Role::Waits
        }
    }

    /// Handles a new console: if none drives, it does, and the change is returned; otherwise
    /// `None`.
    pub(crate) fn join(&mut self, console: ConsoleId) -> Option<Change> {
        if self.holding.is_some() {
            return None;
        }
        Some(self.hand_over(Some(console), Reason::Vacant))
    }

    /// Removes a console with its request, granted or not, and its refusal. If it drove, a
    /// successor or the console that asks takes over, or none drives, and the change is returned;
    /// `None` if it did not drive.
    pub(crate) fn leave(&mut self, console: ConsoleId) -> Option<Change> {
        self.refused.take_if(|refused| *refused == console);
        self.withdraw(console);
        if self.holding != Some(console) {
            return None;
        }
        let next = self.agreed.or(self.request).map(|request| request.from);
        Some(self.hand_over(next, Reason::Gone))
    }

    /// Handles a console's request to drive. It is granted, and the change returned, if no console
    /// drives or the vehicle stands still. Otherwise the driving console is asked, unless it was
    /// already asked or has agreed with another. `None` without a change, as for the driving
    /// console itself.
    pub(crate) fn ask(&mut self, console: ConsoleId, stands_still: bool) -> Option<Change> {
        match self.holding {
            Some(holding) if holding == console => None,
            None => Some(self.hand_over(Some(console), Reason::Vacant)),
            Some(_) if stands_still => Some(self.hand_over(Some(console), Reason::Standstill)),
            Some(_) => {
                if self.request.is_none() && self.agreed.is_none() {
                    self.refused.take_if(|refused| *refused == console);
                    self.request_count = self.request_count.wrapping_add(1);
                    self.request = Some(Request { number: self.request_count, from: console });
                }
                None
            }
        }
    }

    /// Withdraws a console's request to drive, also one that was granted; does nothing without one.
    pub(crate) fn withdraw(&mut self, console: ConsoleId) {
        self.request.take_if(|request| request.from == console);
        self.agreed.take_if(|request| request.from == console);
    }

    /// Handles an answer. Only the driving console answers, and only to the current request or to
    /// the one it has granted. If it agrees while the guard lets it drive, it continues to drive
    /// until the guard has handed over; if the guard does not let it drive, the asking console
    /// drives at once. A refusal ends the request, and its console counts as refused. Returns the
    /// change of the driving console, if the answer causes one at once.
    pub(crate) fn answer(
        &mut self,
        console: ConsoleId,
        number: u32,
        agrees: bool,
        is_driving: bool,
    ) -> Option<Change> {
        let standing = self.request.or(self.agreed);
        let request = standing.filter(|request| request.number == number)?;
        if self.holding != Some(console) {
            return None;
        }
        if agrees && !is_driving {
            return Some(self.hand_over(Some(request.from), Reason::Consent));
        }
        (self.request, self.agreed) = (None, agrees.then_some(request));
        if !agrees {
            self.refused = Some(request.from);
        }
        None
    }

    /// Handles the guard's report that it lets `holder` drive. If that is the agreed successor, it
    /// has taken over, and the change is returned; otherwise `None`.
    pub(crate) fn handle_guard(&mut self, holder: ConsoleId) -> Option<Change> {
        let agreed = self.successor().filter(|successor| *successor == holder)?;
        Some(self.hand_over(Some(agreed), Reason::Consent))
    }

    /// Revokes a granted request, because the successor did not take over in time.
    pub(crate) fn handle_timeout(&mut self) {
        self.agreed = None;
    }

    /// Handles a standstill of the vehicle: a granted or pending request hands over, and the change
    /// is returned; `None` without a request.
    pub(crate) fn handle_standstill(&mut self) -> Option<Change> {
        let request = self.agreed.or(self.request)?;
        Some(self.hand_over(Some(request.from), Reason::Standstill))
    }

    fn hand_over(&mut self, to: Option<ConsoleId>, reason: Reason) -> Change {
        let from = std::mem::replace(&mut self.holding, to);
        // Requests to the former driving console do not pass to the next.
        (self.request, self.agreed, self.refused) = (None, None, None);
        Change { from, to, reason }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [ConsoleId; 3] = [id(1), id(2), id(3)];

    const fn id(number: u64) -> ConsoleId {
        match NonZeroU64::new(number) {
            Some(number) => ConsoleId(number),
            None => panic!("0 is no console"),
        }
    }

    fn joined_by_all() -> Holder {
        let mut holder = Holder::default();
        for console in NAMES {
            holder.join(console);
        }
        holder
    }

    #[test]
    fn the_first_console_drives_and_the_second_one_waits() {
        let [first, second, _] = NAMES;
        let mut holder = Holder::default();
        let change = holder.join(first).unwrap();
        assert_eq!((change.from, change.to, change.reason), (None, Some(first), Reason::Vacant));
        assert_eq!(holder.join(second), None);
        assert_eq!((holder.role(first), holder.role(second)), (Role::Drives, Role::Waits));
    }

    #[test]
    fn a_moving_vehicle_is_handed_over_by_consent_alone() {
        let [first, second, third] = NAMES;
        let mut holder = joined_by_all();
        assert_eq!(holder.ask(second, false), None);
        let asked = holder.request().unwrap();
        assert_eq!((asked.from, holder.role(second)), (second, Role::Asks));
        assert_eq!(holder.answer(second, asked.number, true, false), None, "it is not its to give");
        assert_eq!(holder.answer(third, asked.number, true, false), None);
        assert_eq!(holder.answer(first, asked.number, false, false), None);
        assert_eq!((holder.role(second), holder.holding()), (Role::Refused, Some(first)));
        holder.ask(second, false);
        assert_eq!(
            holder.answer(first, asked.number, true, false),
            None,
            "that was the former request"
        );
        let change = holder.answer(first, holder.request().unwrap().number, true, false).unwrap();
        assert_eq!((change.from, change.to), (Some(first), Some(second)));
        assert_eq!((change.reason, holder.role(first)), (Reason::Consent, Role::Waits));
    }

    #[test]
    fn a_consenting_driver_keeps_driving_until_the_guard_hands_over() {
        let [first, second, third] = NAMES;
        let agree = |holder: &mut Holder| {
            holder.ask(second, false);
            let number = holder.request().unwrap().number;
            assert_eq!(holder.answer(first, number, true, true), None);
            assert_eq!((holder.role(first), holder.role(second)), (Role::Drives, Role::Succeeds));
            number
        };
        let mut holder = joined_by_all();
        agree(&mut holder);
        assert_eq!(holder.ask(third, false), None);
        assert_eq!(holder.request(), None, "one console at a time");
        assert_eq!(holder.handle_guard(third), None);
        assert_eq!(holder.handle_guard(first), None);
        let change = holder.handle_guard(second).unwrap();
        assert_eq!(
            (change.from, change.to, change.reason),
            (Some(first), Some(second), Reason::Consent)
        );
        // It can be revoked, expires, and ends at a standstill.
        let mut holder = joined_by_all();
        let number = agree(&mut holder);
        assert_eq!(holder.answer(first, number, false, true), None);
        assert_eq!((holder.role(second), holder.handle_guard(second)), (Role::Refused, None));
        agree(&mut holder);
        holder.handle_timeout();
        assert_eq!((holder.role(second), holder.handle_guard(second)), (Role::Waits, None));
        agree(&mut holder);
        assert_eq!(holder.handle_standstill().unwrap().to, Some(second));
        let mut holder = joined_by_all();
        agree(&mut holder);
        assert_eq!(holder.leave(first).unwrap().to, Some(second));
    }

    #[test]
    fn at_standstill_new_and_pending_requests_are_granted() {
        let [first, second, third] = NAMES;
        let mut holder = joined_by_all();
        let change = holder.ask(second, true).unwrap();
        assert_eq!((change.from, change.reason), (Some(first), Reason::Standstill));
        holder.ask(third, false);
        assert_eq!(holder.handle_standstill().unwrap().to, Some(third));
        assert_eq!(holder.handle_standstill(), None);
    }

    #[test]
    fn after_the_driver_leaves_only_a_requesting_console_drives() {
        let [first, second, third] = NAMES;
        let mut holder = joined_by_all();
        holder.ask(third, false);
        let change = holder.leave(first).unwrap();
        assert_eq!((change.to, change.reason), (Some(third), Reason::Gone));
        assert_eq!(holder.leave(third).unwrap().to, None);
        assert_eq!(holder.role(second), Role::Waits, "it did not ask");
        assert_eq!(holder.ask(second, false).unwrap().reason, Reason::Vacant);
    }

    proptest! {
        /// For any requests and answers while the vehicle moves: as long as the first console
        /// stays, it drives until it agrees.
        #[test]
        fn nobody_takes_over_from_one_that_stays_and_does_not_agree(
            acts in prop::collection::vec((0..4_u8, 1..3_usize, any::<u8>()), 0..64)
        ) {
            let mut holder = Holder::default();
            holder.join(NAMES[0]);
            for (act, of, number) in acts {
                let console = NAMES[of];
                let change = match act {
                    0 => holder.ask(console, false),
                    1 => holder.answer(console, number.into(), true, false),
                    2 => holder.leave(console),
                    _ => holder.join(console),
                };
                prop_assert_eq!(change, None);
                let answered = holder.answer(NAMES[0], number.into(), false, false);
                prop_assert_eq!(answered, None);
            }
            prop_assert_eq!(holder.holding(), Some(NAMES[0]));
        }
    }
}
