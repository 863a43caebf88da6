//! A forwarder between publishers and subscribers, who need to know of nobody but it. What passes can
//! be listened to, and the forwarder paused.
//!
//! Run with `cargo run -p msg-patterns --example forwarder`.

use std::error::Error;
use std::thread;
use std::time::Duration;

use msg_patterns::{Context, Message, OnFull, Proxy, Pub, Sub, XPub, XSub};

const LONG: Duration = Duration::from_secs(10);

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new();
    // Publishers in front, subscribers behind. Slow subscribers hold the publishers up.
    let front = XSub::new(&context)?;
    let back = XPub::builder().on_full(OnFull::Block).build(&context)?;
    let publishers_at = front.bind("tcp://127.0.0.1:0")?.to_string();
    let subscribers_at = back.bind("tcp://127.0.0.1:0")?.to_string();
    // A copy of all that passes, for whoever wants to look.
    let tap = Pub::builder().history(100).build(&context)?;
    let tapped_at = tap.bind("tcp://127.0.0.1:0")?.to_string();

    let mut proxy = Proxy::forwarder(&front, &back).capture(&tap);
    let control = proxy.control();
    let running = thread::spawn(move || proxy.run());

    let sub = Sub::new(&context)?;
    sub.connect(&subscribers_at)?;
    sub.subscribe("weather.")?;
    let publishers = [Pub::new(&context)?, Pub::new(&context)?];
    for (publisher, city) in publishers.iter().zip(["weather.berlin", "weather.oslo"]) {
        publisher.connect(&publishers_at)?;
        // The subscription has come all the way up.
        publisher.wait_matching(city, 1, LONG)?;
        publisher.send(Message::from_parts([city, "7 °C"]))?;
        println!("{:?}", sub.recv_timeout(LONG)?);
    }

    // Nothing passes now, and nothing is lost.
    control.pause();
    publishers[0].send(Message::from_parts(["weather.berlin", "8 °C"]))?;
    control.resume();
    println!("{:?}", sub.recv_timeout(LONG)?);

    let spy = Sub::new(&context)?;
    spy.connect(&tapped_at)?;
    spy.subscribe("")?;
    for _ in 0..4 {
        println!("passed: {:?}", spy.recv_timeout(LONG)?);
    }
    control.stop();
    let stats = running.join().expect("the proxy does not panic")?;
    println!("{} messages down, {} up", stats.to_back.messages, stats.to_front.messages);
    Ok(())
}
