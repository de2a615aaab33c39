//! Panics in the log.

use std::panic::{self, PanicHookInfo};

/// Has every panic told as one line. What a panic says may hold any value, such as a body that did
/// not decode, and is shown only where it is a text of the program.
pub(crate) fn tell_from_now_on() {
    panic::set_hook(Box::new(tell));
}

fn tell(panicked: &PanicHookInfo<'_>) {
    let at = panicked.location().map(ToString::to_string).unwrap_or_default();
    let said = panicked.payload().downcast_ref::<&'static str>().copied();
    let said = said.unwrap_or("[made of values, and not shown]");
    tracing::error!(panic.at = at, panic.said = said, "panicked");
}
