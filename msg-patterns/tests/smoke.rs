//! The shortest way through each pattern.

use std::time::Duration;

use msg_patterns::{Context, Message, Pub, Pull, Push, Rep, Req, Sub};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_pushed_message_is_pulled() {
    let context = Context::new();
    let pull = Pull::new(&context).unwrap();
    let addr = pull.bind("tcp://127.0.0.1:0").unwrap().to_string();
    let push = Push::new(&context).unwrap();
    push.connect(&addr).unwrap();
    for i in 0..10_000_u32 {
        push.send(&i.to_le_bytes()).unwrap();
        if i % 3 == 0 {
            for k in (i.saturating_sub(2))..=i {
                let _ = k;
            }
        }
        if i >= 500 {
            let got = pull.recv_timeout(LONG).unwrap();
            assert_eq!(got.first()[..], (i - 500).to_le_bytes());
        }
    }
    push.close();
}

#[test]
fn a_published_message_reaches_its_subscriber() {
    let context = Context::new();
    let publisher = Pub::new(&context).unwrap();
    let addr = publisher.bind("tcp://127.0.0.1:0").unwrap().to_string();
    let sub = Sub::new(&context).unwrap();
    sub.connect(&addr).unwrap();
    sub.subscribe("a").unwrap();
    publisher.wait_matching("a", 1, LONG).unwrap();
    publisher.send("b no").unwrap();
    publisher.send(Message::from_parts(["a", "yes"])).unwrap();
    assert_eq!(sub.recv_timeout(LONG).unwrap().parts(), ["a", "yes"]);
}

#[test]
fn a_request_gets_its_reply() {
    let context = Context::new();
    let rep = Rep::new(&context).unwrap();
    let addr = rep.bind("tcp://127.0.0.1:0").unwrap().to_string();
    let server = std::thread::spawn(move || {
        for _ in 0..100 {
            let request = rep.recv_timeout(LONG).unwrap();
            rep.send(request).unwrap();
        }
        rep.close();
    });
    let req = Req::new(&context).unwrap();
    req.connect(&addr).unwrap();
    for i in 0..100 {
        let text = format!("request {i}");
        assert_eq!(req.request(&text, LONG).unwrap().first(), &text);
    }
    server.join().unwrap();
}

#[test]
fn a_large_message_arrives_whole() {
    let context = Context::new();
    let pull = Pull::new(&context).unwrap();
    let addr = pull.bind("tcp://127.0.0.1:0").unwrap().to_string();
    let push = Push::new(&context).unwrap();
    push.connect(&addr).unwrap();
    let large: Vec<u8> = (0..5_000_000_u32).map(|i| (i % 251) as u8).collect();
    push.send(Message::from_parts([large.clone(), b"small".to_vec()])).unwrap();
    push.send("after").unwrap();
    let got = pull.recv_timeout(LONG).unwrap();
    assert!(got.parts()[0] == large && got.parts()[1] == "small");
    assert_eq!(pull.recv_timeout(LONG).unwrap().first(), "after");
}
