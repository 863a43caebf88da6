//! Two sockets in a loop of one's own over plain epoll.
//!
//! Run with `cargo run -p msg-patterns --example epoll`.

use std::error::Error;
use std::thread;
use std::time::Duration;

use msg_patterns::{Context, Pull, Push, Receives, Rep, Req};
use rustix::event::epoll;

const WORK: u64 = 0;
const REQUESTS: u64 = 1;
const TASKS: usize = 5;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new();
    let (pull, rep) = (Pull::new(&context)?, Rep::new(&context)?);
    let work_at = pull.bind("tcp://127.0.0.1:0")?.to_string();
    let asked_at = rep.bind("tcp://127.0.0.1:0")?.to_string();
    let client = thread::spawn({
        let context = context.clone();
        move || use_both(&context, &work_at, &asked_at).expect("the other side serves")
    });

    // Readable as long as there is something to receive: nothing has to be drained.
    let (work, requests) = (pull.readable()?, rep.readable()?);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (readiness, data) in [(&work, WORK), (&requests, REQUESTS)] {
        let data = epoll::EventData::new_u64(data);
        epoll::add(&epoll, readiness, data, epoll::EventFlags::IN)?;
    }

    let mut done = 0;
    let mut asked = false;
    while done < TASKS || !asked {
        let mut events = Vec::with_capacity(8);
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in events {
            match event.data.u64() {
                WORK => {
                    println!("{:?}", pull.try_recv()?);
                    done += 1;
                }
                _ => {
                    let request = rep.try_recv()?;
                    rep.send(request)?;
                    asked = true;
                }
            }
        }
    }
    println!("{:?} was echoed", client.join().expect("the client does not panic").first());
    rep.close();
    Ok(())
}

fn use_both(
    context: &Context,
    work_at: &str,
    asked_at: &str,
) -> Result<msg_patterns::Message, Box<dyn Error>> {
    let push = Push::new(context)?;
    push.connect(work_at)?;
    for task in 0..TASKS {
        push.send(format!("task {task}"))?;
    }
    push.close();
    let req = Req::new(context)?;
    req.connect(asked_at)?;
    Ok(req.request("ping", Duration::from_secs(10))?)
}
