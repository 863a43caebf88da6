//! One publisher, two subscribers, each with its own topic.
//!
//! Run with `cargo run -p msg-patterns --example pubsub`.

use std::time::Duration;

use msg_patterns::{Context, Error, Message, Pub, Sub};

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn main() -> Result<(), Error> {
    let context = Context::new();
    let publisher = Pub::new(&context)?;
    let addr = publisher.bind("tcp://127.0.0.1:0")?.to_string();

    let berlin = subscriber(&context, &addr, "weather.berlin")?;
    let everywhere = subscriber(&context, &addr, "weather.")?;
    // Who comes later misses what was published before.
    publisher.wait_matching("weather.berlin", 2, PATIENCE)?;

    publisher.send(Message::from_parts(["weather.oslo", "-3 °C"]))?;
    publisher.send(Message::from_parts(["weather.berlin", "7 °C"]))?;

    for (name, sub) in
        [("everywhere", &everywhere), ("everywhere", &everywhere), ("berlin", &berlin)]
    {
        println!("{name}: {:?}", sub.recv_timeout(PATIENCE)?);
    }
    Ok(())
}

fn subscriber(context: &Context, addr: &str, topic: &str) -> Result<Sub, Error> {
    let sub = Sub::new(context)?;
    sub.connect(addr)?;
    sub.subscribe(topic)?;
    Ok(sub)
}
