//! Status output of a process: metrics for Prometheus, and a table for people.

use std::fmt;
use std::net::SocketAddr;

use anyhow::Context;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use axum::{Router, middleware};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::accept_limit::{self, AcceptLimit};
use crate::clock::Clock;
use crate::refused::Refused;
use crate::unavailable;

pub use prometheus_client::registry::Unit;

/// Serves [`routes`] on `address`, as soon as this machine has it, until the listener fails.
///
/// # Errors
/// One line that says why `address` cannot be used, or the failure of the listener.
pub async fn serve(address: SocketAddr, routes: Router) -> anyhow::Result<()> {
    let refused = |cause| {
        let what = format!("metrics cannot be served on {address}");
        anyhow::Error::new(Refused::new(what, cause, "choose another with --metrics"))
    };
    let listen = async || TcpListener::bind(address).await.map_err(refused);
    let listener = unavailable::opened(listen).await?;
    let door = AcceptLimit::new("the metrics", Clock::start());
    let listener = accept_limit::Listener::plain(listener, door)
        .context("the address of the metrics server is unknown")?;
    let routes = routes.layer(middleware::from_fn(accept_limit::attend));
    let service = routes.into_make_service_with_connect_info::<accept_limit::Peer>();
    axum::serve(listener, service).await.context("the metrics server failed")
}

/// Returns the routes `/metrics`, with the text of `page`, and `/status`, with the line
/// `tautline WHO`, an empty line and the text of `status`. Both texts are made at each request.
pub fn routes(
    who: &str,
    page: impl Fn() -> String + Clone + Send + Sync + 'static,
    status: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> Router {
    let who = who.to_owned();
    routes_of(move || who.clone(), page, status)
}

/// Returns routes as [`routes`] does; each `/status` calls `who`, since the name may change.
pub fn routes_of(
    who: impl Fn() -> String + Clone + Send + Sync + 'static,
    page: impl Fn() -> String + Clone + Send + Sync + 'static,
    status: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> Router {
    let metrics = move || async move { ([(CONTENT_TYPE, OPEN_METRICS)], page()) };
    let status = move || async move { format!("{STATUS_HEAD}{}\n\n{}", who(), status()) };
    Router::new().route("/metrics", get(metrics)).route("/status", get(status))
}

/// Beginning of every `/status`.
pub const STATUS_HEAD: &str = "tautline ";

/// A builder of a page of metrics, in OpenMetrics' text form.
///
/// Names are given without the page's prefix, unit and `_total`, which are added. A duplicate name
/// is skipped, as is a family without samples.
///
/// ```
/// use tautline_net::metrics::{Labels, Page, Unit};
///
/// let mut page = Page::new("tautline_vehicle");
/// page.gauge("age", Some(Unit::Seconds), "Age of the newest command", 3.5);
/// page.counters("drops", None, "Drops by name", [(Labels::of("name", "a \"b\""), 2)]);
/// let text = page.finish();
/// assert!(text.contains("tautline_vehicle_age_seconds 3.5\n"));
/// assert!(text.contains("tautline_vehicle_drops_total{name=\"a \\\"b\\\"\"} 2\n"));
/// ```
#[derive(Debug)]
pub struct Page {
    prefix: &'static str,
    families: Vec<Family>,
}

/// Labels of one sample; a value may be any text.
#[derive(Clone, Debug)]
pub struct Labels(Vec<(&'static str, String)>);

#[derive(Debug)]
struct Family {
    name: String,
    unit: Option<Unit>,
    help: String,
    samples: Samples,
}

#[derive(Debug)]
enum Samples {
    Gauges(Vec<(Labels, f64)>),
    Counters(Vec<(Labels, u64)>),
}

impl Page {
    /// Creates an empty page whose metrics all begin with `prefix`.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, families: Vec::new() }
    }

    /// Adds one value without labels that may rise and fall.
    pub fn gauge(&mut self, name: &str, unit: Option<Unit>, help: &str, value: f64) {
        self.gauges(name, unit, help, [(Labels::none(), value)]);
    }

    /// Adds one value without labels that only rises.
    pub fn counter(&mut self, name: &str, unit: Option<Unit>, help: &str, value: u64) {
        self.counters(name, unit, help, [(Labels::none(), value)]);
    }

    /// Adds labelled values that may rise and fall.
    pub fn gauges(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        self.add(name, unit, help, Samples::Gauges(samples.into_iter().collect()));
    }

    /// Adds labelled values that only rise.
    pub fn counters(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        self.add(name, unit, help, Samples::Counters(samples.into_iter().collect()));
    }

    /// Returns the page as OpenMetrics text.
    pub fn finish(self) -> String {
        let mut registry = Registry::with_prefix(self.prefix);
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a String does not fail");
        text
    }

    fn add(&mut self, name: &str, unit: Option<Unit>, help: &str, samples: Samples) {
        let is_empty = match &samples {
            Samples::Gauges(samples) => samples.is_empty(),
            Samples::Counters(samples) => samples.is_empty(),
        };
        let is_there = |family: &Family| {
            family.name == name && written(family.unit.as_ref()) == written(unit.as_ref())
        };
        if !is_empty && !self.families.iter().any(is_there) {
            let (name, help) = (name.to_owned(), help.to_owned());
            self.families.push(Family { name, unit, help, samples });
        }
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, unit, help, samples } in &self.families {
            let kind = match samples {
                Samples::Gauges(_) => MetricType::Gauge,
                Samples::Counters(_) => MetricType::Counter,
            };
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            match samples {
                Samples::Gauges(samples) => {
                    for (labels, value) in samples {
                        labels.encode(&mut family, |sample| sample.encode_gauge(value))?;
                    }
                }
                Samples::Counters(samples) => {
                    for (labels, value) in samples {
                        labels.encode(&mut family, |sample| {
                            sample.encode_counter::<NoLabelSet, _, u64>(value, None)
                        })?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Labels {
    /// Returns an empty set of labels.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Returns a set of one label.
    pub fn of(name: &'static str, value: &str) -> Self {
        Self::none().and(name, value)
    }

    /// Returns these labels and one more.
    pub fn and(mut self, name: &'static str, value: &str) -> Self {
        self.0.push((name, value.to_owned()));
        self
    }

    /// Encodes a sample of `family` with these labels, by `write`.
    fn encode(
        &self,
        family: &mut MetricEncoder<'_>,
        write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        // An empty set would be written as an empty pair of braces.
        if self.0.is_empty() { write(family) } else { write(&mut family.encode_family(&self.0)?) }
    }
}

fn written(unit: Option<&Unit>) -> &str {
    unit.map_or("", Unit::as_str)
}

/// Content type of the page.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
