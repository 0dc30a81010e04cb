//! Who may open the console: the names that it has, and a browser that was let in.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};
use subtle::ConstantTimeEq;
use tautline_net::random;

/// An address that lets one browser in, once.
#[derive(Clone, Debug)]
pub struct Opening {
    /// To be opened as it stands; the token is in its fragment, which browsers send to nobody.
    pub address: String,
    /// SHA-256 of the certificate that the browser is shown; `None` without TLS.
    pub fingerprint: Option<String>,
    /// What that browser's pages may do.
    pub right: Right,
}

/// The right of a browser that was let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    /// To drive, and to ask for it.
    Drive,
    /// To see telemetry and status, and nothing else: nothing that it says goes to the vehicle.
    Watch,
}

/// What lets browsers in: each by a token that is taken once, and then by a cookie of its own.
pub(crate) struct Access {
    names: Names,
    fingerprint: Option<String>,
    /// Cookies are shared by all ports of a host: its name has ours.
    cookie_name: String,
    door: Mutex<Door>,
    announce: Box<dyn Fn(Opening) + Send + Sync>,
}

/// A browser that was let in, counted from 1: two that show the same cookie are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Browser(pub(crate) u64);

struct Door {
    /// Tokens that let the next browser in: one of each right that is given.
    tokens: Vec<(Right, Secret)>,
    /// The browsers that were let in and what each shows, the newest last.
    admitted: VecDeque<Admitted>,
    admitted_count: u64,
}

#[derive(Clone, Copy)]
struct Admitted {
    browser: Browser,
    right: Right,
    cookie: Secret,
}

/// The names by which browsers reach the console, and nothing else does.
///
/// A page of another site that makes its name resolve to this address sends that name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Names {
    is_secure: bool,
    /// Whether a proxy stands before the console: it knows the path below which browsers reach it, the console does not.
    is_behind: bool,
    /// Behind the first name in the address that is printed.
    path: String,
    /// As they stand in an address, the port included unless it is the scheme's own.
    hosts: Vec<String>,
}

/// 128 random bits; compared in constant time, and never shown by a log.
#[derive(Clone, Copy)]
struct Secret([u8; 16]);

impl Access {
    /// Returns an access by `names` whose first token of each of `rights` is drawn and announced, as will be each
    /// that takes a used one's place.
    ///
    /// # Errors
    /// When the system gives no randomness.
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

    /// Takes a token, once; returns the cookie to set, and announces the next token's address.
    pub(crate) fn exchange(&self, token: &[u8]) -> Option<String> {
        // Drawn before: a token that is taken leaves another.
        let (cookie, next) = (Secret::draw().ok()?, Secret::draw().ok()?);
        let right = {
            let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
            let (right, taken) = door.tokens.iter_mut().find(|(_, secret)| secret.is(token))?;
            *taken = next;
            let right = *right;
            // Who watches takes no place of one who drives.
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
        // Without one a browser takes the folder that it has asked below: consoles beside each other stay apart.
        let path = if self.names.is_behind { "" } else { "; Path=/" };
        Some(format!("{}={cookie}{path}; HttpOnly; SameSite=Strict{secure}", self.cookie_name))
    }

    /// Returns which browser that was let in a request shows the cookie of, and its right.
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

    /// Tells the address of the next browser of this right, if it is given.
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
    /// Returns the names of a console at `address`: those `given`, each with its port if that is
    /// another, or the address itself.
    ///
    /// # Errors
    /// One line, for an address that is all of a machine's and was given no name.
    pub(crate) fn of(
        address: SocketAddr,
        given: &[String],
        is_secure: bool,
    ) -> anyhow::Result<Self> {
        ensure!(
            !given.is_empty() || !address.ip().is_unspecified(),
            "console = {address} is every address of this machine: say by which names browsers \
             reach it with --console-name"
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

    /// Returns the names of a console that browsers reach by a proxy, over HTTPS: those `given`, each with its port if
    /// that is not 443, and with the path below which the proxy has it, if there is one.
    ///
    /// # Errors
    /// One line, if none was given.
    pub(crate) fn behind_https(given: &[String]) -> anyhow::Result<Self> {
        let first = given.first().context(
            "console_behind: by which names do browsers reach the proxy? Give them with --console-name",
        )?;
        let path = first.split_once('/').map_or("", |(_, path)| path).trim_matches('/');
        let path = if path.is_empty() { String::new() } else { format!("{path}/") };
        let hosts = given.iter().map(|name| {
            let host = name.split_once('/').map_or(name.as_str(), |(host, _)| host);
            host.strip_suffix(":443").unwrap_or(host).to_ascii_lowercase()
        });
        Ok(Self { is_secure: true, is_behind: true, path, hosts: hosts.collect() })
    }

    /// Returns where a browser is: behind a proxy where that says, which puts who asked it last.
    pub(crate) fn visitor(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.is_behind {
            return peer;
        }
        let mut lines =
            headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok());
        let last = lines.next_back().and_then(|line| line.rsplit(',').next());
        last.and_then(|text| text.trim().parse().ok()).unwrap_or(peer)
    }

    /// Returns the names alone, without ports and brackets, as certificates have them.
    pub(crate) fn bare(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| {
            let name = port_of(host).map_or(host.as_str(), |_| {
                host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name)
            });
            name.trim_start_matches('[').trim_end_matches(']')
        })
    }

    /// Returns the first origin of the console's own pages.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme(), self.hosts.first().expect("there is always a name"))
    }

    /// Returns whether a request is meant for this console: it says one of its names, once.
    pub(crate) fn is_own_host(&self, headers: &HeaderMap) -> bool {
        single(headers, HOST)
            .is_some_and(|told| self.hosts.iter().any(|host| host.eq_ignore_ascii_case(told)))
    }

    /// Returns whether a request comes from a page of this console. A browser tells by `Origin` whose
    /// page it is; without one it is no script's.
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

    /// Compares in a time that does not depend on where a difference stands.
    fn is(&self, text: &[u8]) -> bool {
        self.to_string().as_bytes().ct_eq(text).into()
    }
}

/// Thirty-two hexadecimal digits.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Returns the one value of a header; none where there are two.
fn single(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok()).flatten()
}

/// Returns the port behind a name or an address; those of version 6 stand in brackets.
fn port_of(host: &str) -> Option<u16> {
    let (before, port) = host.rsplit_once(':')?;
    let is_whole = !before.contains(':') || before.ends_with(']');
    port.parse().ok().filter(|_| is_whole)
}

/// Browsers of one right that are let in at one time; the oldest makes room.
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
    fn a_token_to_watch_lets_nobody_drive_and_takes_no_drivers_place() {
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
    fn behind_a_proxy_that_ends_tls_its_names_are_those_of_the_proxy() {
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
        // The proxy says who has asked, behind what the browser says itself.
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
