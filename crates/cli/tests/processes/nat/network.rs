//! Networks of namespaces: a world with the switchboard's two addresses, and on each side a machine
//! behind its NATs.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A NAT between a machine and the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Our own [translator](crate::nat::translator): its mapping and its filtering, each by
    /// `nothing`, `address` or `port`, and the seconds after which the mapping moves, if it does.
    Ours(&'static str, &'static str, Option<u32>),
    /// The kernel's masquerading, which preserves the port where possible.
    Masquerade,
    /// The kernel's masquerading with a random port for each connection.
    Random,
}

/// Network of namespaces with their NATs; it is removed on drop.
pub(crate) struct Network {
    name: String,
    namespaces: Vec<String>,
    translators: Vec<Child>,
}

pub(crate) const SERVERS: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
/// Addresses of the relays, each a machine of its own in the world.
pub(crate) const RELAYS: [&str; 2] = ["192.0.2.21", "192.0.2.22"];

impl Network {
    /// Creates the world and a machine on either side, behind these NATs, the innermost first.
    pub(crate) fn new(sides: [&[Kind]; 2]) -> Self {
        let mut network = Self::world();
        for (side, kinds) in sides.iter().enumerate() {
            network.side(side, kinds);
        }
        network
    }

    /// Creates a world without IPv4, in which each machine's firewall blocks unsolicited packets.
    pub(crate) fn of_ipv6() -> Self {
        let network = Self::world();
        let world = network.namespace("w");
        ip(&format!("-n {world} addr add 2001:db8::1/64 dev br nodad"));
        let mut network = network;
        for side in 0..2 {
            let machine = network.add(&format!("m{side}"));
            network.wire(&machine, "out", &format!("v{side}"));
            ip(&format!("-n {machine} addr add 2001:db8::{}/64 dev out nodad", 11 + side));
            ip(&format!("-n {machine} route add default via 2001:db8::1"));
            nft(&machine, "add table ip6 f");
            nft(&machine, "add chain ip6 f i { type filter hook input priority 0; policy drop; }");
            nft(&machine, "add rule ip6 f i iifname lo accept");
            nft(&machine, "add rule ip6 f i meta l4proto ipv6-icmp accept");
            nft(&machine, "add rule ip6 f i ct state established,related accept");
        }
        network
    }

    /// Adds a machine directly in the world, at `address`.
    pub(crate) fn machine(&mut self, place: &str, address: &str) {
        let machine = self.add(place);
        self.wire(&machine, "out", &format!("v{place}"));
        ip(&format!("-n {machine} addr add {address}/24 dev out"));
        let world = self.namespace("w");
        // Machines behind NATs are reached through the world.
        ip(&format!("-n {machine} route add default via {}", SERVERS[0]));
        within(&world, "sysctl -qw net.ipv4.ip_forward=1");
    }

    /// Adds another interface to a side's machine, `out2`, directly into the world.
    pub(crate) fn second_link(&self, side: usize) {
        let machine = self.namespace(&format!("m{side}"));
        self.wire(&machine, "out2", &format!("x{side}"));
        ip(&format!("-n {machine} addr add 192.0.2.{}/24 dev out2", 111 + side));
        // Both interfaces are in one network: each must answer only for its own address.
        within(&machine, "sysctl -qw net.ipv4.conf.all.arp_ignore=1");
    }

    /// Blocks all packets between the machine at `place` and all others, or lets them pass again.
    pub(crate) fn cut(&self, place: &str, is_cut: bool) {
        let namespace = self.namespace(place);
        match is_cut {
            true => {
                nft(&namespace, "add table inet cut");
                for hook in ["input", "output"] {
                    let policy = "priority -200; policy drop; }";
                    let chain =
                        format!("add chain inet cut {hook} {{ type filter hook {hook} {policy}");
                    nft(&namespace, &chain);
                    let interface = if hook == "input" { "iifname" } else { "oifname" };
                    nft(&namespace, &format!("add rule inet cut {hook} {interface} lo accept"));
                }
            }
            false => nft(&namespace, "delete table inet cut"),
        }
    }

    /// Drops all packets on an interface of the machine at `place` silently, or lets them pass
    /// again.
    pub(crate) fn block_link(&self, place: &str, interface: &str, is_blocked: bool) {
        let namespace = self.namespace(place);
        if !is_blocked {
            return nft(&namespace, "delete table netdev link");
        }
        nft(&namespace, "add table netdev link");
        // Packets leave, and nothing returns: an output rule would produce an error at the sender.
        nft(
            &namespace,
            &format!(
                "add chain netdev link in {{ type filter hook ingress device {interface} priority 0; policy drop; }}"
            ),
        );
    }

