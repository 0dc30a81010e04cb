//! Access to the console: its names, and the browsers that were admitted.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};
use subtle::ConstantTimeEq;
use tautline_net::random;

/// An address that admits one browser, once.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Address to open unchanged; the token is in its fragment, which browsers never send.
    pub address: String,
    /// SHA-256 of the certificate shown to the browser; `None` without TLS.
    pub fingerprint: Option<String>,
    /// Right that the browser's pages will have.
    pub right: Right,
}

/// Right of an admitted browser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    /// To drive the vehicle, and to ask the driving console to hand over.
    Drive,
    /// To see telemetry and status only: nothing that the browser sends reaches the vehicle.
    Watch,
}

/// Admission of browsers: each by a token that is valid once, and then by a cookie of its own.
pub(crate) struct Access {
    names: Names,
    fingerprint: Option<String>,
    /// Name of the cookie that this console sets in browsers; all ports of a host share their
    /// cookies.
    cookie_name: String,
    door: Mutex<Door>,
    announce: Box<dyn Fn(Opening) + Send + Sync>,
}

/// An admitted browser, counted from 1: two that show the same cookie are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Browser(pub(crate) u64);

struct Door {
    /// Token that admits the next browser, for each available right.
    tokens: Vec<(Right, Secret)>,
    /// Admitted browsers with their secrets, the newest last.
    admitted: VecDeque<Admitted>,
    admitted_count: u64,
}

#[derive(Clone, Copy)]
struct Admitted {
    browser: Browser,
    right: Right,
    cookie: Secret,
}

/// The names by which browsers reach the console; requests under any other name are refused.
///
/// A page of another site whose name resolves to this address sends that other name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Names {
    is_secure: bool,
    /// True if there is a proxy before the console. The proxy knows the path prefix by which
    /// browsers reach it; the console does not.
    is_behind: bool,
    /// Path prefix that follows the first name in the printed address: empty, or with a final `/`.
    path: String,
    /// Hosts as in an address, with the port unless it is the scheme's default.
    hosts: Vec<String>,
}

/// 128 random bits, written as 32 hexadecimal digits; compared in constant time, and never logged.
#[derive(Clone, Copy)]
struct Secret([u8; 16]);

impl Access {
    /// Creates an access by `names` for a console at `port`. The first token for each of `rights`
    /// is created and announced, and so is each token that replaces a used one.
    ///
    /// # Errors
    /// Fails if the system provides no randomness.
    pub(crate) fn new(
        names: Names,
        port: u16,
        fingerprint: Option<String>,
        rights: &[Right],
        announce: impl Fn(Opening) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let token = |right: &Right| -> anyhow::Result<_> { Ok((*right, Secret::draw()?)) };
        let tokens = rights.iter().map(token).collect::<anyhow::Result<_>>()?;
        let door = Door { tokens, admitted: VecDeque::new(), admitted_count: 0 };
        let access = Self {
            names,
            fingerprint,
            cookie_name: format!("tautline-{port}"),
            door: Mutex::new(door),
            announce: Box::new(announce),
        };
        rights.iter().for_each(|right| access.announce(*right));
        Ok(access)
    }

