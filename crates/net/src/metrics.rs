//! What a process tells on request: counters and gauges in Prometheus' text form, and the table
//! of its session for people.

use std::fmt::Write;
use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;

/// Serves [`routes`] on `address` until the listener fails.
///
/// # Errors
/// One line that says that the address is taken, or that the listener failed.
pub async fn serve(address: SocketAddr, routes: Router) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("metrics cannot be served on {address}: choose another with --metrics")
    })?;
    axum::serve(listener, routes).await.context("the listener for metrics failed")
}

/// `/metrics` with the text of `page`, and `/status` with the text of `status` after a line that
/// names the process: `tautline WHO`.
pub fn routes(
    who: &str,
    page: impl Fn() -> String + Clone + Send + Sync + 'static,
    status: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> Router {
    let head = format!("{STATUS_HEAD}{who}\n\n");
    let metrics = move || async move { ([(CONTENT_TYPE, "text/plain; version=0.0.4")], page()) };
    let status = move || async move { head + &status() };
    Router::new().route("/metrics", get(metrics)).route("/status", get(status))
}

/// What every `/status` begins with.
pub const STATUS_HEAD: &str = "tautline ";

/// A page of metrics in the making.
///
/// ```
/// use tautline_net::metrics::Page;
///
/// let mut page = Page::new("tautline_vehicle");
/// page.gauge("speed_metres_per_second", "Speed over ground", 3.5);
/// page.counters("drops_total", "Drops by name", "name", [("late", 2)]);
/// assert!(page.finish().contains("tautline_vehicle_drops_total{name=\"late\"} 2\n"));
/// ```
#[derive(Debug)]
pub struct Page {
    prefix: &'static str,
    text: String,
}

impl Page {
    /// An empty page whose metrics all begin with `prefix`.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, text: String::new() }
    }

    /// Adds a value that may rise and fall.
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.line(name, "", value);
    }

    /// Adds a value that only rises.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.line(name, "", value);
    }

    /// Adds one counter for each value of `label`.
    pub fn counters<L: std::fmt::Display>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) {
        self.head(name, help, "counter");
        for (of, value) in values {
            self.line(name, &format!("{{{label}=\"{of}\"}}"), value);
        }
    }

    /// Adds one gauge for each value of `label`.
    pub fn gauges<L: std::fmt::Display>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) {
        self.head(name, help, "gauge");
        for (of, value) in values {
            self.line(name, &format!("{{{label}=\"{of}\"}}"), value);
        }
    }

    /// Adds one counter for each set of labels, written as Prometheus has them: `a="1",b="2"`.
    pub fn labelled_counters(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (String, u64)>,
    ) {
        self.head(name, help, "counter");
        for (labels, value) in values {
            self.line(name, &format!("{{{labels}}}"), value);
        }
    }

    /// Adds one gauge for each set of labels, written as Prometheus has them: `a="1",b="2"`.
    pub fn labelled_gauges(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (String, f64)>,
    ) {
        self.head(name, help, "gauge");
        for (labels, value) in values {
            self.line(name, &format!("{{{labels}}}"), value);
        }
    }

    /// The page's text.
    pub fn finish(self) -> String {
        self.text
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let prefix = self.prefix;
        writeln!(self.text, "# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}")
            .expect("writing to a String does not fail");
    }

    fn line(&mut self, name: &str, label: &str, value: impl std::fmt::Display) {
        writeln!(self.text, "{}_{name}{label} {value}", self.prefix)
            .expect("writing to a String does not fail");
    }
}
