//! What the suite cannot ask for: peers in processes of their own that are killed in traffic, many
//! domains of one process, what is left behind.
//!
//! Without libfabric, each test says so and ends, unless `FABRIC_REQUIRE_LIBFABRIC=1` is set: then it
//! fails. `FABRIC_KILLS` says how many peers each test of kills has killed (5).

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fabric_core::{Addr, Domain, EpId, ErrorKind, Event, Fabric, Pool, Slot};
use fabric_libfabric::{LibfabricDomain, LibfabricFabric, LibfabricOptions};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

/// Set to 1 where libfabric must be there.
const REQUIRE: &str = "FABRIC_REQUIRE_LIBFABRIC";
/// Longer than anything here takes on the slowest machine.
const WATCHDOG: Duration = Duration::from_secs(120);
/// Bytes of the messages in traffic: some fit one packet, some do not.
const SIZES: [usize; 3] = [64, 4096, 40_000];

struct Node {
    domain: LibfabricDomain,
    pool: Pool,
    events: Vec<Event>,
}

/// A domain of its own, or the reason why there is none, which is printed.
fn open(provider: &str) -> Option<LibfabricDomain> {
    // No end may have to wait for a time limit.
    let options = LibfabricOptions {
        provider: Some(provider.into()),
        connect_timeout: WATCHDOG,
        handshake_timeout: WATCHDOG,
        linger_timeout: WATCHDOG,
        ..Default::default()
    };
    match LibfabricFabric::new(options).open() {
        Ok(domain) => Some(domain),
        Err(error) if std::env::var(REQUIRE).is_ok_and(|value| value == "1") => {
            panic!("{REQUIRE}=1, but: {error}")
        }
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

impl Node {
    fn new(provider: &str) -> Option<Self> {
        let pool = Pool::new(64 << 10, 128).unwrap();
        Some(Self { domain: open(provider)?, pool, events: Vec::new() })
    }

    fn turn(&mut self) {
        self.domain.poll(&mut self.events, 256);
        self.domain.wait(Some(Duration::from_millis(1))).unwrap();
    }

    fn slot(&self, bytes: &[u8]) -> Slot {
        let mut slot = self.pool.take().unwrap();
        assert!(slot.append(bytes));
        slot
    }

    fn offer(&mut self, count: usize) {
        for _ in 0..count {
            self.domain.post_recv(self.pool.take().unwrap()).unwrap();
        }
    }

    fn take<T>(&mut self, mut want: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        let at = self.events.iter().position(|event| want(event).is_some())?;
        want(&self.events.remove(at))
    }

    fn accepted(&mut self) -> Option<EpId> {
        self.take(|event| if let Event::Accepted { ep, .. } = event { Some(*ep) } else { None })
    }

    fn connected(&mut self) -> Option<EpId> {
        self.take(|event| if let Event::Connected { ep, .. } = event { Some(*ep) } else { None })
    }

    fn closed(&mut self) -> Option<ErrorKind> {
        self.take(|event| match event {
            Event::Closed { why, .. } => Some(why.kind()),
            _ => None,
        })
    }

    /// Checks a message that came, if one did, and offers its slot again.
    fn hear(&mut self) -> bool {
        let whole = self.take(|event| match event {
            Event::Received { slot, .. } => {
                let bytes = slot.filled();
                Some(SIZES.contains(&bytes.len()) && bytes.iter().all(|byte| *byte == bytes[0]))
            }
            _ => None,
        });
        if let Some(whole) = whole {
            assert!(whole, "a message was not whole");
            self.offer(1);
        }
        whole.is_some()
    }

    /// Posts as many messages as go.
    fn talk(&mut self, ep: EpId, count: &mut usize) {
        self.events.retain(|event| !matches!(event, Event::Sent { .. }));
        while self.pool.free() > 64 {
            let message = vec![*count as u8; SIZES[*count % SIZES.len()]];
            if self.domain.post_send(ep, bytes::Bytes::from(message).into()).is_err() {
                return;
            }
            *count += 1;
        }
    }
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < WATCHDOG, "gave up waiting: {what}"); // Watchdog: see there.
    }
}

fn listen_addr(provider: &str) -> Addr {
    let host = match provider {
        "shm" => format!("failures-{}", std::process::id()),
        _ => "127.0.0.1".into(),
    };
    Addr::new(&format!("ofi+{provider}"), &host, Some(0))
}

/// Two connected domains, the address of the first, and the ends.
fn pair(provider: &str) -> Option<(Node, Node, Addr, EpId, EpId)> {
    let (mut server, mut client) = (Node::new(provider)?, Node::new(provider)?);
    let listener = server.domain.listen(&listen_addr(provider)).unwrap();
    client.domain.connect(&listener.addr).unwrap();
    let (mut at_server, mut at_client) = (None, None);
    until("both connect", || {
        server.turn();
        client.turn();
        at_server = at_server.or_else(|| server.accepted());
        at_client = at_client.or_else(|| client.connected());
        at_server.is_some() && at_client.is_some()
    });
    Some((server, client, listener.addr, at_server.unwrap(), at_client.unwrap()))
}

