//! Runs on sockets.

pub(crate) mod bw;
pub(crate) mod fanout;
pub(crate) mod idle;
pub(crate) mod lat;

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

/// Every message must have the size that was agreed on.
fn check(message: &Message, task: &Task) -> Result<(), Error> {
    let (parts, len) = (message.parts().len(), message.len());
    if (parts, len) == (1, task.size) {
        return Ok(());
    }
    Err(Error::Wrong(format!("a message has {len} bytes in {parts} parts, not {}", task.size)))
}
