//! Plain TCP sockets, as fast as they go: the limit that everything else is compared with.
//!
//! Transports: `tcp` sleeps and makes one call a message; `tcp-busy` never sleeps; `tcp-batch`
//! gathers frames of a length and bytes into 64-KiB writes and counts them in place.

mod frames;
mod silent;
mod socket;
mod spread;
mod stream;
mod trips;

use common::{Args, fail};

fn main() {
    let args = Args::read();
    let outcome = match args.role.as_str() {
        "lat-server" => trips::serve(&args),
        "lat-client" => trips::measure(&args),
        "bw-server" => stream::receive(&args),
        "bw-client" => stream::send(&args),
        "fanout-server" => spread::publish(&args),
        "fanout-client" => spread::subscribe(&args),
        "idle-server" => silent::serve(&args),
        "idle-client" => silent::connect_all(&args),
        other => fail(format!("no such role: {other}")),
    };
    if let Err(error) = outcome {
        fail(error);
    }
}