/// What a peer in a process of its own is told: whom to connect to, and whether it talks or listens.
const PEER_OF: &str = "FABRIC_TEST_PEER_OF";
const PEER_TALKS: &str = "FABRIC_TEST_PEER_TALKS";

/// Not a test: what tests of kills start and kill.
#[test]
fn a_peer_in_a_process_of_its_own() {
    let Ok(addr) = std::env::var(PEER_OF) else { return };
    let addr: Addr = addr.parse().unwrap();
    let provider = addr.scheme().trim_start_matches("ofi+").to_owned();
    let talks = std::env::var(PEER_TALKS).is_ok();
    let Some(mut node) = Node::new(&provider) else { return };
    node.offer(32);
    let (ep, mut count) = (node.domain.connect(&addr).unwrap(), 0);
    let mut is_up = false;
    while node.closed().is_none() {
        node.turn();
        is_up |= node.connected().is_some();
        while node.hear() {}
        if talks && is_up {
            node.talk(ep, &mut count);
        }
    }
}

/// Runs this program again; `FABRIC_TEST_LOADER` names a loader and its options, where it takes one
/// to have another version of the libraries.
fn this_program() -> Command {
    let Ok(loader) = std::env::var("FABRIC_TEST_LOADER") else {
        return Command::new(std::env::current_exe().unwrap());
    };
    let mut words = loader.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).arg(std::env::args_os().next().unwrap());
    command
}

fn start_peer(of: &Addr, talks: bool) -> Child {
    let mut command = this_program();
    command.args(["--exact", "a_peer_in_a_process_of_its_own"]);
    command.env(PEER_OF, of.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    if talks {
        command.env(PEER_TALKS, "1");
    }
    command.spawn().unwrap()
}

fn kills() -> usize {
    std::env::var("FABRIC_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(5)
}

/// Kills one peer in traffic, which goes to it or comes from it, and sees it go.
fn kill_one(server: &mut Node, addr: &Addr, talks: bool) {
    let mut peer = start_peer(addr, talks);
    let (mut at_server, mut count, mut heard) = (None, 0, 0);
    let enough = 50 + fastrand::usize(..200);
    until("traffic flows", || {
        server.turn();
        at_server = at_server.or_else(|| server.accepted());
        if let Some(ep) = at_server.filter(|_| !talks) {
            server.talk(ep, &mut count);
        }
        while server.hear() {
            heard += 1;
        }
        heard.max(count) > enough
    });
    peer.kill().unwrap();
    let mut end = None;
    until("the killed peer is reported as gone", || {
        server.turn();
        while server.hear() {}
        end = server.closed();
        end.is_some()
    });
    assert_eq!(end, Some(ErrorKind::Reset));
    peer.wait().unwrap();
    server.events.retain(|event| !matches!(event, Event::Sent { .. }));
}

fn check_alive(server: &mut Node, client: &mut Node, at_client: EpId) {
    client.domain.post_send(at_client, client.slot(&[7; 64]).into()).unwrap();
    until("the other connection still works", || {
        client.turn();
        server.turn();
        server.hear()
    });
}

/// Processor time of this thread.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Checks that waiting for a second costs less than five percent of it.
fn check_idle(node: &mut Node) {
    let (start, before) = (Instant::now(), cpu_time());
    while start.elapsed() < Duration::from_secs(1) {
        node.domain.poll(&mut node.events, 256);
        node.domain.wait(Some(Duration::from_millis(100))).unwrap();
    }
    let used = cpu_time() - before;
    assert!(used < Duration::from_millis(50), "an idle domain used {used:?} of a second");
}

/// Files in /dev/shm of processes that are gone or of this one, beyond so many that are in use.
fn litter() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return Vec::new() };
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let owner = |name: &str| name.strip_prefix("fabric-ofi-")?.split('-').next()?.parse().ok();
    let is_dead = |name: &String| {
        owner(name).is_some_and(|pid: u32| !std::path::Path::new(&format!("/proc/{pid}")).exists())
    };
    entries.flatten().map(name).filter(is_dead).collect()
}

fn killed_peers_cost_nobody_else_anything(provider: &str) {
    let Some((mut server, mut client, addr, _, at_client)) = pair(provider) else { return };
    server.offer(32);
    for round in 0..kills() {
        kill_one(&mut server, &addr, round % 2 == 0);
    }
    check_alive(&mut server, &mut client, at_client);
    check_idle(&mut server);
    assert_eq!(litter(), Vec::<String>::new(), "killed peers left something in /dev/shm");
    let Node { domain, pool, .. } = server;
    drop(domain);
    assert_eq!(pool.free(), 128, "every receive came back, each once");
}

