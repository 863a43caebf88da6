//! One request by HTTP 1.0 (RFC 1945), whose answer ends with its connection.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Where metrics are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    host: String,
    path: String,
}

impl Endpoint {
    /// `http://host:port/path`; without a port it is 80, without a path `/metrics`.
    ///
    /// # Errors
    /// A text for people.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let hint = "write it like http://127.0.0.1:9464/metrics";
        let rest = text.strip_prefix("http://").ok_or(hint)?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
        if host.is_empty() || !plain(host) || !plain(path) {
            return Err(hint.into());
        }
        let has_port = host.rfind(':') > host.rfind(']');
        let host = if has_port { host.into() } else { format!("{host}:80") };
        Ok(Self { host, path: if path.is_empty() { "/metrics".into() } else { path.into() } })
    }

    /// What is there now.
    ///
    /// # Errors
    /// A text for people.
    pub(super) fn get(&self) -> Result<String, String> {
        let answer = self.ask().map_err(|error| error.to_string())?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("what answers speaks no HTTP")?;
        let mut lines = head.lines();
        let status = lines.next().unwrap_or_default();
        let mut words = status.split(' ');
        let speaks = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
        if !speaks || words.next() != Some("200") {
            return Err(format!("there are no metrics: {}", status.escape_debug()));
        }
        let chunked = |line: &str| line.to_ascii_lowercase().starts_with("transfer-encoding:");
        if lines.any(chunked) {
            return Err("the answer comes in chunks, though HTTP 1.0 was asked for".into());
        }
        Ok(body.to_owned())
    }

    fn ask(&self) -> io::Result<String> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = format!("GET {} HTTP/1.0\r\nHost: {}\r\n\r\n", self.path, self.host);
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut failed = io::Error::other("the name has no address");
        for addr in self.host.to_socket_addrs()? {
            match TcpStream::connect_timeout(&addr, PATIENCE) {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.host, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_and_path_may_be_left_out() {
        let cases = [
            ("http://h", "http://h:80/metrics"),
            ("http://h:9464", "http://h:9464/metrics"),
            ("http://[::1]/m?a=b", "http://[::1]:80/m?a=b"),
            ("http://[::1]:7/", "http://[::1]:7/"),
        ];
        for (text, meant) in cases {
            assert_eq!(Endpoint::parse(text).unwrap().to_string(), meant);
        }
    }

    #[test]
    fn what_is_no_plain_http_is_refused() {
        for text in ["", "h:1", "https://h:1", "http://", "http:///metrics", "http://h/a b\r\n"] {
            assert!(Endpoint::parse(text).unwrap_err().contains("write it like"), "{text}");
        }
    }
}
