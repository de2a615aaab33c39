//! What must hold between settings.

use std::time::Duration;

use crate::form::show_duration;
use crate::reader::Reader;
use crate::settings::Settings;

/// Notes each relation that does not hold.
pub(crate) fn check(read: &mut Reader, settings: &Settings) {
    let limits = &settings.limits;
    let is_at_most: [(&'static str, Duration, &'static str, Duration); 11] = [
        ("limits.backoff_base", limits.backoff_base, "limits.backoff_cap", limits.backoff_cap),
        (
            "limits.sweep_spacing",
            limits.sweep_spacing,
            "limits.sweep_spacing_cap",
            limits.sweep_spacing_cap,
        ),
        (
            "limits.secret_cooldown",
            limits.secret_cooldown,
            "limits.secret_max_age",
            limits.secret_max_age,
        ),
        ("limits.announce_grace", limits.announce_grace, "limits.max_age", limits.max_age),
        ("limits.max_age", limits.max_age, "limits.retention", limits.retention),
        ("limits.call_timeout", limits.call_timeout, "task_hold", settings.task_hold),
        ("limits.page_timeout", limits.page_timeout, "task_hold", settings.task_hold),
        ("limits.post_timeout", limits.post_timeout, "task_hold", settings.task_hold),
        ("limits.page_timeout", limits.page_timeout, "limits.run_claim", limits.run_claim),
        (
            "limits.adoption_margin",
            limits.adoption_margin,
            "limits.ambiguous_after",
            limits.ambiguous_after,
        ),
        (
            "api_connect_timeout",
            settings.api_connect_timeout,
            "limits.call_timeout",
            limits.call_timeout,
        ),
    ];
    for (name, value, bound, most) in is_at_most {
        // A value that could not be read has a problem of its own.
        let is_read = !value.is_zero() && !most.is_zero();
        if is_read && value > most {
            let origin = read.origin(name);
            let (value, most) = (show_duration(value), show_duration(most));
            read.problem(
                name,
                origin,
                format!("{value} is longer than `{bound}`, which is {most}"),
            );
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
