//! A program that answers requests.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;

use msg_patterns::Message;

use crate::interrupt::{Interrupt, UntilHit};

/// A program with its arguments.
#[derive(Debug)]
pub(crate) struct Program {
    words: Vec<String>,
    interrupt: Interrupt,
}

/// How a program answered.
#[derive(Debug)]
pub(crate) enum Ran {
    /// With its output.
    Well(Vec<u8>),
    /// It could not be started or failed; the output is what it wrote to standard error.
    Badly {
        /// For who runs this command.
        why: String,
        /// For who asked.
        output: Vec<u8>,
    },
}

impl Program {
    /// `None` without words.
    pub(crate) fn new(words: &[String], interrupt: &Interrupt) -> Option<Self> {
        let (words, interrupt) = (words.to_vec(), interrupt.clone());
        (!words.is_empty()).then_some(Self { words, interrupt })
    }

    /// Runs it once with `request` as its input. A signal to this process ends it.
    pub(crate) fn run(&self, request: Message) -> Ran {
        let ran = self.start().and_then(|child| self.attend(child, request));
        match ran {
            Ok((status, output, _)) if status.success() => Ran::Well(output),
            Ok((status, _, errors)) => self.badly(&status.to_string(), errors),
            Err(error) => self.badly(&error.to_string(), Vec::new()),
        }
    }

    fn badly(&self, why: &str, errors: Vec<u8>) -> Ran {
        let why = format!("{}: {why}", self.words[0]);
        let output = if errors.is_empty() { why.clone().into_bytes() } else { errors };
        Ran::Badly { why, output }
    }

    fn start(&self) -> io::Result<Child> {
        Command::new(&self.words[0])
            .args(&self.words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Feeds and reads all three pipes at once, so that none fills up while another is waited for.
    fn attend(
        &self,
        mut child: Child,
        request: Message,
    ) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
        let (input, errors) = (child.stdin.take(), child.stderr.take());
        let mut output = Vec::new();
        thread::scope(|scope| {
            scope.spawn(move || write_all(input, &request));
            let errors = scope.spawn(move || read_all(errors));
            if let Some(pipe) = child.stdout.take() {
                UntilHit::new(pipe, &self.interrupt).read_to_end(&mut output)?;
            }
            if self.interrupt.is_hit() {
                // It may have ended by itself meanwhile.
                drop(child.kill());
            }
            let status = child.wait()?;
            Ok((status, output, errors.join().unwrap_or_default()))
        })
    }
}

/// A program that does not read all of its input is its own business.
fn write_all(pipe: Option<ChildStdin>, request: &Message) {
    if let Some(mut pipe) = pipe {
        drop(request.parts().iter().try_for_each(|part| pipe.write_all(part)));
    }
}

fn read_all(pipe: Option<ChildStderr>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What was read before a failure is still worth telling.
        drop(pipe.read_to_end(&mut bytes));
    }
    bytes
}
