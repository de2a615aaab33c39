//! What must hold between settings.

use std::time::Duration;

use domain::limits::Limits;

use crate::form::show_duration;
use crate::reader::Reader;
use crate::settings::{Backend, Settings};

/// Notes each relation between bounds that does not hold.
pub(crate) fn check_limits(read: &mut Reader, limits: &Limits) {
    let max_age = ("limits.max_age", limits.max_age);
    let is_at_most = [
        (("limits.backoff_base", limits.backoff_base), ("limits.backoff_cap", limits.backoff_cap)),
        (
            ("limits.sweep_spacing", limits.sweep_spacing),
            ("limits.sweep_spacing_cap", limits.sweep_spacing_cap),
        ),
        (
            ("limits.secret_cooldown", limits.secret_cooldown),
            ("limits.secret_max_age", limits.secret_max_age),
        ),
        (max_age, ("limits.retention", limits.retention)),
    ];
    let is_below = [
        (("limits.announce_grace", limits.announce_grace), max_age),
        (("limits.page_timeout", limits.page_timeout), ("limits.run_claim", limits.run_claim)),
        (
            ("limits.adoption_margin", limits.adoption_margin),
            ("limits.ambiguous_after", limits.ambiguous_after),
        ),
    ];
    for (value, most) in is_at_most {
        at_most(read, value, most);
    }
    for (value, bound) in is_below {
        below(read, value, bound);
    }
}

/// Notes a wait for a connection that is longer than a call.
pub(crate) fn check_connect(read: &mut Reader, connect_timeout: Duration, limits: &Limits) {
    let call = ("limits.call_timeout", limits.call_timeout);
    at_most(read, ("api_connect_timeout", connect_timeout), call);
}

/// Notes each relation that does not hold.
pub(crate) fn check(read: &mut Reader, settings: &Settings) {
    let limits = &settings.limits;
    check_limits(read, limits);
    check_connect(read, settings.api_connect_timeout, limits);
    let hold = ("task_hold", settings.task_hold);
    for call in [
        ("limits.call_timeout", limits.call_timeout),
        ("limits.page_timeout", limits.page_timeout),
        ("limits.post_timeout", limits.post_timeout),
    ] {
        below(read, call, hold);
    }
    check_backend(read, &settings.backend);
    if settings.metrics_listen == Some(settings.listen) && settings.listen.port() != 0 {
        let origin = read.origin("metrics_listen");
        let text = "it must be another address than `listen`, which strangers reach".to_owned();
        read.problem("metrics_listen", origin, text);
    }
    let (one, all) = (settings.receiver.body_bytes, settings.receiver.bodies_bytes);
    if one > all && all > 0 {
        let origin = read.origin("receiver.body_bytes");
        let text = format!("{one} bytes are more than `receiver.bodies_bytes`, which is {all}");
        read.problem("receiver.body_bytes", origin, text);
    }
    let pacing = settings.pacing;
    if pacing.start > pacing.ceiling && pacing.ceiling > 0 {
        let origin = read.origin("pace.start");
        let text =
            format!("{} is more than `pace.ceiling`, which is {}", pacing.start, pacing.ceiling);
        read.problem("pace.start", origin, text);
    }
}

/// Notes a backend on AWS of which nothing says where it is.
fn check_backend(read: &mut Reader, backend: &Backend) {
    let Backend::Aws(aws) = backend else { return };
    let needed = [("table", &aws.table), ("queue_url", &aws.queue_url), ("bucket", &aws.bucket)];
    let is_missing = |(name, value): &(&'static str, &Option<String>)| {
        // A value that is given and wrong has a problem of its own.
        value.is_none() && read.origin(name).is_none()
    };
    let missing: Vec<_> =
        needed.into_iter().filter(is_missing).map(|(name, _)| format!("`{name}`")).collect();
    if aws.stack.is_none() && read.origin("stack").is_none() && !missing.is_empty() {
        let missing = missing.join(", ");
        let text = format!("`aws` needs `stack`, or else {missing}, which nothing says");
        read.problem("backend", read.origin("backend"), text);
    }
}

/// A name and its value.
type Named = (&'static str, Duration);

fn at_most(read: &mut Reader, (name, value): Named, (bound, most): Named) {
    if value > most && are_read(value, most) {
        note(read, name, value, &format!("at most `{bound}`"), most);
    }
}

fn below(read: &mut Reader, (name, value): Named, (bound, most): Named) {
    if value >= most && are_read(value, most) {
        note(read, name, value, &format!("shorter than `{bound}`"), most);
    }
}

/// A value that could not be read is zero, and has a problem of its own.
fn are_read(value: Duration, most: Duration) -> bool {
    !value.is_zero() && !most.is_zero()
}

fn note(read: &mut Reader, name: &'static str, value: Duration, must: &str, bound: Duration) {
    let origin = read.origin(name);
    let text = if read.may_quote() {
        format!("{} must be {must}, which is {}", show_duration(value), show_duration(bound))
    } else {
        format!("it must be {must}")
    };
    read.problem(name, origin, text);
}
