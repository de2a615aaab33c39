//! The limits of the product, shortened so that hours of a real day pass in a minute.
//!
//! What belongs to the platform (how long its jobs take) passes as fast as the platform does. What
//! belongs to this machine (calls, answers, their margins) passes in real time, however fast the
//! platform is, with room for a machine that is busy. None depends on the number of jobs or on how
//! often the account is paused: no limit counts a time in which nothing could be asked.

use std::time::Duration;

use domain::limits::Limits;
use domain::tick::Rules;
use domain::{reconcile, replay};

use super::{DemoOptions, Weather};

/// Pause between two looks at the job lists and the delivery logs.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Shortest age of an unfinished job that the settings allow.
const AGE_MIN: Duration = Duration::from_secs(10);

/// Longest time that a job of the simulated platform takes, in seconds before the speed: the cut
/// of its durations (20 medians of 20 s), and 20 waves of a large parent's items, half a median
/// apart.
const LONGEST_JOB_SECS: f64 = 600.0;
/// Most of its time in the platform's hands, in seconds before the speed: of a hundred jobs few
/// take longer, and the others' webhooks have come.
const MOST_JOBS_SECS: f64 = 150.0;

/// What a tick does, by these limits: what nobody announced in time is found in the lists.
pub(super) fn upkeep(limits: &Limits) -> Rules {
    let (every, overlap) = (LOOK_EVERY, limits.adoption_margin * 2);
    let patience = limits.announce_grace;
    let reconcile =
        reconcile::Rules { every, threshold: patience, overlap, ..reconcile::Rules::default() };
    let replay = replay::Rules { every, patience, overlap, ..replay::Rules::default() };
    Rules { reconcile, replay: Some(replay), ..Rules::default() }
}

pub(super) fn shortened(options: &DemoOptions) -> Limits {
    let real = |secs: f64| Duration::from_secs_f64(secs.max(0.2));
    // A second at least, as the settings file wants it.
    let platforms = |secs: f64| real((secs / options.speed).max(1.0));
    let longest_job = platforms(LONGEST_JOB_SECS);
    // Where nothing goes wrong every webhook comes, and nobody needs to ask before.
    let announce_grace = match options.weather {
        Weather::None => longest_job + real(10.0),
        Weather::Gentle | Weather::Harsh => platforms(MOST_JOBS_SECS) + real(3.0),
    };
    Limits {
        enqueue_grace: real(3.0),
        sweep_spacing: real(3.0),
        sweep_spacing_cap: real(10.0),
        announce_grace,
        missing_pause: real(0.5),
        settle_grace: longest_job,
        // Whatever is unfinished after it never ends; the settings want it to be longer than the
        // grace.
        max_age: (longest_job + real(5.0)).max(announce_grace + real(5.0)).max(AGE_MIN),
        backoff_base: real(0.2),
        backoff_cap: real(2.0),
        retry_after_clamp: real(5.0),
        post_begin: real(2.0),
        post_timeout: real(3.0),
        call_timeout: real(3.0),
        page_timeout: real(4.0),
        // The simulator's lists lag by no more than 50 ms; a busy machine's answers do.
        adoption_margin: real(4.0),
        // By then a batch has all items by which it is known.
        ambiguous_after: longest_job + real(20.0),
        account_pause: real(1.0),
        run_claim: real(10.0),
        secret_cooldown: real(1.0),
        ..Limits::default()
    }
}
