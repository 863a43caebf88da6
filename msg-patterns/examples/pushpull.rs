//! One pusher shares work out between two workers, and gets it back if one leaves.
//!
//! Run with `cargo run -p msg-patterns --example pushpull`.

use std::thread;

use msg_patterns::{Context, Error, Pull, Push};

pub(crate) fn main() -> Result<(), Error> {
    let context = Context::new();
    let push = Push::builder().acknowledge(true).build(&context)?;

    let mut workers = Vec::new();
    for name in ["first", "second"] {
        let pull = Pull::new(&context)?;
        push.connect(&pull.bind("tcp://127.0.0.1:0")?.to_string())?;
        workers.push(thread::spawn(move || work(name, &pull)));
    }
    for task in 0..10 {
        push.send(format!("task {task}"))?;
    }
    // Waits until every task was processed.
    push.close();

    context.shutdown();
    for worker in workers {
        let done = worker.join().expect("a worker does not panic");
        println!("{done} tasks done");
    }
    Ok(())
}

/// Works until the context shuts down. A task is done when the next one is asked for.
fn work(name: &str, pull: &Pull) -> usize {
    let tasks = std::iter::from_fn(|| pull.recv().ok());
    tasks.inspect(|task| println!("{name}: {task:?}")).count()
}
