//! One pusher, three workers, one sink.

use super::crew::Crew;
use super::data::{Data, Expected};
use super::player::Player;
use super::table::Row;
use crate::exit::Failure;

const WORKERS: usize = 3;

/// Plays it. Which worker gets which line is open, so the sink's checksum is one without order.
///
/// # Errors
/// Which process failed.
pub(crate) fn play(crew: &Crew, data: &Data) -> Result<Vec<Row>, Failure> {
    let all = Expected::of(data.lines().iter().cloned());
    let mut sink = start_sink(crew, all.messages)?;
    let mut pusher = start_pusher(crew, data)?;
    let mut workers = start_workers(crew, &pusher.addr()?, &sink.addr()?)?;
    let pushed = pusher.row("PUSH/PULL", "pushes each line")?;
    let mut rows = vec![pushed.check(&all)];
    let mut worked = 0;
    for worker in &mut workers {
        let row = worker.row("PUSH/PULL", "names itself, pushes on")?;
        worked += row.messages();
        rows.push(row.and(true, "ended well"));
    }
    let pulled = sink.row("PUSH/PULL", "takes what workers did")?;
    rows.push(pulled.check(&all).and(worked == all.messages, "each line had one worker"));
    Ok(rows)
}

fn start_sink(crew: &Crew, count: u64) -> Result<Player<'_>, Failure> {
    let addr = &crew.addr;
    let args = format!("pull {addr} --count {count} --body --discard --checksum-sum");
    Player::start(crew, "sink", &args, None)
}

fn start_pusher<'a>(crew: &'a Crew, data: &Data) -> Result<Player<'a>, Failure> {
    let addr = &crew.addr;
    let args = format!("push --bind {addr} --ack --wait-peers {WORKERS} --checksum-sum --lines");
    Player::start(crew, "pusher", &args, Some(&data.path()))
}

fn start_workers<'a>(crew: &'a Crew, source: &str, sink: &str) -> Result<Vec<Player<'a>>, Failure> {
    let start = |number| {
        let args = format!("worker worker-{number} {source} {sink}");
        Player::start(crew, &format!("worker {number}"), &args, None)
    };
    (1..=WORKERS).map(start).collect()
}
