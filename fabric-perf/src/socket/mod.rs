//! Runs on sockets.

pub(crate) mod bw;
pub(crate) mod fanout;
pub(crate) mod idle;
pub(crate) mod lat;
#[cfg_attr(not(feature = "tokio"), path = "no_tasks.rs")]
pub(crate) mod tasks;

use std::time::Duration;

use msg_patterns::{Builder, Bytes, Linger, Message, Socket};

use crate::Error;
use crate::plan::{Settings, Task, Test};
use crate::serve::Part;

/// Long enough never to sleep.
const ALWAYS: Duration = Duration::from_secs(3600);

/// How long closing waits for what was accepted.
const LINGER: Duration = Duration::from_secs(10);

/// Larger than anything worth measuring.
const MESSAGE_BYTES_MAX: usize = 1 << 40;

/// The serving side of a run.
///
/// # Errors
/// What went wrong.
pub(crate) fn serve(part: &Part) -> Result<(), Error> {
    match part.task.test {
        Test::Lat => lat::serve(part),
        Test::Bw => bw::serve(part),
        Test::Fanout => fanout::serve(part),
        Test::Idle => idle::serve(part),
    }
}

/// A builder with the settings of a run.
fn tuned<S: Socket>(builder: Builder<S>, settings: &Settings) -> Builder<S> {
    let builder = builder.send_hwm(settings.hwm).recv_hwm(settings.hwm);
    let builder = builder.message_bytes_max(MESSAGE_BYTES_MAX).linger(Linger::For(LINGER));
    builder.busy_poll(if settings.busy_poll { ALWAYS } else { Duration::ZERO })
}

/// What is sent.
fn body(task: &Task) -> Bytes {
    Bytes::from(vec![b'x'; task.size])
}

/// Messages that are sent or taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Batch {
    /// Messages before.
    done: u64,
    len: usize,
}

/// All messages of a run in batches, one of which begins where the clock does.
fn batches(task: &Task) -> impl Iterator<Item = Batch> {
    let (size, warm, total) = (task.settings.batch as u64, task.warm, task.total());
    let mut done = 0;
    std::iter::from_fn(move || {
        let end = if done < warm { warm } else { total };
        let len = size.min(end - done);
        let batch = Batch { done, len: len as usize };
        done += len;
        (len > 0).then_some(batch)
    })
}

/// Takes a batch from a socket that has `one` and `many`.
fn take(
    batch: Batch,
    task: &Task,
    buffer: &mut Vec<Message>,
    one: impl Fn() -> Result<Message, msg_patterns::Error>,
    many: impl Fn(&mut Vec<Message>, usize) -> Result<usize, msg_patterns::Error>,
) -> Result<(), Error> {
    if task.settings.batch == 1 {
        return check(&one()?, task);
    }
    let mut left = batch.len;
    while left > 0 {
        left -= many(buffer, left)?;
        buffer.drain(..).try_for_each(|message| check(&message, task))?;
    }
    Ok(())
}

/// Every message must have the size that was agreed on.
fn check(message: &Message, task: &Task) -> Result<(), Error> {
    let (parts, len) = (message.parts().len(), message.len());
    if (parts, len) == (1, task.size) {
        return Ok(());
    }
    Err(Error::Wrong(format!("a message has {len} bytes in {parts} parts, not {}", task.size)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::plan::Amount;

    fn lens(count: u64, batch: usize) -> Vec<usize> {
        let settings = Settings { batch, ..Settings::default() };
        let (sizes, peers, amount) = (vec![1], vec![1], Amount::Count(count));
        let plan = Plan { test: Test::Bw, sizes, peers, amount, settings };
        batches(&Task::new(&plan, 1, 1, count)).map(|batch| batch.len).collect()
    }

    #[test]
    fn a_batch_begins_where_the_clock_does() {
        // 2 that warm up, then 10.
        assert_eq!(lens(10, 4), [2, 4, 4, 2]);
        assert_eq!(lens(10, 1), [1; 12]);
        assert_eq!(lens(10, 1000), [2, 10]);
    }
}
