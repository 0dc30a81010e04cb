use std::net::UdpSocket;
use std::sync::Arc;
use std::thread::JoinHandle;

use tautline_sim::link;
use tautline_units::{Bitrate, Ecn};

use super::check::check;
use super::control::{Client, Error, LinkStatus, Summary};
use super::*;
use crate::udp::{BUFFER_BYTES, Outgoing, Udp};

/// An emulator on its thread, and an operator's socket as its target.
struct Bench {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<Status>>>,
    listen: Vec<SocketAddr>,
    control: SocketAddr,
    operator: UdpSocket,
}

impl Bench {
    fn start(models: &[link::Config]) -> Self {
        let operator = socket();
        let target = operator.local_addr().unwrap();
        let links = models.iter().enumerate().map(|(index, model)| LinkConfig {
            name: format!("link {index}"),
            listen: Some(local()),
            target: Some(target),
            wireless: None,
            preset: None,
            carrier: tautline_sim::preset::Carrier::A,
            up: Some(model.clone()),
            down: Some(model.clone()),
            seed: index as u64,
        });
        Self::run(Config { control: Some(local()), seed: 0, links: links.collect() }, operator)
    }

    fn run(config: Config, operator: UdpSocket) -> Self {
        let emulator = Emulator::bind(config).unwrap();
        let (listen, control) = (emulator.listen_addresses(), emulator.control_address().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || emulator.run(&seen)));
        Self { stop, thread, listen, control, operator }
    }

    fn finish(mut self) -> Status {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Returns a socket whose timeout suits a loaded machine.
fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(local()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

fn fast() -> link::Config {
    link::Config::of_rate(Bitrate::from_mbps(100)).with_delay(Duration::from_millis(2))
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2048];
    let (bytes, from) = socket.recv_from(&mut buffer).unwrap();
    (buffer[..bytes].to_vec(), from)
}

fn assert_accounted_for(link: &LinkStatus) {
    for direction in [&link.up, &link.down] {
        let model = ["queue", "loss", "outage", "cut", "size"];
        let dropped: u64 = model.iter().map(|name| direction.drops[*name]).sum();
        assert_eq!(direction.received, direction.delivered + dropped + direction.in_flight);
    }
}

#[test]
fn an_l4s_queue_marks_waiting_ect1_datagrams_only() {
    // 41 ms per datagram: the third waits behind two, even if this thread pauses for a while.
    let l4s = Some(link::L4s::default());
    let bench =
        Bench::start(&[link::Config { l4s, ..link::Config::of_rate(Bitrate::from_kbps(200)) }]);
    let open = |socket: UdpSocket| {
        socket.set_nonblocking(true).unwrap();
        Udp::new(mio::net::UdpSocket::from_std(socket)).unwrap()
    };
    let (mut vehicle, operator) = (open(socket()), open(bench.operator.try_clone().unwrap()));
    let codepoints = [Ecn::Ect1, Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::NotEct, Ecn::Ce, Ecn::Ect1];
    for (number, ecn) in (0..).zip(codepoints) {
        let (bytes, to) = (&[number; 1_000], bench.listen[0]);
        vehicle.send(&Outgoing { bytes, segment: None, to, from: None, ecn }).unwrap();
    }
    let (mut came, mut buffer) = (Vec::new(), vec![0; BUFFER_BYTES]);
    for _ in 0..10_000 {
        match operator.receive(&mut buffer) {
            Ok(received) => {
                let datagrams = received.datagrams(&buffer);
                came.extend(datagrams.map(|datagram| (datagram[0], received.ecn)));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
        if came.len() == codepoints.len() {
            break;
        }
    }
    let left: Vec<(u8, Ecn)> = (0..).zip(codepoints).collect();
    let [first, rest @ ..] = &came[..] else { panic!("nothing came") };
    assert_eq!((*first, rest.len()), (left[0], 6));
    for ((number, ecn), (_, before)) in came.iter().zip(&left) {
        let may_be = *ecn == *before || (*ecn, *before) == (Ecn::Ce, Ecn::Ect1);
        assert!(may_be, "{number}: {before:?} came as {ecn:?}");
    }
    let marked = came.iter().zip(&left).filter(|(came, left)| came.1 != left.1).count();
    assert!(marked > 0, "{came:?}");
    assert_eq!(bench.finish().links[0].up.marked, marked as u64);
}

#[test]
fn datagrams_pass_both_directions_on_their_own_link() {
    let bench = Bench::start(&[fast(), fast()]);
    let vehicle = socket();
    let mut sources = Vec::new();
    for (index, listen) in bench.listen.iter().enumerate() {
        for number in 0..20_u8 {
            vehicle.send_to(&[index as u8, number], listen).unwrap();
        }
        let received: Vec<_> = (0..20).map(|_| receive(&bench.operator)).collect();
        for (number, (datagram, from)) in received.iter().enumerate() {
            assert_eq!(datagram, &[index as u8, number as u8], "in order");
            assert_eq!(from, &received[0].1);
        }
        sources.push(received[0].1);
    }
    assert_ne!(sources[0], sources[1], "the operator sees one source a link");
    for (index, source) in sources.iter().enumerate() {
        bench.operator.send_to(b"answer", source).unwrap();
        assert_eq!(receive(&vehicle), (b"answer".to_vec(), bench.listen[index]));
    }
    let status = bench.finish();
    for link in &status.links {
        assert_eq!((link.up.received, link.up.delivered, link.up.delivered_bytes), (20, 20, 40));
        assert_eq!((link.down.received, link.down.delivered), (1, 1));
        assert_eq!(link.lateness.count, 21);
        assert_accounted_for(link);
    }
    assert_eq!(status.lateness.count, 42);
}

#[test]
fn the_latest_client_gets_the_answers() {
    let bench = Bench::start(&[fast()]);
    let (first, second) = (socket(), socket());
    first.send_to(b"1", bench.listen[0]).unwrap();
    receive(&bench.operator);
    second.send_to(b"2", bench.listen[0]).unwrap();
    let (_, source) = receive(&bench.operator);
    bench.operator.send_to(b"answer", source).unwrap();
    assert_eq!(receive(&second).0, b"answer");
    let status = bench.finish();
    assert_eq!(status.links[0].client, Some(second.local_addr().unwrap()));
}

#[test]
fn a_delay_is_kept_and_never_cut_short() {
    let delay = Duration::from_millis(40);
    let bench = Bench::start(&[fast().with_delay(delay)]);
    let vehicle = socket();
    let clock = Clock::start();
    let sent = clock.now();
    vehicle.send_to(b"x", bench.listen[0]).unwrap();
    receive(&bench.operator);
    assert!(clock.now().since(sent) >= delay);
}

#[test]
fn losses_and_a_full_queue_are_counted() {
    let lossy = link::Config { loss: 0.3, ..fast() };
    let narrow =
        link::Config { queue_bytes: 5_000, ..link::Config::of_rate(Bitrate::from_kbps(500)) };
    let bench = Bench::start(&[lossy, narrow]);
    let vehicle = socket();
    for _ in 0..100 {
        vehicle.send_to(&[0; 500], bench.listen[0]).unwrap();
        vehicle.send_to(&[1; 500], bench.listen[1]).unwrap();
    }
    let status = wait_for(&bench, |status| {
        status.links.iter().all(|link| link.up.received == 100 && link.up.in_flight == 0)
    });
    let [lossy, narrow] = &status.links[..] else { panic!("two links") };
    assert!((10..55).contains(&lossy.up.drops["loss"]), "{:?}", lossy.up.drops);
    assert!(narrow.up.drops["queue"] > 50, "{:?}", narrow.up.drops);
    bench.finish().links.iter().for_each(assert_accounted_for);
}

#[test]
fn a_link_is_cut_and_restored_over_the_control_channel() {
    let bench = Bench::start(&[fast(), fast()]);
    let vehicle = socket();
    let runtime = runtime();
    let mut client = Client::new(bench.control);
    runtime.block_on(client.cut(1, true)).unwrap();
    vehicle.send_to(b"lost", bench.listen[1]).unwrap();
    let status = wait_for(&bench, |status| status.links[1].up.received == 1);
    assert!(status.links[1].cut && !status.links[0].cut);
    assert_eq!(status.links[1].up.drops["cut"], 1);
    runtime.block_on(client.cut(1, false)).unwrap();
    vehicle.send_to(b"through", bench.listen[1]).unwrap();
    assert_eq!(receive(&bench.operator).0, b"through");
    let refused = runtime.block_on(client.cut(2, true)).unwrap_err();
    assert_eq!(refused.to_string(), "the link emulator: no link 2: they are 0 to 1");
    assert_eq!(runtime.block_on(client.status()).unwrap().links[0].name, "link 0");
}

#[test]
fn one_direction_is_cut_or_delayed_over_the_control_channel() {
    use std::io::{BufRead, BufReader, Write};
    let bench = Bench::start(&[fast()]);
    let vehicle = socket();
    vehicle.send_to(b"first", bench.listen[0]).unwrap();
    let (_, source) = receive(&bench.operator);
    let mut stream = std::net::TcpStream::connect(bench.control).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut ask = |line: &str| {
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        reader.read_line(&mut answer).unwrap();
        answer
    };
    let done = "{\"ok\":true}\n";
    assert_eq!(ask(r#"{"link":0,"cut":true,"direction":"up"}"#), done);
    vehicle.send_to(b"lost", bench.listen[0]).unwrap();
    let status = wait_for(&bench, |status| status.links[0].up.received == 2);
    assert_eq!((status.links[0].up.drops["cut"], status.links[0].cut), (1, true));
    bench.operator.send_to(b"answer", source).unwrap();
    assert_eq!(receive(&vehicle).0, b"answer");
    assert_eq!(ask(r#"{"link":0,"cut":false}"#), done);
    assert_eq!(ask(r#"{"link":0,"delay_ms":60}"#), done);
    let clock = Clock::start();
    let sent = clock.now();
    vehicle.send_to(b"late", bench.listen[0]).unwrap();
    assert_eq!(receive(&bench.operator).0, b"late");
    assert!(clock.now().since(sent) >= Duration::from_millis(60));
    assert!(ask(r#"{"link":1,"delay_ms":60}"#).contains("no link 1"));
    assert!(ask(r#"{"link":0,"cut":true,"direction":"sideways"}"#).starts_with("{\"error\""));
}

#[test]
fn the_client_finds_a_restarted_emulator_again() {
    let bench = Bench::start(&[fast()]);
    let (control, runtime) = (bench.control, runtime());
    let mut client = Client::new(control);
    runtime.block_on(client.status()).unwrap();
    bench.finish();
    let gone = runtime.block_on(client.status()).unwrap_err();
    assert!(matches!(gone, Error::Connection { .. }), "{gone}");
    let operator = socket();
    let target = operator.local_addr().unwrap();
    let mut config = Config::of_preset(tautline_sim::preset::Preset::Lan, 1, local(), target, 1);
    config.control = Some(control);
    let _again = Bench::run(config, operator);
    assert_eq!(runtime.block_on(client.status()).unwrap().links[0].name, "a1");
}

#[test]
fn malformed_control_lines_get_errors_or_close_the_connection() {
    use std::io::{BufRead, BufReader, Read, Write};
    let bench = Bench::start(&[fast()]);
    let mut stream = std::net::TcpStream::connect(bench.control).unwrap();
    stream
        .write_all(b"malformed\n\n\xff\xfe\n{\"link\":-1,\"cut\":true}\n{\"cmd\":\"status\"}\n")
        .unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for expected in ["{\"error\"", "{\"error\"", "{\"error\"", "{\"links\""] {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with(expected), "{line}");
    }
    let _ = stream.write_all(&[b'x'; 20_000]);
    let mut rest = Vec::new();
    let _ = reader.read_to_end(&mut rest);
    assert!(rest.is_empty(), "an overlong line closes the connection");
    let others: Vec<_> =
        (0..20).map(|_| std::net::TcpStream::connect(bench.control).unwrap()).collect();
    let status = runtime().block_on(Client::new(bench.control).status()).unwrap();
    assert_eq!(status.links.len(), 1);
    drop(others);
}

#[test]
fn an_absent_target_is_counted_and_found_when_it_comes() {
    let nobody = socket().local_addr().unwrap();
    let config = Config::of_preset(tautline_sim::preset::Preset::Lan, 1, local(), nobody, 1);
    let config = Config { control: Some(local()), ..config };
    let alone = Bench::run(config, socket());
    let vehicle = socket();
    for count in 1..=3 {
        vehicle.send_to(b"anyone?", alone.listen[0]).unwrap();
        wait_for(&alone, |status| status.links[0].up.delivered == count);
    }
    let operator = UdpSocket::bind(nobody).unwrap();
    operator.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    vehicle.send_to(b"now", alone.listen[0]).unwrap();
    assert_eq!(receive(&operator).0, b"now");
}

#[test]
fn an_address_that_cannot_be_bound_is_reported_in_one_line() {
    let taken = socket();
    let address = taken.local_addr().unwrap();
    let config = |listen, target| {
        Config::of_preset(tautline_sim::preset::Preset::LteDriving, 4, listen, target, 1)
    };
    let error = |config| format!("{:#}", Emulator::bind(config).unwrap_err());
    assert_eq!(error(config(address, local())), "link \"a1\": target 127.0.0.1:0 has no port",);
    let target = SocketAddr::from(([127, 0, 0, 1], 9));
    assert_eq!(
        error(config(address, target)),
        format!("cannot listen on {address}: address in use; choose another with links[0].listen")
    );
    let foreign = SocketAddr::from(([192, 0, 2, 1], 7101));
    assert_eq!(
        error(config(foreign, target)),
        "cannot listen on 192.0.2.1:7101: not an address of this machine; \
         choose another with links[0].listen"
    );
    let listener = std::net::TcpListener::bind(local()).unwrap();
    let control = listener.local_addr().unwrap();
    let busy = Config { control: Some(control), ..config(local(), target) };
    assert_eq!(
        error(busy),
        format!("cannot listen on {control}: address in use; choose another with control")
    );
}

#[test]
fn configurations_are_checked() {
    let parse = |text: &str| serde_json::from_str::<Config>(text);
    let of_link = |rest: &str| {
        let start = r#"{"links":[{"name":"a","listen":"127.0.0.1:0","target":"127.0.0.1:9""#;
        let config = parse(&format!("{start}{rest}}}]}}")).unwrap();
        config.validate().map_err(|error| format!("{error:#}"))
    };
    assert_eq!(of_link(r#","preset":"lte-driving","carrier":"b","seed":7"#), Ok(()));
    assert_eq!(of_link("").unwrap_err(), "link \"a\": give preset, or both up and down");
    assert_eq!(
        of_link(r#","preset":"lan","up":{"rate_mbps":-1.0}"#).unwrap_err(),
        "link \"a\", up: rate_mbps = -1: must be 0.01 to 100000 Mbit/s"
    );
    let unknown = parse(r#"{"links":[],"lnks":[]}"#).unwrap_err().to_string();
    assert!(unknown.starts_with("unknown field `lnks`"), "{unknown}");
    let none = parse(r#"{"links":[]}"#).unwrap().validate().unwrap_err().to_string();
    assert_eq!(none, "links has 0 entries: must be 1 to 16 entries");
    let missing = of_link(r#","preset":"lan","up":{"trace":{"file":"/no/such.pps"}}"#);
    assert_eq!(missing, Ok(()), "the file is looked for when it is loaded");
    assert_eq!(of_link(r#","wireless":{"power_dbm":-35,"disturbed":false}"#), Ok(()));
    assert_eq!(
        of_link(r#","preset":"lan","wireless":{"power_dbm":-35}"#).unwrap_err(),
        "link \"a\": wireless replaces preset, up and down; give only one of them"
    );
    assert_eq!(
        of_link(r#","wireless":{"power_dbm":-40}"#).unwrap_err(),
        "link \"a\": wireless: power_dbm = -40: must be -20, -35 or -60 dBm"
    );
    let bind = |text: &str| format!("{:#}", Emulator::bind(parse(text).unwrap()).unwrap_err());
    let nowhere = bind(r#"{"links":[{"name":"a","preset":"lan","target":"127.0.0.1:9"}]}"#);
    assert_eq!(nowhere, "link \"a\": give listen");
    let relayed = bind(r#"{"links":[{"name":"a","wireless":{"power_dbm":-35}}]}"#);
    assert_eq!(relayed, "link \"a\": a wireless network works only between devices (--tun)");
    let common = |every_s: f64| {
        let outage = format!(r#"{{"every_s":{every_s},"mean_ms":50.0}}"#);
        format!(r#"{{"rate_mbps":8.0,"common":[{{"name":"cell","outage_losing":{outage}}}]}}"#)
    };
    let both = |up, down| of_link(&format!(r#","up":{},"down":{}"#, common(up), common(down)));
    assert_eq!(both(9.0, 9.0), Ok(()));
    assert_eq!(
        both(9.0, 8.0).unwrap_err(),
        "links \"a\" and \"a\" have different times for common \"cell\""
    );
}

/// A recording in real time: a file in a configuration, whose hold is observed at the far end.
#[test]
fn a_recordings_hold_delivers_a_burst_late() {
    let file = std::env::temp_dir().join(format!("tautline-recording-{}", std::process::id()));
    let rows: String =
        (0..400).map(|row| format!("{},{}\n", row * 50, 400 - row % 8 * 50)).collect();
    std::fs::write(&file, format!("t_ms,rtt_ms\n{rows}")).unwrap();
    let recording = serde_json::json!({ "file": &file });
    let model = serde_json::json!({ "rate_mbps": 100.0, "recording": recording });
    let mut config: link::Config = serde_json::from_value(model).unwrap();
    config.load_files(std::path::Path::new(".")).unwrap();
    std::fs::remove_file(&file).unwrap();
    let bench = Bench::start(&[config]);
    let (vehicle, operator) = (socket(), bench.operator.try_clone().unwrap());
    let far_end = std::thread::spawn(move || {
        let clock = Clock::start();
        let arrivals = (0..100).map(|_| {
            receive(&operator);
            clock.now()
        });
        arrivals.collect::<Vec<_>>()
    });
    for number in 0..100_u32 {
        vehicle.send_to(&number.to_be_bytes(), bench.listen[0]).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let arrivals = far_end.join().unwrap();
    let gaps = arrivals.windows(2).map(|pair| pair[1].since(pair[0]));
    let long = gaps.filter(|gap| *gap > Duration::from_millis(150)).count();
    assert!(long >= 2, "sent every 10 ms, held for 350 of every 400 ms: {long} gaps");
    assert_eq!(bench.finish().links[0].up.delivered, 100);
}

#[test]
fn a_check_counts_what_every_link_let_through() {
    let target = SocketAddr::from(([127, 0, 0, 1], 9));
    let config = Config::of_preset(tautline_sim::preset::Preset::Lte, 2, local(), target, 1);
    let status = check(&config, Duration::from_millis(300)).unwrap();
    for link in &status.links {
        assert_accounted_for(link);
        assert!(link.up.received >= 20 && link.up.delivered > 0, "{link:?}");
        assert_eq!(link.lateness.count, link.up.delivered + link.down.delivered);
    }
}

/// A timer with millisecond resolution, such as epoll's, would be half a millisecond late in the
/// median. A busy machine delays everything: the emulator is compared with threads that sleep as
/// long, and may be retried; the failure lists every attempt.
#[test]
fn median_emulator_lateness_is_that_of_a_sleeping_thread() {
    let target = SocketAddr::from(([127, 0, 0, 1], 9));
    let config = Config::of_preset(tautline_sim::preset::Preset::Lte, 2, local(), target, 1);
    let mut tries = Vec::new();
    while tries.len() < 10 {
        let sleeper = std::thread::spawn(|| sleep_lateness(Duration::from_millis(300)));
        let emulator = check(&config, Duration::from_millis(300)).unwrap().lateness;
        let sleeper = Summary::from(&sleeper.join().unwrap());
        assert!(0.0 < emulator.p50_us && emulator.p50_us <= emulator.p99_us, "{emulator:?}");
        assert!(emulator.p99_us <= emulator.max_us, "{emulator:?}");
        if emulator.p50_us < sleeper.p50_us + 250.0 {
            println!("after {} late tries: {emulator:?}, sleeper {sleeper:?}", tries.len());
            return;
        }
        tries.push([emulator, sleeper]);
    }
    panic!("later than a sleeper in every try: {tries:#?}");
}

/// Returns the wake-up lateness of a thread that sleeps until every third millisecond.
fn sleep_lateness(length: Duration) -> Lateness {
    let clock = Clock::start();
    let (mut lateness, mut due) = (Lateness::default(), clock.now());
    let end = due + length;
    while due < end {
        clock.sleep_until(due);
        lateness.record(clock.now().since(due));
        due += Duration::from_millis(3);
    }
    lateness
}

/// Polls until `done`; returns the last status.
fn wait_for(bench: &Bench, done: impl Fn(&Status) -> bool) -> Status {
    let runtime = runtime();
    let mut client = Client::new(bench.control);
    for _ in 0..10_000 {
        let status = runtime.block_on(client.status()).unwrap();
        if done(&status) {
            return status;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it does not come: {:?}", runtime.block_on(client.status()));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