    /// Returns the names by which browsers reach the console.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Redeems a token, once: admits a browser, announces the next token's address, and returns the
    /// line that sets the browser's cookie. `None` if the token is unknown or was used, or the
    /// system provides no randomness. The oldest browser of the same right is displaced if there
    /// are 16.
    pub(crate) fn exchange(&self, token: &[u8]) -> Option<String> {
        // Drawn before the token is redeemed, because a redeemed token must be replaced by a new
        // one.
        let (cookie, next) = (Secret::draw().ok()?, Secret::draw().ok()?);
        let right = {
            let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
            let (right, taken) = door.tokens.iter_mut().find(|(_, secret)| secret.is(token))?;
            *taken = next;
            let right = *right;
            // Watching browsers do not displace driving ones.
            let alike = |other: &Admitted| other.right == right;
            if door.admitted.iter().filter(|other| alike(other)).count() == ADMITTED_MAX
                && let Some(oldest) = door.admitted.iter().position(alike)
            {
                door.admitted.remove(oldest);
            }
            door.admitted_count += 1;
            let browser = Browser(door.admitted_count);
            door.admitted.push_back(Admitted { browser, right, cookie });
            right
        };
        self.announce(right);
        let secure = if self.names.is_secure { "; Secure" } else { "" };
        // Without a path, a browser uses the folder of its request; so several consoles behind one
        // proxy stay separate.
        let path = if self.names.is_behind { "" } else { "; Path=/" };
        Some(format!("{}={cookie}{path}; HttpOnly; SameSite=Strict{secure}", self.cookie_name))
    }

    /// Returns the admitted browser whose cookie is in the request, and its right; `None` without
    /// such a cookie.
    pub(crate) fn admitted(&self, headers: &HeaderMap) -> Option<(Browser, Right)> {
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs =
            lines.flat_map(|line| line.split(';')).filter_map(|part| part.trim().split_once('='));
        let ours = pairs.filter(|(name, _)| *name == self.cookie_name);
        let mut browsers = ours.filter_map(|(_, value)| {
            door.admitted.iter().find(|admitted| admitted.cookie.is(value.as_bytes()))
        });
        browsers.next().map(|admitted| (admitted.browser, admitted.right))
    }

    /// Announces the address that admits the next browser of this right; does nothing if the right
    /// is not available.
    fn announce(&self, right: Right) {
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        let token = door.tokens.iter().find(|(of, _)| *of == right).map(|(_, token)| *token);
        drop(door);
        let Some(token) = token else { return };
        let address = format!("{}/{}#{token}", self.names.origin(), self.names.path);
        (self.announce)(Opening { address, fingerprint: self.fingerprint.clone(), right });
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Names {
    /// Returns the names of a console at `address`: those `given`, each with its own port or else
    /// that of `address`, unless that is the scheme's default; or `address` itself if none was
    /// given, and `localhost` too if that is a loopback address.
    ///
    /// # Errors
    /// Returns one line if the address is a wildcard and no name was given.
    pub(crate) fn of(
        address: SocketAddr,
        given: &[String],
        is_secure: bool,
    ) -> anyhow::Result<Self> {
        ensure!(
            !given.is_empty() || !address.ip().is_unspecified(),
            "console = {address} means every address of this machine: give the names under which \
             browsers reach it with --console-name"
        );
        let mut names: Vec<String> = given.iter().map(|name| name.to_ascii_lowercase()).collect();
        if names.is_empty() {
            names.push(SocketAddr::new(address.ip(), 0).to_string().trim_end_matches(":0").into());
            if address.ip().is_loopback() {
                names.push("localhost".into());
            }
        }
        let own = if is_secure { 443 } else { 80 };
        let hosts = names.into_iter().map(|name| match port_of(&name) {
            Some(port) if port == own => name[..name.len() - format!(":{port}").len()].to_owned(),
            Some(_) => name,
            None if address.port() == own => name,
            None => format!("{name}:{}", address.port()),
        });
        let path = String::new();
        Ok(Self { is_secure, is_behind: false, path, hosts: hosts.collect() })
    }

    /// Returns the names of a console that browsers reach by a proxy over HTTPS: those `given`. A
    /// name has its port if that is not 443, and its path prefix at the proxy, if there is one;
    /// only the first name's prefix is kept, for the printed address.
    ///
    /// # Errors
    /// Returns one line if no name was given.
    pub(crate) fn behind_https(given: &[String]) -> anyhow::Result<Self> {
        let first = given.first().context(
            "console_behind: give the names under which browsers reach the proxy with \
             --console-name",
        )?;
        let path = first.split_once('/').map_or("", |(_, path)| path).trim_matches('/');
        let path = if path.is_empty() { String::new() } else { format!("{path}/") };
        let hosts = given.iter().map(|name| {
            let host = name.split_once('/').map_or(name.as_str(), |(host, _)| host);
            host.strip_suffix(":443").unwrap_or(host).to_ascii_lowercase()
        });
        Ok(Self { is_secure: true, is_behind: true, path, hosts: hosts.collect() })
    }

    /// Returns the IP address of the browser: `peer` or, behind a proxy, the last entry of the
    /// proxy's `X-Forwarded-For`, if it is valid.
    pub(crate) fn visitor(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.is_behind {
            return peer;
        }
        let mut lines =
            headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok());
        let last = lines.next_back().and_then(|line| line.rsplit(',').next());
        last.and_then(|text| text.trim().parse().ok()).unwrap_or(peer)
    }

    /// Returns the names without ports and brackets, as certificates have them.
    pub(crate) fn bare(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| {
            let name = port_of(host).map_or(host.as_str(), |_| {
                host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name)
            });
            name.trim_start_matches('[').trim_end_matches(']')
        })
    }

    /// Returns the origin of the console under its first name, such as
    /// `https://drive.example:8443`.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme(), self.hosts.first().expect("there is always a name"))
    }

    /// Returns whether a request is for this console: it has exactly one `Host`, which is one of
    /// the names.
    pub(crate) fn is_own_host(&self, headers: &HeaderMap) -> bool {
        single(headers, HOST)
            .is_some_and(|told| self.hosts.iter().any(|host| host.eq_ignore_ascii_case(told)))
    }

    /// Returns whether a request comes from a page of this console. Browsers send the page's origin
    /// in `Origin`; without exactly one `Origin`, the answer is false.
    pub(crate) fn is_own_page(&self, headers: &HeaderMap) -> bool {
        let own = |told: &str| {
            let (scheme, host) = told.split_once("://")?;
            Some(scheme == self.scheme() && self.hosts.iter().any(|own| own == host))
        };
        single(headers, ORIGIN).and_then(own).unwrap_or(false)
    }

    fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }
}

