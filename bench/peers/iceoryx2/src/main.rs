//! iceoryx2 on shared memory, both sides spinning, since it has no call that sleeps on messages.
//!
//! Transports: `shm` copies every message in and out; `shm-loan` writes it once, in place, and the
//! other side looks at it there.

use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::thread;
use std::time::{Duration, Instant};

use common::{Args, Meter, Times, fail, ready, wait_end};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::PortFactory as _;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;

type Service = ipc::Service;
type Outcome<T> = Result<T, Box<dyn Error>>;
type Topic = PortFactory<Service, [u8], ()>;
type Sender = Publisher<Service, [u8], ()>;
type Receiver = Subscriber<Service, [u8], ()>;

/// Messages between publisher and subscriber; fewer where they are large.
const QUEUE: usize = 256;
const LARGE_QUEUE: usize = 8;
const LARGE_BYTES: usize = 100_000;

/// How often a side looks whether the other one is there.
const POLL: Duration = Duration::from_millis(1);

/// Long enough for the other side to have seen this one.
const SETTLE_TIME: Duration = Duration::from_millis(50);

fn main() {
    let args = Args::read();
    set_log_level(LogLevel::Error);
    if let Err(error) = play(&args) {
        fail(error);
    }
}

fn play(args: &Args) -> Outcome<()> {
    let node = NodeBuilder::new().create::<Service>()?;
    match args.role.as_str() {
        "lat-server" => serve_trips(args, &node),
        "lat-client" => measure_trips(args, &node),
        "bw-server" => receive_all(args, &node),
        "bw-client" => send_all(args, &node),
        "fanout-server" => publish(args, &node),
        "fanout-client" => subscribe(args, &node),
        other => fail(format!("no such role: {other}")),
    }
}

fn topic(args: &Args, node: &Node<Service>, name: &str) -> Outcome<Topic> {
    let name = ServiceName::new(&format!("bench-{}-{name}", args.port))?;
    let builder = node.service_builder(&name).publish_subscribe::<[u8]>();
    let builder = builder.max_publishers(2).max_subscribers(args.peers + 2).max_nodes(8);
    let queue = if args.size > LARGE_BYTES { LARGE_QUEUE } else { QUEUE };
    let builder = builder.history_size(0).subscriber_max_buffer_size(queue);
    Ok(builder.enable_safe_overflow(false).open_or_create()?)
}

fn sender(args: &Args, topic: &Topic) -> Outcome<Sender> {
    let builder = topic.publisher_builder().initial_max_slice_len(args.size);
    Ok(builder.backpressure_strategy(BackpressureStrategy::RetryUntilDelivered).create()?)
}

/// The bytes of a message on one side.
struct Body {
    ours: Vec<u8>,
    copies: bool,
}

impl Body {
    fn new(args: &Args) -> Self {
        Self { ours: vec![b'x'; args.size], copies: args.transport == "shm" }
    }

    /// Either way the bytes are written once into the shared memory.
    fn send(&self, sender: &Sender) -> Outcome<()> {
        sender.loan_slice_uninit(self.ours.len())?.write_from_slice(&self.ours).send()?;
        Ok(())
    }

    /// Takes a message if there is one.
    fn take(&mut self, receiver: &Receiver) -> Outcome<bool> {
        let Some(message) = receiver.receive()? else { return Ok(false) };
        if self.copies {
            self.ours.copy_from_slice(message.payload());
        } else {
            black_box(message.payload().first());
        }
        Ok(true)
    }

    fn receive(&mut self, receiver: &Receiver) -> Outcome<()> {
        while !self.take(receiver)? {
            spin_loop();
        }
        Ok(())
    }
}

fn serve_trips(args: &Args, node: &Node<Service>) -> Outcome<()> {
    let (there, back) = (topic(args, node, "there")?, topic(args, node, "back")?);
    let receiver = there.subscriber_builder().create()?;
    let sender = sender(args, &back)?;
    ready();
    let mut body = Body::new(args);
    for _ in 0..args.total() {
        body.receive(&receiver)?;
        body.send(&sender)?;
    }
    println!("{{}}");
    wait_end();
    Ok(())
}

fn measure_trips(args: &Args, node: &Node<Service>) -> Outcome<()> {
    let (there, back) = (topic(args, node, "there")?, topic(args, node, "back")?);
    let receiver = back.subscriber_builder().create()?;
    let sender = sender(args, &there)?;
    wait_for(&there, 1);
    let mut body = Body::new(args);
    let mut times = Times::new(args);
    for _ in 0..args.total() {
        let asked = Instant::now();
        body.send(&sender)?;
        body.receive(&receiver)?;
        times.add(asked);
    }
    times.report();
    Ok(())
}

fn wait_for(topic: &Topic, subscribers: usize) {
    while topic.dynamic_config().number_of_subscribers() < subscribers {
        thread::sleep(POLL);
    }
    thread::sleep(SETTLE_TIME);
}

fn receive_all(args: &Args, node: &Node<Service>) -> Outcome<()> {
    let topic = topic(args, node, "stream")?;
    let receiver = topic.subscriber_builder().create()?;
    ready();
    let mut body = Body::new(args);
    let mut meter = Meter::begin();
    for done in 0..args.total() {
        if done == args.warm() {
            meter = Meter::begin();
        }
        body.receive(&receiver)?;
    }
    meter.stream(args.count);
    Ok(())
}

fn send_all(args: &Args, node: &Node<Service>) -> Outcome<()> {
    let topic = topic(args, node, "stream")?;
    let sender = sender(args, &topic)?;
    wait_for(&topic, 1);
    stream(args, &sender)?.stream(args.count);
    wait_end();
    Ok(())
}

fn stream(args: &Args, sender: &Sender) -> Outcome<Meter> {
    let body = Body::new(args);
    let mut meter = Meter::begin();
    for done in 0..args.total() {
        if done == args.warm() {
            meter = Meter::begin();
        }
        body.send(sender)?;
    }
    Ok(meter)
}

fn publish(args: &Args, node: &Node<Service>) -> Outcome<()> {
    let topic = topic(args, node, "fanout")?;
    let sender = sender(args, &topic)?;
    ready();
    wait_for(&topic, args.peers);
    stream(args, &sender)?.stream(args.count * args.peers as u64);
    wait_end();
    Ok(())
}

fn subscribe(args: &Args, node: &Node<Service>) -> Outcome<()> {
    let topic = topic(args, node, "fanout")?;
    let seats = (0..args.peers).map(|_| topic.subscriber_builder().create());
    let seats = seats.collect::<Result<Vec<_>, _>>()?;
    let (warm, total) = (args.warm() * args.peers as u64, args.total() * args.peers as u64);
    let mut body = Body::new(args);
    let (mut came, mut meter) = (0, Meter::begin());
    while came < total {
        for seat in &seats {
            while body.take(seat)? {
                came += 1;
                if came == warm {
                    meter = Meter::begin();
                }
            }
        }
    }
    meter.fanout(came, total, total - warm);
    Ok(())
}