#[test]
fn tcp_peers_that_are_killed_cost_nobody_else_anything() {
    killed_peers_cost_nobody_else_anything("tcp");
}

#[test]
fn shm_peers_that_are_killed_cost_nobody_else_anything() {
    killed_peers_cost_nobody_else_anything("shm");
}

/// Files of a process's endpoints in /dev/shm.
fn regions(pid: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.path());
    let prefix = format!("/dev/shm/fabric-ofi-{pid}-");
    entries.filter(|path| path.to_str().is_some_and(|path| path.starts_with(&prefix))).collect()
}

/// Takes the lock in an endpoint's memory for good; says whether it has one that is known.
fn lock_up(region: &Path) -> bool {
    const VERSION_WITH_LOCK: u8 = 4;
    const LOCK_AT: u64 = 24;
    const TAKEN: i32 = if cfg!(target_arch = "x86_64") { 0 } else { 1 };
    let file = OpenOptions::new().read(true).write(true).open(region).unwrap();
    let mut version = [0];
    file.read_exact_at(&mut version, 0).unwrap();
    let has_lock = version == [VERSION_WITH_LOCK];
    if has_lock {
        file.write_all_at(&TAKEN.to_ne_bytes(), LOCK_AT).unwrap();
    }
    has_lock
}

#[test]
fn locks_that_a_killed_process_held_over_shm_are_given_back() {
    let Some(mut server) = Node::new("shm") else { return };
    let addr = server.domain.listen(&listen_addr("shm")).unwrap().addr;
    server.offer(8);
    let mut peer = start_peer(&addr, false);
    let (mut at_server, mut count) = (None, 0);
    until("traffic flows", || {
        server.turn();
        at_server = at_server.or_else(|| server.accepted());
        at_server.inspect(|ep| server.talk(*ep, &mut count)).is_some() && count > 50
    });
    let pid = Pid::from_child(&peer);
    kill_process(pid, Signal::STOP).unwrap();
    until("it stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", peer.id())).unwrap();
        stat.contains(") T ")
    });
    let locked = regions(peer.id()).iter().filter(|region| lock_up(region)).count();
    println!("{locked} locks were taken");
    peer.kill().unwrap();
    until("the killed peer is reported as gone", || {
        at_server.inspect(|ep| server.talk(*ep, &mut count));
        server.turn();
        server.closed().is_some()
    });
    peer.wait().unwrap();
}

/// Drops the domains of pairs in traffic, in one order and the other.
fn domains_of_one_process_are_dropped_in_any_order(provider: &str) {
    for server_first in [true, false, true, false] {
        let Some((mut server, mut client, _, at_server, at_client)) = pair(provider) else {
            return;
        };
        server.offer(8);
        client.offer(8);
        let (mut to_client, mut to_server) = (0, 0);
        for _ in 0..20 {
            server.talk(at_server, &mut to_client);
            client.talk(at_client, &mut to_server);
            server.turn();
            client.turn();
        }
        let (first, mut second) = if server_first { (server, client) } else { (client, server) };
        drop(first);
        until("the other end hears of it", || {
            second.turn();
            while second.hear() {}
            second.closed() == Some(ErrorKind::Reset)
        });
    }
}

#[test]
fn tcp_domains_of_one_process_are_dropped_in_any_order() {
    domains_of_one_process_are_dropped_in_any_order("tcp");
}

#[test]
fn shm_domains_of_one_process_are_dropped_in_any_order() {
    domains_of_one_process_are_dropped_in_any_order("shm");
}

#[test]
fn shm_leaves_nothing_when_its_domains_are_gone() {
    let Some((server, client, ..)) = pair("shm") else { return };
    let count = || {
        let mine = format!("fabric-ofi-{}-", std::process::id());
        let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&mine)).count()
    };
    assert!(count() >= 2);
    drop((server, client));
    // Other tests of this process may have endpoints meanwhile.
    until("its files are gone", || count() == 0);
}

#[test]
fn a_provider_that_does_not_exist_is_named_with_those_that_do() {
    if open("tcp").is_none() {
        return;
    }
    let options = LibfabricOptions { provider: Some("nosuch".into()), ..Default::default() };
    let error = LibfabricFabric::new(options).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Host);
    let text = error.to_string();
    assert!(text.contains("no provider nosuch") && text.contains("tcp"), "{text}");
    let options = LibfabricOptions {
        provider: Some("tcp".into()),
        domain: Some("nosuch0".into()),
        ..Default::default()
    };
    let text = LibfabricFabric::new(options).open().unwrap_err().to_string();
    assert!(text.contains("tcp has no domain nosuch0"), "{text}");
}
