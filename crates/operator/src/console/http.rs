//! Responses at the console's address: the page, or the admission page.

use std::num::NonZeroU64;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, RawQuery, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rust_embed::RustEmbed;
use tautline_net::accept_limit::{self, Listener, Peer};

use super::access::Access;
use super::bridge::{Hub, Visitor};
use super::holder::ConsoleId;
use super::socket;

/// State that the routes of the console's address share.
#[derive(Clone)]
struct Console {
    hub: Arc<Hub>,
    access: Arc<Access>,
}

/// Serves the page, its WebSocket and the routes of `beside` until the listener fails.
///
/// # Errors
/// Fails if the listener fails.
pub(crate) async fn serve(
    listener: Listener,
    access: Arc<Access>,
    hub: Arc<Hub>,
    beside: Router,
) -> anyhow::Result<()> {
    let router = Router::new()
        .route("/", get(page))
        .route("/index.html", get(page))
        .route("/enter", post(enter))
        .route("/session", get(session))
        .route("/ws", get(upgrade))
        .route("/{*path}", get(|Path(path): Path<String>| async move { asset(&path) }))
        .with_state(Console { hub, access: access.clone() })
        .merge(beside)
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .layer(middleware::from_fn_with_state(access, check))
        .layer(middleware::from_fn(accept_limit::attend));
    let service = router.into_make_service_with_connect_info::<Peer>();
    axum::serve(listener, service).await.context("the console's server failed")
}

/// Rejects a request whose `Host` is not a name of this console, and adds [`HEADERS`] to every
/// response.
async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let mut response = if access.names().is_own_host(request.headers()) {
        next.run(request).await
    } else {
        (StatusCode::MISDIRECTED_REQUEST, WRONG_NAME).into_response()
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Responds with the console's page to an admitted browser, and with the page that takes a token to
/// any other.
async fn page(State(console): State<Console>, headers: HeaderMap) -> Response {
    if console.access.admitted(&headers).is_some() {
        return asset("index.html");
    }
    (StatusCode::UNAUTHORIZED, asset("enter.html")).into_response()
}

/// Exchanges the token in the body for a cookie; refuses it if it was used, is unknown, or comes
/// from another site's page.
async fn enter(State(console): State<Console>, headers: HeaderMap, token: Bytes) -> Response {
    if !console.access.names().is_own_page(&headers) {
        return (StatusCode::FORBIDDEN, WRONG_PAGE).into_response();
    }
    match console.access.exchange(&token) {
        Some(cookie) => (StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response(),
        None => (StatusCode::FORBIDDEN, TOKEN_USED).into_response(),
    }
}

/// Responds to a page that lost its connection: 204 if the browser is admitted, 401 if not.
async fn session(State(console): State<Console>, headers: HeaderMap) -> StatusCode {
    match console.access.admitted(&headers) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::UNAUTHORIZED,
    }
}

async fn upgrade(
    State(console): State<Console>,
    ConnectInfo(Peer { address: peer, caller }): ConnectInfo<Peer>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if !console.access.names().is_own_page(&headers) {
        return (StatusCode::FORBIDDEN, WRONG_PAGE).into_response();
    }
    let Some((browser, right)) = console.access.admitted(&headers) else {
        return (StatusCode::UNAUTHORIZED, NOT_ADMITTED).into_response();
    };
    // The connection of a drive must not be displaced by new ones.
    if !caller.hold(browser.0) {
        return (StatusCode::SERVICE_UNAVAILABLE, MANY_CONSOLES).into_response();
    }
    let Some(id) = query.as_deref().and_then(console_id) else {
        return (StatusCode::BAD_REQUEST, "a console must give its number: /ws?console=HEX\n")
            .into_response();
    };
    let address = console.access.names().visitor(peer.ip(), &headers);
    let visitor = Visitor { browser, right, address };
    upgrade
        .max_message_size(REQUEST_BYTES_MAX)
        .max_frame_size(REQUEST_BYTES_MAX)
        .on_upgrade(move |socket| socket::converse(socket, id, visitor, console.hub))
}

/// Parses `console=` and up to 16 hexadecimal digits; `None` if they are invalid or all 0.
fn console_id(query: &str) -> Option<ConsoleId> {
    let digits = query.strip_prefix("console=")?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    NonZeroU64::new(u64::from_str_radix(digits, 16).ok()?).map(ConsoleId)
}

fn asset(path: &str) -> Response {
    match Page::get(path) {
        Some(file) => {
            let kind = file.metadata.mimetype().to_owned();
            ([(CONTENT_TYPE, kind)], Bytes::from(file.data.into_owned())).into_response()
        }
        None => (StatusCode::NOT_FOUND, "no such file in the console\n").into_response(),
    }
}

#[derive(RustEmbed)]
#[folder = "../../console/dist"]
struct Page;

/// Headers of every response: scripts, styles and connections from this address only, no framing,
/// no caching.
const HEADERS: [(HeaderName, &str); 8] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; \
         img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
    (X_FRAME_OPTIONS, "DENY"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
    // The response to `/` depends on the cookie.
    (CACHE_CONTROL, "no-store"),
];
const REQUEST_BYTES_MAX: usize = 4096;
const WRONG_NAME: &str = "this console does not have this name: open it at its own address, or \
                          start the operator with this name as --console-name\n";
const MANY_CONSOLES: &str = "this browser has too many consoles open: close one\n";
const WRONG_PAGE: &str = "open the console at its own address\n";
const NOT_ADMITTED: &str = "open the address that `tautline operator` or `tautline demo` printed\n";
const TOKEN_USED: &str = "This address was used before, or is from an earlier run. Open the latest \
                          address that `tautline demo` or `tautline operator` printed: each one \
                          works once.";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_console_number_is_read_as_hexadecimal_digits() {
        let id = |number| Some(ConsoleId(NonZeroU64::new(number).unwrap()));
        assert_eq!(console_id("console=1f"), id(31));
        assert_eq!(console_id("console=ffffffffffffffff"), id(u64::MAX));
        for wrong in ["", "console=", "console=0", "console=+1", "console=10000000000000000", "1f"]
        {
            assert_eq!(console_id(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_query_panics(query in any::<String>()) {
            let _ = console_id(&query);
            let _ = console_id(&format!("console={query}"));
        }
    }
}
