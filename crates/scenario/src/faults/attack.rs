use std::collections::VecDeque;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_transport::Route;

use super::nobody;

/// An on-path attacker that reads and injects datagrams but cannot break the cipher.
#[derive(Debug, Clone, Default)]
pub struct Attack {
    kept: VecDeque<Vec<u8>>,
}

impl Attack {
    pub(super) fn befall(
        &mut self,
        route: Route,
        datagram: &[u8],
        rng: &mut ChaCha20Rng,
    ) -> Vec<(Route, Vec<u8>)> {
        let mut come: Vec<_> = forged(route, datagram, rng).into_iter().collect();
        come.push((route, datagram.to_vec()));
        self.kept.push_back(datagram.to_vec());
        if rng.next_u32().is_multiple_of(3) {
            come.push((route, datagram.to_vec()));
        }
        if self.kept.len() > KEPT_MAX {
            come.extend(self.kept.pop_front().map(|old| (route, old)));
        }
        come
    }
}

/// Returns a damaged, truncated or forged datagram that arrives before the genuine one; `None` in
/// one of four cases, at random.
fn forged(route: Route, datagram: &[u8], rng: &mut ChaCha20Rng) -> Option<(Route, Vec<u8>)> {
    let mut below = |end: usize| rng.next_u32() as usize % end;
    let from = if below(2) == 0 { route } else { nobody::route(route) };
    let bytes = match below(4) {
        0 => {
            let mut flipped = datagram.to_vec();
            flipped[below(datagram.len())] ^= 1 << below(8);
            flipped
        }
        1 => datagram[..below(datagram.len())].to_vec(),
        2 => {
            let mut invented: Vec<u8> =
                (0..below(INVENTED_MAX)).map(|_| below(256) as u8).collect();
            // The header of a datagram of this session.
            if let (Some(head), Some(first)) = (invented.get_mut(..3), datagram.get(..3)) {
                head.copy_from_slice(first);
            }
            invented
        }
        _ => return None,
    };
    Some((from, bytes))
}

const INVENTED_MAX: usize = 200;
/// Number of later genuine datagrams after which a recorded one is replayed.
const KEPT_MAX: usize = 200;
