//! One publisher with three topics, three subscribers to two of them each.

use super::crew::Crew;
use super::data::{Data, Expected};
use super::player::Player;
use super::table::Row;
use crate::exit::Failure;

const TOPICS: [&str; 3] = ["lines/a", "lines/b", "lines/c"];

/// Plays it.
///
/// # Errors
/// Which process failed.
pub(crate) fn play(crew: &Crew, data: &Data) -> Result<Vec<Row>, Failure> {
    let mut publisher = start_publisher(crew, data)?;
    let addr = publisher.addr()?;
    let parts = (0..TOPICS.len()).map(|first| [first, (first + 1) % TOPICS.len()]);
    let mut subscribers = Vec::new();
    for topics in parts {
        let expected = Expected::of(lines_of(data, topics));
        subscribers.push((start_subscriber(crew, &addr, topics, &expected)?, topics, expected));
    }
    let all = Expected::of(data.lines().iter().cloned());
    let sent = publisher.row("PUB/SUB", "publishes 3 topics")?;
    let mut rows = vec![sent.check(&all)];
    for (mut subscriber, topics, expected) in subscribers {
        let did = format!("takes {} and {}", TOPICS[topics[0]], TOPICS[topics[1]]);
        let row = subscriber.row("PUB/SUB", &did)?;
        rows.push(row.check(&expected));
    }
    Ok(rows)
}

/// Each line is published with the next topic; two subscribers take each.
fn start_publisher<'a>(crew: &'a Crew, data: &Data) -> Result<Player<'a>, Failure> {
    let addr = &crew.addr;
    let topics = TOPICS.map(|topic| format!("--topic {topic}")).join(" ");
    let args =
        format!("pub {addr} {topics} --wait-subscribers 2 --when-full block --checksum --lines");
    Player::start(crew, "publisher", &args, Some(&data.path()))
}

fn start_subscriber<'a>(
    crew: &'a Crew,
    addr: &str,
    topics: [usize; 2],
    expected: &Expected,
) -> Result<Player<'a>, Failure> {
    let args = format!(
        "sub {addr} {} {} --count {} --body --discard --checksum",
        TOPICS[topics[0]], TOPICS[topics[1]], expected.messages
    );
    Player::start(crew, &format!("subscriber {}", topics[0] + 1), &args, None)
}

fn lines_of(data: &Data, topics: [usize; 2]) -> impl Iterator<Item = msg_patterns::Bytes> {
    let lines = data.lines().iter().enumerate();
    lines.filter(move |(at, _)| topics.contains(&(at % TOPICS.len()))).map(|(_, line)| line.clone())
}
