//! Check of orders: a vehicle obeys those of its own supervisors, each once.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use tautline_transport::crypto::PublicKey;
use tautline_transport::order::answer::Outcome;
use tautline_transport::order::{Order, OrderError, SignedOrder};
use tautline_units::Duration;

/// Supervisors of a vehicle, and the newest obeyed order of each; kept across restarts of the
/// process.
///
/// The file has a line per supervisor, `order 1800000000123, supervisor 1398f6..`, and then all
/// lines once more. It is replaced atomically.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    vehicle: PublicKey,
    supervisors: BTreeMap<PublicKey, String>,
    file: Option<PathBuf>,
    obeyed: Numbers,
}

/// Number of the newest obeyed order, by supervisor.
type Numbers = BTreeMap<PublicKey, u64>;

/// Reason why a vehicle does not obey.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// Malformed, forged, for another vehicle, not yet in force or expired.
    Order(OrderError),
    /// Signed by a key that is no supervisor of this vehicle.
    Stranger,
    /// This order or a later one was obeyed before.
    Repeated,
}

/// Counters of received orders.
#[derive(Debug, Default)]
pub struct Counters {
    obeyed: AtomicU64,
    refused: [AtomicU64; Refused::NAMES.len()],
}

impl Orders {
    /// Reads the state that an earlier run stored in `file`; the vehicle has the key `vehicle`.
    ///
    /// # Errors
    /// Fails if the file exists and cannot be read or is invalid: an order is never obeyed twice.
    pub(crate) fn open(
        vehicle: PublicKey,
        supervisors: BTreeMap<PublicKey, String>,
        file: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let obeyed = match &file {
            None => Numbers::new(),
            Some(file) => read(file)?,
        };
        Ok(Self { vehicle, supervisors, file, obeyed })
    }

    /// Checks the signed bytes of an order received at `now`, the time since the Unix epoch.
    /// Returns a valid order with its supervisor's name; it counts as obeyed from here on.
    ///
    /// # Errors
    /// Returns why the order is refused.
    pub(crate) fn take(
        &mut self,
        signed: &[u8],
        now: Duration,
    ) -> Result<(String, Order), Refused> {
        let order = SignedOrder::read(signed).map_err(Refused::Order)?;
        let name = self.supervisors.get(&order.supervisor).ok_or(Refused::Stranger)?;
        order.judge(&self.vehicle, now).map_err(Refused::Order)?;
        let last = self.obeyed.entry(order.supervisor).or_default();
        if order.number() <= *last {
            return Err(Refused::Repeated);
        }
        *last = order.number();
        Ok((name.clone(), order))
    }

    /// Stores the obeyed orders on disk, if there is a file. This happens after obeying, since a
    /// disk may be slow.
    ///
    /// # Errors
    /// Fails if the file cannot be written: then a restart forgets the order, and it may be obeyed
    /// again while it is valid.
    pub(crate) async fn keep(&self) -> anyhow::Result<()> {
        let (Some(file), obeyed) = (self.file.clone(), self.obeyed.clone()) else { return Ok(()) };
        tokio::task::spawn_blocking(move || write(&file, &obeyed)).await?
    }
}

impl Refused {
    const NAMES: [&'static str; 7] = [
        "order: malformed",
        "order: forged",
        "order: for another vehicle",
        "order: not yet in force",
        "order: expired",
        "order: of no supervisor",
        "order: repeated",
    ];

    /// Returns the outcome to answer with; `None` if the order is malformed, forged or for another
    /// vehicle, so that nobody is answered.
    pub(crate) fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Order(OrderError::Early) => Some(Outcome::Early),
            Self::Order(OrderError::Expired) => Some(Outcome::Expired),
            Self::Order(_) => None,
            Self::Stranger => Some(Outcome::Stranger),
            Self::Repeated => Some(Outcome::Repeated),
        }
    }

    fn number(self) -> usize {
        match self {
            Self::Order(OrderError::Forged) => 1,
            Self::Order(OrderError::Foreign) => 2,
            Self::Order(OrderError::Early) => 3,
            Self::Order(OrderError::Expired) => 4,
            Self::Order(_) => 0,
            Self::Stranger => 5,
            Self::Repeated => 6,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order(error) => error.fmt(f),
            Self::Stranger => f.write_str("the signer of the order is not a supervisor here"),
            Self::Repeated => f.write_str("the order was repeated"),
        }
    }
}

impl Counters {
    /// Counts an obeyed order.
    pub(crate) fn obey(&self) {
        self.obeyed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refused order.
    pub(crate) fn refuse(&self, refused: Refused) {
        self.refused[refused.number()].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of obeyed orders.
    pub(crate) fn obeyed(&self) -> u64 {
        self.obeyed.load(Ordering::Relaxed)
    }

    /// Returns how many orders were refused, by the name of each reason.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Refused::NAMES.into_iter().zip(self.refused.iter().map(|it| it.load(Ordering::Relaxed)))
    }
}

fn read(file: &Path) -> anyhow::Result<Numbers> {
    let shown = file.display();
    let text = match tautline_net::file::read(file, tautline_net::file::TEXT_BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Numbers::new()),
        read => read.with_context(|| format!("orders: cannot read {shown}"))?,
    };
    parse(&text).with_context(|| {
        format!(
            "orders: {shown} is damaged: remove it once all earlier orders have expired, in ten \
             minutes at the latest"
        )
    })
}

