//! Running cases.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fabric_core::Domain;

use crate::{Case, Harness, Outcome, ledger, list};

/// Runs all cases, one after the other, and panics at the end if one failed, with all their
/// reasons.
///
/// # Panics
/// If a case failed or the ledger cannot be written.
pub fn run_all<H: Harness>(harness: &H) {
    let cases = list::table::<H>();
    let failures: Vec<String> = cases.iter().filter_map(|case| failure(harness, case)).collect();
    assert!(failures.is_empty(), "{} failed:\n{}", harness.name(), failures.join("\n"));
}

/// Runs one case, writes its outcome down, and panics if it failed.
///
/// # Panics
/// If the case failed, there is none of that name, or the ledger cannot be written.
pub fn run_case<H: Harness>(harness: &H, name: &str) {
    if let Some(failure) = failure(harness, &find(name)) {
        panic!("{failure}");
    }
}

/// Runs one case and says how it ended, without a word in the ledger.
///
/// # Panics
/// If there is no case of that name.
pub fn judge<H: Harness>(harness: &H, name: &str) -> Outcome {
    outcome(harness, &find(name))
}

fn find<H: Harness>(name: &str) -> Case<H> {
    let case = list::table::<H>().into_iter().find(|case| case.name == name);
    case.unwrap_or_else(|| panic!("the suite has no case `{name}`"))
}

fn failure<H: Harness>(harness: &H, case: &Case<H>) -> Option<String> {
    let outcome = outcome(harness, case);
    let recorded = ledger::record(harness.name(), case.name, case.group, &outcome);
    if let Err(error) = recorded {
        panic!("the ledger cannot be written: {error}");
    }
    match outcome {
        Outcome::Failed(reason) => Some(format!("{}: {reason}", case.name)),
        Outcome::Skipped(reason) => {
            println!("skipped: {reason}");
            None
        }
        Outcome::Passed => None,
    }
}

fn outcome<H: Harness>(harness: &H, case: &Case<H>) -> Outcome {
    if let Some(reason) = reason_to_skip(harness, case) {
        return Outcome::Skipped(reason);
    }
    match catch_unwind(AssertUnwindSafe(|| (case.run)(harness))) {
        Ok(()) => Outcome::Passed,
        Err(panic) => Outcome::Failed(text_of(panic.as_ref())),
    }
}

fn reason_to_skip<H: Harness>(harness: &H, case: &Case<H>) -> Option<String> {
    let exception = harness.exceptions().iter().find(|exception| exception.case == case.name);
    let reason = exception.map(|exception| exception.reason);
    reason.or_else(|| case.needs.lacking(harness.domain().caps())).map(str::to_owned)
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked without a text".into())
}
