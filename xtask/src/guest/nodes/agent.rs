//! Orders for the shell in a guest that carries them out.

/// What that shell runs; it has `take_orders`.
pub(super) const AGENT: &str = include_str!("agent.sh");

/// The line that orders `script`. Whatever it contains, it is one line.
pub(super) fn order(number: u32, script: &str) -> String {
    let escaped = script.replace('\\', r"\\").replace('\n', r"\n");
    format!("{number} {escaped}\n")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// What the shell reports and its scripts print after these orders, in any order.
    fn carried_out(orders: &[String]) -> Vec<String> {
        let script = format!("exec 8<&0 9>&1\n{AGENT}\ntake_orders\nwait\n");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdin.take().unwrap().write_all(orders.concat().as_bytes()).unwrap();
        let output = shell.wait_with_output().unwrap();
        let mut lines: Vec<_> =
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn each_order_is_reported_with_its_number_and_exit_code() {
        let lines = carried_out(&[order(1, "exit 7"), order(22, "true"), order(3, "no such")]);
        assert_eq!(lines, ["done 1 7", "done 22 0", "done 3 127"]);
    }

    #[test]
    fn a_script_arrives_as_it_was_written() {
        let script = "printf '%s|' 'a\\nb' \"it's\" '\\\\' $((1 +\n 2))\necho; exit 4";
        let lines = carried_out(&[order(1, script)]);
        assert_eq!(lines, [r"a\nb|it's|\\|3|", "done 1 4"]);
    }

    #[test]
    fn orders_run_side_by_side() {
        let dir = tempdir();
        // Each waits for the other.
        let meet = |own: &str, other: &str| {
            let wait =
                format!("for poll in $(seq 3000); do [ -e {other} ] && exit; sleep 0.01; done");
            format!("cd {dir}; : >{own}; {wait}; exit 1")
        };
        let lines = carried_out(&[order(1, &meet("a", "b")), order(2, &meet("b", "a"))]);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(lines, ["done 1 0", "done 2 0"]);
    }

    #[test]
    fn scripts_do_not_see_the_channel() {
        let script = "[ ! -e /proc/self/fd/8 ] && [ ! -e /proc/self/fd/9 ]";
        assert_eq!(carried_out(&[order(1, script)]), ["done 1 0"]);
    }

    fn tempdir() -> String {
        let dir = std::env::temp_dir().join(format!("agent-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir.to_string_lossy().into_owned()
    }
}
