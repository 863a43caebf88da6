//! `links`, `links add NAME INTERFACE`, `links del NAME`.

use std::process::ExitCode;

use fabric_core::Error;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), Error> {
    match words {
        [] => list(),
        ["add", name, interface] => fabric_softroce::add(name, interface).map(drop),
        ["del", name] => fabric_softroce::remove(name),
        _ => Err(Error::misuse("say nothing, `add NAME INTERFACE` or `del NAME`")),
    }
}

fn list() -> Result<(), Error> {
    for link in fabric_softroce::links()? {
        let state = if link.active { "active" } else { "down" };
        println!("{} on {}, {state}", link.name, link.interface);
    }
    Ok(())
}
