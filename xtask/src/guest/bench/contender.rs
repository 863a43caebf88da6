//! Who is compared: perftest's program and ours, how they are started and what they print.

use std::net::IpAddr;

use super::build::Programs;

/// Bytes of a message; ours have it in `trips`.
const SIZE_BYTES: &str = "64";

/// Where everything happens.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) device: String,
    pub(super) address: IpAddr,
    /// The processors of the two processes.
    pub(super) cpus: (u32, u32),
    pub(super) programs: Programs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    /// perftest's `ib_send_lat`.
    SendLat,
    /// Two domains.
    Domain,
    /// REQ and REP.
    Requests,
}

/// How a process waits for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Polling,
    Sleeping,
}

impl Contender {
    /// All of them, the measure of the others first.
    pub(super) const ALL: [Self; 3] = [Self::SendLat, Self::Domain, Self::Requests];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SendLat => "ib_send_lat",
            Self::Domain => "Domain",
            Self::Requests => "REQ/REP",
        }
    }

    /// The most that it may take, as a multiple of `ib_send_lat`'s time.
    pub(super) fn target(self) -> Option<f64> {
        match self {
            Self::SendLat => None,
            Self::Domain => Some(1.3),
            Self::Requests => Some(2.0),
        }
    }

    /// The end that waits for the other.
    pub(super) fn server(self, place: &Place, mode: Mode, trips: u32, port: u16) -> Vec<String> {
        match self {
            Self::SendLat => send_lat(place, mode, trips, port),
            _ => self.ours(place, mode, "--listen", port),
        }
    }

    /// The end that measures.
    pub(super) fn client(self, place: &Place, mode: Mode, trips: u32, port: u16) -> Vec<String> {
        let more = match self {
            Self::SendLat => vec![place.address.to_string()],
            _ => vec!["--trips".to_owned(), trips.to_string()],
        };
        let command = match self {
            Self::SendLat => send_lat(place, mode, trips, port),
            _ => self.ours(place, mode, "--connect", port),
        };
        [command, more].concat()
    }

    fn ours(self, place: &Place, mode: Mode, side: &str, port: u16) -> Vec<String> {
        let program = match self {
            Self::Requests => &place.programs.requests,
            _ => &place.programs.domain,
        };
        let host = match place.address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let program = program.to_string_lossy().into_owned();
        let mut command = vec![program, side.to_owned(), format!("verbs://{host}:{port}")];
        command.extend((mode == Mode::Sleeping).then(|| "--sleep".to_owned()));
        command
    }

    /// The median round trip in what the client printed.
    ///
    /// # Errors
    /// With the output, when it is not there.
    pub(super) fn median_micros(self, output: &str) -> Result<f64, String> {
        let found = match self {
            Self::SendLat => one_way_micros(output).map(|micros| 2.0 * micros),
            _ => word_after(output, "median"),
        };
        found.ok_or_else(|| format!("{} printed no median:\n{output}", self.name()))
    }
}

fn send_lat(place: &Place, mode: Mode, trips: u32, port: u16) -> Vec<String> {
    let (trips, port) = (trips.to_string(), port.to_string());
    let words = [
        "ib_send_lat",
        "-R",
        "-F",
        "-d",
        &place.device,
        "-s",
        SIZE_BYTES,
        "-n",
        &trips,
        "-p",
        &port,
    ];
    let events = (mode == Mode::Sleeping).then_some("-e");
    words.into_iter().chain(events).map(str::to_owned).collect()
}

/// `t_typical` of perftest's table: the fifth column of the line under its head.
fn one_way_micros(output: &str) -> Option<f64> {
    let mut lines = output.lines().skip_while(|line| !line.contains("t_typical"));
    lines.nth(1)?.split_whitespace().nth(4)?.parse().ok()
}

fn word_after(output: &str, name: &str) -> Option<f64> {
    let mut words = output.split_whitespace().skip_while(|word| *word != name);
    words.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Send Latency Test
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]
 64      1000          12.03          268.89       12.58              13.78          9.46
";

    #[test]
    fn one_way_times_are_doubled() {
        assert_eq!(Contender::SendLat.median_micros(TABLE), Ok(25.16));
        let ours = "min 51.37 median 55.23 p99 286.60\n";
        assert_eq!(Contender::Domain.median_micros(ours), Ok(55.23));
        assert!(Contender::SendLat.median_micros(ours).is_err());
    }

    #[test]
    fn addresses_are_written_as_their_kind_wants() {
        let programs = Programs { domain: "/d".into(), requests: "/r".into() };
        let address = "fd00::1".parse().unwrap();
        let place = Place { device: "mlx5_0".into(), address, cpus: (0, 1), programs };
        let command = Contender::Requests.client(&place, Mode::Sleeping, 7, 9);
        assert_eq!(command.join(" "), "/r --connect verbs://[fd00::1]:9 --sleep --trips 7");
        let command = Contender::SendLat.client(&place, Mode::Polling, 7, 9);
        assert!(command.join(" ").ends_with("-n 7 -p 9 fd00::1"));
    }
}
