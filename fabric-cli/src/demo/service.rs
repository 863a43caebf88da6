//! One server, two clients.

use super::crew::Crew;
use super::data::{Data, Expected};
use super::player::Player;
use super::table::Row;
use crate::exit::Failure;

/// Most lines that are asked about, one after the other.
const LINES_MAX: usize = 5000;
const PIECE_BYTES: usize = 4096;
const PIECES_MAX: usize = 5000;

/// Plays it.
///
/// # Errors
/// Which process failed.
pub(crate) fn play(crew: &Crew, data: &Data) -> Result<Vec<Row>, Failure> {
    let lines = || data.lines().iter().take(LINES_MAX).cloned();
    let pieces = || data.pieces(PIECE_BYTES).take(PIECES_MAX);
    let all = Expected::of(lines().chain(pieces()));
    let mut server = start_server(crew, all.messages)?;
    let addr = server.addr()?;
    let by_line = format!("--count {LINES_MAX} --lines");
    let by_piece = format!("--count {PIECES_MAX} --chunk {PIECE_BYTES} --file");
    let mut clients = [
        (start_client(crew, data, 1, &addr, &by_line)?, "asks with lines", Expected::of(lines())),
        (
            start_client(crew, data, 2, &addr, &by_piece)?,
            "asks with pieces",
            Expected::of(pieces()),
        ),
    ];
    let mut rows = Vec::new();
    for (client, did, expected) in &mut clients {
        let row = client.row("REQ/REP", did)?;
        rows.push(row.check(expected));
    }
    let served = server.row("REQ/REP", "answers with the request")?;
    rows.insert(0, served.check(&all));
    Ok(rows)
}

fn start_server(crew: &Crew, count: u64) -> Result<Player<'_>, Failure> {
    let args = format!("rep {} --count {count} --checksum-sum", crew.addr);
    Player::start(crew, "server", &args, None)
}

fn start_client<'a>(
    crew: &'a Crew,
    data: &Data,
    number: usize,
    addr: &str,
    feed: &str,
) -> Result<Player<'a>, Failure> {
    let args = format!("req {addr} --discard --checksum {feed}");
    Player::start(crew, &format!("client {number}"), &args, Some(&data.path()))
}