fn parse(text: &[u8]) -> Option<Numbers> {
    let text = std::str::from_utf8(text).ok()?;
    let (once, again) = text.split_at_checked(text.len() / 2)?;
    let number = |line: &str| {
        let (number, supervisor) = line.strip_prefix("order ")?.split_once(", supervisor ")?;
        Some((supervisor.parse().ok()?, number.parse().ok()?))
    };
    let numbers: Numbers = once.lines().map(number).collect::<Option<_>>()?;
    let is_whole = !numbers.is_empty() && once == again && lines(&numbers) == once;
    is_whole.then_some(numbers)
}

fn lines(numbers: &Numbers) -> String {
    let line = |(key, number): (&PublicKey, &u64)| format!("order {number}, supervisor {key}\n");
    numbers.iter().map(line).collect()
}

fn write(file: &Path, numbers: &Numbers) -> anyhow::Result<()> {
    tautline_net::file::replace(file, lines(numbers).repeat(2).as_bytes())
        .with_context(|| format!("orders: cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tautline_transport::crypto::Identity;

    use super::*;

    fn identity(seed: u8) -> Identity {
        Identity::from_seed(&[seed; 32])
    }

    fn orders(file: Option<PathBuf>) -> Orders {
        let supervisors = [8, 9].map(|seed| (identity(seed).public(), format!("eva-{seed}")));
        Orders::open(identity(1).public(), supervisors.into(), file).unwrap()
    }

    fn signed(supervisor: u8, vehicle: u8, made_at: u64) -> Vec<u8> {
        let (own, made_at) = (identity(supervisor), Duration::from_millis(made_at));
        let (supervisor, vehicle) = (own.public(), identity(vehicle).public());
        let order = Order { supervisor, vehicle, made_at, until: made_at + LIFE };
        order.sign(&own).as_bytes().to_vec()
    }

    const LIFE: Duration = Duration::from_secs(60);
    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn keep(orders: &Orders) -> anyhow::Result<()> {
        tokio::runtime::Builder::new_current_thread().build()?.block_on(orders.keep())
    }

    #[test]
    fn an_order_of_a_supervisor_is_obeyed_once_over_restarts_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("orders");
        let mut before = orders(Some(file.clone()));
        let made_at = NOW.as_millis() as u64;
        let (name, order) = before.take(&signed(9, 1, made_at), NOW).unwrap();
        assert_eq!((name.as_str(), order.number()), ("eva-9", made_at));
        keep(&before).unwrap();
        for mut orders in [before, orders(Some(file.clone()))] {
            let mut take = |signed: Vec<u8>| orders.take(&signed, NOW).map(|(name, _)| name);
            assert_eq!(take(signed(9, 1, made_at)), Err(Refused::Repeated));
            assert_eq!(take(signed(9, 1, made_at - 1)), Err(Refused::Repeated), "an earlier one");
            assert_eq!(take(signed(8, 1, made_at)), Ok("eva-8".to_owned()), "each has its own");
            assert_eq!(take(signed(9, 1, made_at + 1)), Ok("eva-9".to_owned()));
        }
        // Orders that were not stored are forgotten.
        assert!(orders(Some(file)).take(&signed(9, 1, made_at + 1), NOW).is_ok());
    }

    #[test]
    fn invalid_orders_are_refused_and_counted() {
        let counters = Counters::default();
        let mut orders = orders(None);
        let made_at = NOW.as_millis() as u64;
        let mut forged = signed(9, 1, made_at);
        *forged.last_mut().unwrap() ^= 1;
        for (signed, refused) in [
            (vec![7; 146], Refused::Order(OrderError::Malformed)),
            (forged, Refused::Order(OrderError::Forged)),
            (signed(9, 2, made_at), Refused::Order(OrderError::Foreign)),
            (signed(9, 1, made_at + 60_000), Refused::Order(OrderError::Early)),
            (signed(9, 1, made_at - 60_000), Refused::Order(OrderError::Expired)),
            (signed(7, 1, made_at), Refused::Stranger),
        ] {
            let error = orders.take(&signed, NOW).unwrap_err();
            assert_eq!(error, refused);
            counters.refuse(error);
        }
        assert!(orders.take(&signed(9, 1, made_at), NOW).is_ok(), "none of them took its number");
        counters.refuse(orders.take(&signed(9, 1, made_at), NOW).unwrap_err());
        assert_eq!(counters.refused().map(|(_, count)| count).collect::<Vec<_>>(), [1; 7]);
        let names: std::collections::BTreeSet<_> = counters.refused().map(|it| it.0).collect();
        assert_eq!((names.len(), counters.obeyed()), (7, 0));
    }

    #[test]
    fn a_damaged_file_is_reported_and_never_guessed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("orders");
        let mut before = orders(Some(file.clone()));
        before.take(&signed(9, 1, NOW.as_millis() as u64), NOW).unwrap();
        before.take(&signed(8, 1, NOW.as_millis() as u64), NOW).unwrap();
        keep(&before).unwrap();
        let good = std::fs::read(&file).unwrap();
        for place in 0..good.len() {
            for flip in [1, 2, 4, 8, 16, 32, 64, 128] {
                let mut bytes = good.clone();
                bytes[place] ^= flip;
                assert_eq!(parse(&bytes), None, "byte {place} by {flip}");
            }
            assert_eq!(parse(&good[..place]), None, "{place} bytes");
        }
        std::fs::write(&file, "order 3").unwrap();
        let error = read(&file).unwrap_err().to_string();
        assert!(error.starts_with("orders: ") && error.contains("is damaged"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_as_they_were_written_or_not_at_all(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Some(numbers) = parse(&bytes) {
                prop_assert_eq!(lines(&numbers).repeat(2).into_bytes(), bytes);
            }
        }
    }
}
