//! What takes tokio, where that was left out.

use super::lat::Found;
use crate::Error;
use crate::serve::Part;
use crate::session::Run;

/// Refuses.
pub(crate) fn measure(_run: &Run<'_>) -> Result<Found, Error> {
    Err(left_out())
}

/// Refuses.
pub(crate) fn serve(_part: &Part) -> Result<(), Error> {
    Err(left_out())
}

fn left_out() -> Error {
    Error::Plan("tasks are not compiled in: build with the feature \"tokio\"".into())
}
