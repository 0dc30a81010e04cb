use std::net::IpAddr;

/// Local ends of the relay, indexed by their number in a route.
///
/// A wildcard socket has one end for each local address at which it received datagrams. A peer has
/// proven its address towards that local address, so it receives datagrams from no other.
#[derive(Debug)]
pub(crate) struct Ends(Vec<End>);

/// A socket, with one of its local addresses if it is bound to all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    /// Index of the socket.
    pub(crate) socket: usize,
    /// Source address of the datagrams sent from this end; `None` leaves the choice to the kernel.
    pub(crate) local: Option<IpAddr>,
}

impl Ends {
    /// Creates one end per socket, numbered as the socket.
    pub(crate) fn new(sockets: usize) -> Self {
        Self((0..sockets).map(|socket| End { socket, local: None }).collect())
    }

    /// Returns the end with this number; `None` if the number is not assigned.
    pub(crate) fn get(&self, number: u8) -> Option<End> {
        self.0.get(usize::from(number)).copied()
    }

    /// Returns the number of an end, and assigns one if necessary. Numbers that are no longer
    /// `is_used` are reassigned.
    ///
    /// If all numbers are in use, it is the socket's own number: then the kernel selects the
    /// address.
    pub(crate) fn number(&mut self, end: End, is_used: impl Fn(u8) -> bool) -> u8 {
        let known = self.0.iter().position(|known| *known == end);
        let number = known.or_else(|| {
            if self.0.len() < ENDS_MAX {
                self.0.push(end);
                return Some(self.0.len() - 1);
            }
            let is_free =
                |number: &usize| self.0[*number].local.is_some() && !is_used(*number as u8);
            let free = (0..ENDS_MAX).find(is_free)?;
            self.0[free] = end;
            Some(free)
        });
        number.unwrap_or(end.socket) as u8
    }
}

/// Maximum number of ends: routes use numbers from 128 on for streams.
const ENDS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn end(last: u8) -> End {
        End { socket: 1, local: Some([127, 0, 0, last].into()) }
    }

    #[test]
    fn each_local_address_is_an_end_and_numbers_are_reused() {
        let mut ends = Ends::new(2);
        assert_eq!(ends.number(End { socket: 1, local: None }, |_| true), 1);
        let first = ends.number(end(1), |_| true);
        assert_eq!((first, ends.get(first)), (2, Some(end(1))));
        assert_eq!((ends.number(end(2), |_| true), ends.number(end(1), |_| true)), (3, 2));
        let last = (3..=126).map(|last| ends.number(end(last), |_| true)).last();
        assert_eq!(last, Some(127));
        assert_eq!(ends.number(end(200), |_| true), 1, "the kernel chooses");
        assert_eq!(ends.number(end(200), |number| number != 9), 9);
        assert_eq!(ends.number(end(200), |_| true), 9);
        assert_eq!(ends.get(128), None);
    }
}