    /// Sets an interface of the machine at `place` down, or up again.
    pub(crate) fn down(&self, place: &str, interface: &str, is_down: bool) {
        let machine = self.namespace(place);
        let state = if is_down { "down" } else { "up" };
        ip(&format!("-n {machine} link set {interface} {state}"));
    }

    /// Blocks UDP to and from the machine at `place`.
    pub(crate) fn block_udp(&self, place: &str) {
        let namespace = self.namespace(place);
        nft(&namespace, "add table inet blocked");
        for hook in ["input", "output"] {
            let chain = format!("{{ type filter hook {hook} priority -200; }}");
            nft(&namespace, &format!("add chain inet blocked {hook} {chain}"));
            nft(&namespace, &format!("add rule inet blocked {hook} meta l4proto udp drop"));
        }
    }

    fn world() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tl{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut network = Self { name, namespaces: Vec::new(), translators: Vec::new() };
        let world = network.add("w");
        ip(&format!("-n {world} link add name br type bridge"));
        ip(&format!("-n {world} link set dev br up"));
        for server in SERVERS {
            ip(&format!("-n {world} addr add {server}/24 dev br"));
        }
        network
    }

    fn side(&mut self, side: usize, kinds: &[Kind]) {
        let machine = self.add(&format!("m{side}"));
        // From the world inwards: the inside of each NAT is the outside of the next.
        let (mut outer, mut inner_routes) = (None::<(String, String)>, Vec::new());
        let mut boxes = Vec::new();
        for (depth, kind) in kinds.iter().enumerate().rev() {
            let translator = self.add(&format!("b{side}{depth}"));
            let (outside, gateway) = match &outer {
                None => (format!("192.0.2.{}", 101 + side), None),
                Some((_, gateway)) => {
                    (format!("10.{}.{}.2", side + 1, depth + 1), Some(gateway.clone()))
                }
            };
            match &outer {
                None => self.wire(&translator, "out", &format!("v{side}")),
                Some((above, _)) => join(above, "in", &translator, "out"),
            }
            ip(&format!("-n {translator} addr add {outside}/24 dev out"));
            if let Some(gateway) = gateway {
                ip(&format!("-n {translator} route add default via {gateway}"));
            }
            let inside = format!("10.{}.{depth}.1", side + 1);
            inner_routes.push((format!("10.{}.{depth}.0/24", side + 1), outside.clone()));
            outer = Some((translator.clone(), inside));
            boxes.push((translator, *kind, outside));
        }
        match outer {
            Some((translator, gateway)) => {
                join(&translator, "in", &machine, "out");
                // The far end of the wire is up only now, with its address.
                let inside = format!("10.{}.0.1", side + 1);
                debug_assert_eq!(gateway, inside);
                ip(&format!("-n {machine} addr add 10.{}.0.2/24 dev out", side + 1));
                ip(&format!("-n {machine} route add default via {gateway}"));
            }
            None => {
                self.wire(&machine, "out", &format!("v{side}"));
                ip(&format!("-n {machine} addr add 192.0.2.{}/24 dev out", 101 + side));
            }
        }
        for (translator, inside) in self.insides(side, kinds.len()) {
            ip(&format!("-n {translator} addr add {inside}/24 dev in"));
        }
        // Our own NAT does not translate TCP, so the world needs a route.
        let world = self.namespace("w");
        for (network, _) in inner_routes {
            ip(&format!("-n {world} route add {network} via 192.0.2.{}", 101 + side));
        }
        for depth in (1..kinds.len()).rev() {
            let translator = self.namespace(&format!("b{side}{depth}"));
            for below in 0..depth {
                let via = format!("10.{}.{depth}.2", side + 1);
                ip(&format!("-n {translator} route add 10.{}.{below}.0/24 via {via}", side + 1));
            }
        }
        // Only now does each of them have both interfaces.
        for (translator, kind, outside) in boxes {
            self.translate(&translator, kind, &outside);
        }
    }

    fn insides(&self, side: usize, count: usize) -> Vec<(String, String)> {
        let inside = |depth| {
            (self.namespace(&format!("b{side}{depth}")), format!("10.{}.{depth}.1", side + 1))
        };
        (0..count).map(inside).collect()
    }

