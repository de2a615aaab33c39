//! What must hold between settings.

use std::time::Duration;

use crate::form::show_duration;
use crate::reader::Reader;
use crate::settings::Settings;

/// Notes each relation that does not hold.
pub(crate) fn check(read: &mut Reader, settings: &Settings) {
    let limits = &settings.limits;
    let hold = ("task_hold", settings.task_hold);
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
        (
            ("api_connect_timeout", settings.api_connect_timeout),
            ("limits.call_timeout", limits.call_timeout),
        ),
    ];
    let is_below = [
        (("limits.announce_grace", limits.announce_grace), max_age),
        (("limits.call_timeout", limits.call_timeout), hold),
        (("limits.page_timeout", limits.page_timeout), hold),
        (("limits.post_timeout", limits.post_timeout), hold),
        (("limits.page_timeout", limits.page_timeout), ("limits.run_claim", limits.run_claim)),
        (
            ("limits.adoption_margin", limits.adoption_margin),
            ("limits.ambiguous_after", limits.ambiguous_after),
        ),
    ];
    for ((name, value), (bound, most)) in is_at_most {
        if value > most && are_read(value, most) {
            note(read, name, value, &format!("at most `{bound}`"), most);
        }
    }
    for ((name, value), (bound, most)) in is_below {
        if value >= most && are_read(value, most) {
            note(read, name, value, &format!("shorter than `{bound}`"), most);
        }
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

/// A value that could not be read is zero, and has a problem of its own.
fn are_read(value: Duration, most: Duration) -> bool {
    !value.is_zero() && !most.is_zero()
}

fn note(read: &mut Reader, name: &'static str, value: Duration, must: &str, bound: Duration) {
    let origin = read.origin(name);
    let (value, bound) = (show_duration(value), show_duration(bound));
    read.problem(name, origin, format!("{value} must be {must}, which is {bound}"));
}