impl Secret {
    fn draw() -> anyhow::Result<Self> {
        let seed = random::seed()?;
        Ok(Self(*seed.first_chunk().expect("a seed is longer")))
    }

    /// Returns whether `text` is this secret as hexadecimal digits; compares in constant time.
    fn is(&self, text: &[u8]) -> bool {
        self.to_string().as_bytes().ct_eq(text).into()
    }
}

/// Writes the secret as 32 lower-case hexadecimal digits.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Returns the value of a header; `None` if it is missing, given twice, or not text.
fn single(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok()).flatten()
}

/// Returns the port after a name or an address; `None` without one. IPv6 addresses are in brackets.
fn port_of(host: &str) -> Option<u16> {
    let (before, port) = host.rsplit_once(':')?;
    let is_whole = !before.contains(':') || before.ends_with(']');
    port.parse().ok().filter(|_| is_whole)
}

/// Maximum number of admitted browsers with the same right, beyond which the oldest one loses its
/// admission.
const ADMITTED_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    type Announced = Arc<Mutex<Vec<String>>>;

    fn access() -> (Access, Announced) {
        access_of(&[Right::Drive])
    }

    fn access_of(rights: &[Right]) -> (Access, Announced) {
        let announced = Announced::default();
        let names = Names::of(([127, 0, 0, 1], 8080).into(), &[], false).unwrap();
        let told = announced.clone();
        let tell = move |opening: Opening| told.lock().unwrap().push(opening.address);
        (Access::new(names, 8080, None, rights, tell).unwrap(), announced)
    }

    fn token(announced: &Announced) -> String {
        let addresses = announced.lock().unwrap();
        addresses.last().unwrap().strip_prefix("http://127.0.0.1:8080/#").unwrap().to_owned()
    }

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_token_lets_one_browser_in_and_the_next_is_announced() {
        let (access, announced) = access();
        let first = token(&announced);
        assert_eq!(first.len(), 32);
        let cookie = access.exchange(first.as_bytes()).unwrap();
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        let shown = cookie.split(';').next().unwrap();
        let first_browser = access.admitted(&headers(&[(COOKIE, &format!("a=b; {shown}"))]));
        assert_eq!(first_browser, Some((Browser(1), Right::Drive)));
        assert_eq!(access.exchange(first.as_bytes()), None);
        assert_ne!(token(&announced), first);
        let second = access.exchange(token(&announced).as_bytes()).unwrap();
        let shown_by_second = second.split(';').next().unwrap();
        let second_browser = access.admitted(&headers(&[(COOKIE, shown_by_second)]));
        assert_eq!(second_browser, Some((Browser(2), Right::Drive)));
        assert_eq!(access.admitted(&headers(&[(COOKIE, shown)])), first_browser, "it stays");
    }

    #[test]
    fn nothing_else_is_let_in() {
        let (access, announced) = access();
        let right = token(&announced);
        for wrong in ["", "0", &right[1..], &format!("{right}0"), &format!(" {right}")] {
            assert_eq!(access.exchange(wrong.as_bytes()), None, "{wrong}");
        }
        for cookie in ["", "tautline-8080", "tautline-8080=", "tautline-8080=0", "a=b;;=;"] {
            assert_eq!(access.admitted(&headers(&[(COOKIE, cookie)])), None, "{cookie}");
        }
    }

    #[test]
    fn a_browser_too_many_takes_the_oldest_ones_place() {
        let (access, announced) = access();
        let enter = || access.exchange(token(&announced).as_bytes()).unwrap();
        let cookies: Vec<String> = (0..=ADMITTED_MAX).map(|_| enter()).collect();
        let admits = |cookie: &String| {
            access.admitted(&headers(&[(COOKIE, cookie.split(';').next().unwrap())])).is_some()
        };
        assert!(!admits(&cookies[0]));
        assert!(cookies[1..].iter().all(admits));
    }

    #[test]
    fn a_watch_token_grants_no_driving_and_evicts_no_driver() {
        let (access, announced) = access_of(&[Right::Drive, Right::Watch]);
        let tokens = || announced.lock().unwrap().clone();
        let [drive, watch] = tokens().try_into().unwrap();
        let token = |address: &String| address.split_once('#').unwrap().1.to_owned();
        assert_ne!(token(&drive), token(&watch));
        let shown = |cookie: &String| {
            access.admitted(&headers(&[(COOKIE, cookie.split(';').next().unwrap())]))
        };
        let driver = access.exchange(token(&drive).as_bytes()).unwrap();
        assert_eq!(shown(&driver), Some((Browser(1), Right::Drive)));
        assert_eq!(tokens().len(), 3, "the next to drive; the one to watch is as good as before");
        let mut next = watch;
        let mut watchers = Vec::new();
        for _ in 0..=ADMITTED_MAX {
            watchers.push(access.exchange(token(&next).as_bytes()).unwrap());
            assert_eq!(access.exchange(token(&next).as_bytes()), None, "once");
            next = tokens().last().unwrap().clone();
        }
        assert_eq!(shown(&watchers[0]), None, "the oldest of its kind makes room");
        assert!(watchers[1..].iter().all(|cookie| shown(cookie).unwrap().1 == Right::Watch));
        assert_eq!(shown(&driver), Some((Browser(1), Right::Drive)));
    }

    #[test]
    fn behind_a_tls_proxy_the_consoles_names_are_the_proxys() {
        let given =
            |names: &[&str]| -> Vec<String> { names.iter().map(|it| (*it).to_owned()).collect() };
        let names = Names::behind_https(&given(&["Drive.example/car1/", "b.example:8443"]));
        let names = names.unwrap();
        let host = |host| names.is_own_host(&headers(&[(HOST, host)]));
        let page = |origin| names.is_own_page(&headers(&[(ORIGIN, origin)]));
        assert!(host("drive.example") && host("b.example:8443"));
        assert!(!host("127.0.0.1:8080") && !host("b.example") && !host("evil.example"));
        assert!(page("https://drive.example") && page("https://b.example:8443"));
        assert!(!page("http://drive.example") && !page("https://evil.example") && !page("null"));
        let announced = Announced::default();
        let told = announced.clone();
        let tell = move |opening: Opening| told.lock().unwrap().push(opening.address);
        let access = Access::new(names.clone(), 8080, None, &[Right::Drive], tell).unwrap();
        let address = announced.lock().unwrap().last().unwrap().clone();
        let token = address.strip_prefix("https://drive.example/car1/#").unwrap().to_owned();
        let cookie = access.exchange(token.as_bytes()).unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        assert!(!cookie.contains("Path="), "the browser knows the path: {cookie}");
        let own_port = Names::behind_https(&given(&["a.example:443"])).unwrap();
        assert_eq!(own_port.origin(), "https://a.example");
        assert!(Names::behind_https(&[]).unwrap_err().to_string().contains("--console-name"));
        // The proxy appends the client's address after those that the browser itself sent.
        let peer: IpAddr = [127, 0, 0, 1].into();
        let forwarded = HeaderName::from_static("x-forwarded-for");
        let said = headers(&[(forwarded.clone(), "198.51.100.9, 203.0.113.7")]);
        assert_eq!(names.visitor(peer, &said).to_string(), "203.0.113.7");
        assert_eq!(names.visitor(peer, &headers(&[(forwarded, "who knows")])), peer);
        let (direct, _) = access_of(&[Right::Drive]);
        assert_eq!(direct.names().visitor(peer, &said), peer, "nobody is believed without a proxy");
    }

    #[test]
    fn only_its_own_names_and_pages_are_the_consoles() {
        let names = |address: &str, given: &[&str], is_secure| {
            let given: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
            Names::of(address.parse().unwrap(), &given, is_secure)
        };
        let local = names("127.0.0.1:8080", &[], false).unwrap();
        let host = |names: &Names, host| names.is_own_host(&headers(&[(HOST, host)]));
        let page = |names: &Names, origin| names.is_own_page(&headers(&[(ORIGIN, origin)]));
        assert!(host(&local, "127.0.0.1:8080") && host(&local, "LOCALHOST:8080"));
        for other in ["evil.example", "evil.example:8080", "127.0.0.1", "127.0.0.1:80", "localhost"]
        {
            assert!(!host(&local, other), "{other}");
        }
        assert!(page(&local, "http://127.0.0.1:8080") && page(&local, "http://localhost:8080"));
        for other in
            ["http://evil.example:8080", "https://127.0.0.1:8080", "null", "", "127.0.0.1:8080"]
        {
            assert!(!page(&local, other), "{other}");
        }
        assert!(!local.is_own_page(&HeaderMap::new()) && !local.is_own_host(&HeaderMap::new()));
        let mut twice = headers(&[(HOST, "127.0.0.1:8080")]);
        twice.append(HOST, "evil.example".parse().unwrap());
        assert!(!local.is_own_host(&twice));

        let six = names("[::1]:8080", &[], false).unwrap();
        assert!(host(&six, "[::1]:8080") && six.bare().eq(["::1", "localhost"]));
        let own = names("10.0.0.7:443", &["Drive.example", "b.example:8443"], true).unwrap();
        assert!(host(&own, "drive.example") && host(&own, "b.example:8443"));
        assert!(!host(&own, "10.0.0.7") && page(&own, "https://drive.example"));
        assert_eq!(own.origin(), "https://drive.example");
        assert!(own.bare().eq(["drive.example", "b.example"]));
        let error = names("0.0.0.0:8080", &[], true).unwrap_err().to_string();
        assert!(error.contains("--console-name"), "{error}");
    }
}
