//! Round trips.

use std::io;
use std::time::Instant;

use common::{Args, Times, ready};

use crate::socket::{accept, connect, listen, read_exact, write_all};

/// Sends and waits for the same bytes, again and again.
pub fn measure(args: &Args) -> io::Result<()> {
    let stream = connect(args)?;
    let (body, mut reply) = (vec![b'x'; args.size], vec![0; args.size]);
    let mut times = Times::new(args);
    for _ in 0..args.total() {
        let asked = Instant::now();
        write_all(&stream, &body)?;
        read_exact(&stream, &mut reply)?;
        times.add(asked);
    }
    times.report();
    Ok(())
}

/// Sends back what comes.
pub fn serve(args: &Args) -> io::Result<()> {
    let listener = listen(args)?;
    ready();
    let stream = accept(&listener, args)?;
    let mut body = vec![0; args.size];
    for _ in 0..args.total() {
        read_exact(&stream, &mut body)?;
        write_all(&stream, &body)?;
    }
    println!("{{}}");
    Ok(())
}
