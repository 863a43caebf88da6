//! Prints all cases as JSON.

fn main() -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string_pretty(&fabric_conformance::cases())?);
    Ok(())
}
