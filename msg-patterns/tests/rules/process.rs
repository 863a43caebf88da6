//! Sockets, other processes and signals.
//!
//! A test that needs a process of its own runs this program again, with one test chosen and the
//! addresses to use in the environment.

#![cfg(target_os = "linux")]

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fabric_sim::{SimFabric, SimNet};
use msg_patterns::{Context, ErrorKind, Pull, Push, Rep, Req};
use rustix::process::{Pid, Signal, getpid, kill_process};
use rustix::thread::gettid;

use crate::sockets::Plug;
use crate::support::{LONG, NEVER, Net, wait_until};

/// Holds the addresses for a test that runs in a process of its own.
const ROLE: &str = "MSG_PATTERNS_TEST_ADDRESSES";

/// The addresses, in the process of its own.
fn role() -> Option<Vec<String>> {
    let addrs = std::env::var(ROLE).ok()?;
    Some(addrs.split(' ').map(str::to_owned).collect())
}

/// Runs `test` of this file alone in a process of its own, on its main thread.
fn run_alone(test: &str, addrs: &[&str]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&format!("process::{test}"), "--exact", "--test-threads=1", "--nocapture"])
        .env(ROLE, addrs.join(" "))
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// Messages from a thread of their own, in order, until it is told to stop.
fn traffic(context: &Context, addr: &str, over: &Arc<AtomicBool>) -> std::thread::JoinHandle<u64> {
    let push = Push::new(context).unwrap();
    push.connect(addr).unwrap();
    let over = over.clone();
    std::thread::spawn(move || {
        let mut count = 0_u64;
        while !over.load(Ordering::Relaxed) {
            push.send(&count.to_le_bytes()).unwrap();
            count += 1;
        }
        push.close();
        count
    })
}

/// The sockets and the like that a program finds open which we start.
fn inherited() -> Vec<String> {
    let list = Command::new("ls").args(["-l", "/proc/self/fd"]).stdin(Stdio::null()).output();
    let list = list.unwrap();
    assert!(list.status.success());
    let text = String::from_utf8(list.stdout).unwrap();
    let targets = text.lines().filter_map(|line| Some(line.split_once(" -> ")?.1.to_owned()));
    targets
        .filter(|target| ["socket:", "anon_inode:"].iter().any(|s| target.starts_with(s)))
        .collect()
}

#[test]
fn life_30_a_child_holds_nothing_of_its_parents_sockets() {
    // Whoever started this program may have left it something of its own.
    let before = inherited();
    let net = Net::tcp();
    let pull = Pull::new(net.context()).unwrap();
    let addr = pull.bind(net.any()).unwrap().to_string();
    let over = Arc::new(AtomicBool::new(false));
    let sender = traffic(net.context(), &addr, &over);
    let mut received = 0_u64;
    for _ in 0..10 {
        // Children are born in the middle of it, while connections come and go.
        let visitor = Push::new(net.context()).unwrap();
        visitor.connect(&addr).unwrap();
        assert_eq!(inherited(), before);
        visitor.close();
        for _ in 0..100 {
            assert_eq!(pull.recv_timeout(LONG).unwrap().first()[..], received.to_le_bytes());
            received += 1;
        }
    }
    over.store(true, Ordering::Relaxed);
    let mut take = || {
        if let Ok(message) = pull.recv_timeout(NEVER / 10) {
            assert_eq!(message.first()[..], received.to_le_bytes());
            received += 1;
        }
        received
    };
    while !sender.is_finished() {
        take();
    }
    let sent = sender.join().unwrap();
    wait_until("all of it", || take() == sent);
}

#[test]
fn life_30_fork_child_isolated() {
    if let Some(addrs) = role() {
        return ask_from_a_child(&addrs[0]);
    }
    let net = Net::tcp();
    let rep = Rep::new(net.context()).unwrap();
    let addr = rep.bind(net.any()).unwrap().to_string();
    let server = std::thread::spawn(move || {
        while let Ok(request) = rep.recv() {
            rep.send(request).unwrap();
        }
    });
    let own = Req::new(net.context()).unwrap();
    own.connect(&addr).unwrap();
    let mut children = [(); 3].map(|()| run_alone("life_30_fork_child_isolated", &[&addr]));
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        let reply = own.request("of the parent", LONG).unwrap();
        assert_eq!(reply.first(), "of the parent");
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    net.context().shutdown();
    server.join().unwrap();
}

/// A context of its own, in a process of its own.
fn ask_from_a_child(addr: &str) {
    let context = Context::new();
    let req = Req::new(&context).unwrap();
    req.connect(addr).unwrap();
    for _ in 0..2 {
        let text = format!("of child {:?}", getpid());
        assert_eq!(req.request(&text, LONG).unwrap().first(), &text);
    }
    req.close();
    context.terminate();
}

#[test]
fn life_31_eintr_is_transparent() {
    if let Some(addrs) = role() {
        return work_under_signals(&addrs[0], &addrs[1]);
    }
    let net = Net::tcp();
    let push = Push::new(net.context()).unwrap();
    let inbound = push.bind(net.any()).unwrap().to_string();
    let outbound = net.nobody();
    let mut child = run_alone("life_31_eintr_is_transparent", &[&inbound, &outbound]);
    // Once it is connected, it handles signals. Its name says which of its threads to interrupt.
    push.wait_up(1);
    let name = String::from_utf8(push.peers()[0].identity.to_vec()).unwrap();
    let thread = Pid::from_raw(name.parse().unwrap()).unwrap();
    let (signals, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let many_more = || {
        let before = signals.load(Ordering::Relaxed);
        wait_until("many signals", || signals.load(Ordering::Relaxed) > before + 50);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Until it has ended.
            while !over.load(Ordering::Relaxed) && kill_process(thread, Signal::USR1).is_ok() {
                signals.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        many_more();
        push.send("received in spite of them").unwrap();
        // It leaves before it blocks in a send.
        wait_until("it left", || push.peers().is_empty());
        many_more();
        let pull = Pull::new(net.context()).unwrap();
        pull.bind(&outbound).unwrap();
        let sent = pull.recv_timeout(LONG);
        over.store(true, Ordering::Relaxed);
        assert_eq!(sent.unwrap().first(), "sent in spite of them");
    });
    assert!(child.wait().unwrap().success());
}

/// Blocks in each kind of call while signals come in.
fn work_under_signals(inbound: &str, outbound: &str) {
    let seen = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, seen.clone()).unwrap();
    let context = Context::new().with_fabric(SimFabric::new(SimNet::new()));
    let thread = gettid().as_raw_pid().to_string();
    let pull = Pull::builder().identity(thread).build(&context).unwrap();
    pull.connect(inbound).unwrap();
    assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "received in spite of them");
    assert!(seen.swap(false, Ordering::SeqCst), "no signal came");

    // A time limit is neither cut short nor begun anew; also when it sleeps in two fabrics.
    pull.bind("sim://both:1").unwrap();
    while !seen.swap(false, Ordering::SeqCst) {
        let start = Instant::now();
        assert_eq!(pull.recv_timeout(NEVER).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(start.elapsed() >= NEVER);
    }
    pull.close();

    seen.store(false, Ordering::SeqCst);
    let push = Push::builder().immediate(true).build(&context).unwrap();
    push.connect(outbound).unwrap();
    push.send_timeout("sent in spite of them", LONG).unwrap();
    assert!(seen.load(Ordering::SeqCst), "no signal came");
    push.close();
    context.terminate();
}
