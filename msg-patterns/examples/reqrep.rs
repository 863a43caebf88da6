//! One server and several requests at once, each with its own reply.
//!
//! Run with `cargo run -p msg-patterns --example reqrep`.

use std::thread;
use std::time::Duration;

use msg_patterns::{Context, Error, Rep, Req};

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn main() -> Result<(), Error> {
    let context = Context::new();
    let rep = Rep::new(&context)?;
    let req = Req::builder().retry(true).build(&context)?;
    req.connect(&rep.bind("tcp://127.0.0.1:0")?.to_string())?;

    let server = thread::spawn(move || serve(&rep));
    let askers = ["Ada", "Grace", "Emmy"].map(|name| {
        let req = req.clone();
        thread::spawn(move || req.request(name, PATIENCE))
    });
    for asker in askers {
        println!("{:?}", asker.join().expect("an asker does not panic")?);
    }
    context.shutdown();
    server.join().expect("the server does not panic");
    Ok(())
}

/// Answers until the context shuts down.
fn serve(rep: &Rep) {
    while let Ok(request) = rep.recv() {
        let name = String::from_utf8_lossy(request.first());
        rep.send(format!("hello {name}")).expect("the context lives while somebody asks");
    }
}