    fn translate(&mut self, at: &str, kind: Kind, outside: &str) {
        within(at, "sysctl -qw net.ipv4.ip_forward=1");
        match kind {
            Kind::Ours(mapping, filtering, every) => {
                // UDP goes to the translator instead of the kernel, which must not answer it
                // either.
                ip(&format!("-n {at} route add local 0.0.0.0/0 dev lo table 100"));
                ip(&format!("-n {at} rule add iif in ipproto udp lookup 100"));
                ip(&format!("-n {at} route add blackhole default table 101"));
                ip(&format!("-n {at} rule add iif out ipproto udp lookup 101"));
                ip(&format!("-n {at} rule add ipproto icmp lookup 101"));
                let mut command = inside(at);
                command.arg(std::env::current_exe().unwrap());
                command.args(["--ignored", "--exact", "nat::inside_translator", "--nocapture"]);
                command.env("NAT_MAPPING", mapping).env("NAT_FILTERING", filtering);
                command.env("NAT_OUTSIDE", outside).stdout(Stdio::piped());
                if let Some(every) = every {
                    command.env("NAT_REBINDS_S", every.to_string());
                }
                self.translators.push(command.spawn().unwrap());
            }
            Kind::Masquerade | Kind::Random => {
                let how =
                    if kind == Kind::Random { "masquerade fully-random" } else { "masquerade" };
                nft(at, "add table ip n");
                nft(at, "add chain ip n p { type nat hook postrouting priority 100; }");
                nft(at, &format!("add rule ip n p oifname out {how}"));
                nft(at, "add chain ip n i { type filter hook input priority 0; policy drop; }");
                nft(at, "add rule ip n i iifname in accept");
                nft(at, "add chain ip n f { type filter hook forward priority 0; policy drop; }");
                nft(at, "add rule ip n f iifname in accept");
                nft(at, "add rule ip n f ct state established,related accept");
            }
        }
    }

    /// Waits until each of our own NATs translates.
    pub(crate) fn ready(&mut self) {
        for translator in &mut self.translators {
            let lines = BufReader::new(translator.stdout.take().unwrap()).lines();
            let mut lines = lines.map_while(Result::ok);
            assert!(lines.any(|line| line.contains("translating")), "a translator did not begin");
            // The translator is a test: its harness prints a line after one minute, and ends if the
            // pipe is closed.
            std::thread::spawn(move || lines.for_each(drop));
        }
    }

    pub(crate) fn namespace(&self, place: &str) -> String {
        format!("{}{place}", self.name)
    }

    fn add(&mut self, place: &str) -> String {
        let namespace = self.namespace(place);
        ip(&format!("netns add {namespace}"));
        self.namespaces.push(namespace.clone());
        ip(&format!("-n {namespace} link set dev lo up"));
        within(&namespace, "sysctl -qw net.ipv4.conf.all.rp_filter=0");
        within(&namespace, "sysctl -qw net.ipv4.conf.default.rp_filter=0");
        namespace
    }

    /// Connects an interface of `namespace` to the world's bridge.
    fn wire(&self, namespace: &str, interface: &str, port: &str) {
        let world = self.namespace("w");
        join(&world, port, namespace, interface);
        ip(&format!("-n {world} link set dev {port} master br"));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for translator in &mut self.translators {
            let _ = translator.kill();
            let _ = translator.wait();
        }
        for namespace in &self.namespaces {
            let _ = Command::new("ip").args(["netns", "del", namespace]).status();
        }
    }
}

/// Returns a command to which the program to run in the namespace is added.
pub(crate) fn inside(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]);
    command
}

/// Connects an interface of namespace `a` to one of `b`. Datagrams leave one by one: segments that
/// the kernel splits later would look like one datagram to the translator.
fn join(a: &str, a_interface: &str, b: &str, b_interface: &str) {
    ip(&format!("-n {a} link add name {a_interface} type veth peer name {b_interface} netns {b}"));
    ip(&format!("-n {a} link set dev {a_interface} gso_max_segs 1 up"));
    ip(&format!("-n {b} link set dev {b_interface} gso_max_segs 1 up"));
}

fn within(namespace: &str, words: &str) {
    let output = inside(namespace).args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "{words}: {output:?}");
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {output:?}");
}

fn nft(namespace: &str, words: &str) {
    let output = inside(namespace).args(["nft", words]).output().unwrap();
    assert!(output.status.success(), "nft {words}: {output:?}");
}
