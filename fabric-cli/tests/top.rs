//! `fabric top`, against an endpoint that shows what a process would.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use common::run;

/// Answers each request with the next number in place of `N`.
fn serve(head: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(&mut stream).lines().map(Result::unwrap);
            let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            assert_eq!(request[0], "GET /metrics HTTP/1.0");
            let body = body.replace('N', &(1000 * n).to_string());
            write!(stream, "{head}\r\n\r\n{body}").unwrap();
        }
    });
    format!("http://{addr}/metrics")
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain";

const FIGURES: &str = r#"# TYPE fabric_socket_peers gauge
fabric_socket_peers{socket_type="PUB",socket="ticks"} 1
fabric_socket_peers_up{socket_type="PUB",socket="ticks"} 1
fabric_socket_messages_sent_total{socket_type="PUB",socket="ticks"} N
fabric_peer_up{socket_type="PUB",socket="ticks",peer="0",address="tcp://10.0.0.7:5",fabric="tcp",provider="tcp",device="eth0"} 1
"#;

#[test]
fn sockets_and_links_are_shown() {
    let url = serve(OK, FIGURES);
    let done = run(&format!("top {url} --peers -i 50ms -n 2")).ok();
    for text in ["ticks", "PUB", "1 of 1", "10.0.0.7:5", "eth0"] {
        assert_eq!(done.text().matches(text).count() % 2, 0, "{text} in:\n{}", done.text());
        assert!(done.text().contains(text), "{text} in:\n{}", done.text());
    }
}

#[test]
fn programs_get_the_rates() {
    let url = serve(OK, FIGURES);
    let done = run(&format!("top {url} --json -i 100ms -n 1")).ok();
    let found: serde_json::Value = serde_json::from_str(done.text()).unwrap();
    let sent = found["sockets"][0]["sent"].as_f64().unwrap();
    // A thousand more, in a tenth of a second or, on a busy machine, longer.
    assert!(sent > 0.0 && sent <= 10_000.0, "{sent}");
    assert_eq!(found["peers"][0]["device"], "eth0");
}

#[test]
fn what_is_no_endpoint_is_named_with_what_is_wrong() {
    let cases = [
        (serve("HTTP/1.1 404 Not Found", ""), "there are no metrics: HTTP/1.1 404 Not Found"),
        (serve(OK, "<html>"), "line 1 is no text of Prometheus"),
        (serve(OK, "other_total 5\n"), "no sockets there"),
        (serve("SSH-2.0", ""), "there are no metrics: SSH-2.0"),
        ("http://127.0.0.1:1".into(), "refused"),
    ];
    for (url, why) in cases {
        let done = run(&format!("top {url} -n 1"));
        assert_eq!(done.code, Some(1), "{}", done.err);
        assert!(done.error_line().contains(why), "{}", done.err);
    }
    assert_eq!(run("top tcp://127.0.0.1:1").code, Some(2));
}
