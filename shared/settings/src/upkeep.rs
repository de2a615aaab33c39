//! What a tick does, and how often.

use std::time::Duration;

use domain::job::Kind;
use domain::tick::Rules;
use domain::{reconcile, replay};

use crate::reader::Reader;

/// Pause between two looks where nothing is set and a server ticks often.
const EVERY: Duration = Duration::from_mins(5);
/// The same where job lists are all there is.
const EVERY_WITHOUT_WEBHOOKS: Duration = Duration::from_secs(30);

/// How often something is done that nothing is set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unset {
    /// Now and then, since ticks are many.
    NowAndThen,
    /// In each run.
    EachRun,
}

/// Reads what a tick does; `public_url` is the receiver's, if it is known.
pub(crate) fn rules(read: &mut Reader, public_url: Option<String>, unset: Unset) -> Rules {
    let webhooks = read.word("webhooks").unwrap_or_default();
    let has_webhooks = webhooks != "off";
    let kinds = Kind::ALL.into_iter();
    let kinds = kinds.filter(|kind| webhooks == "on" || webhooks.contains(kind.as_str()));
    let every = |read: &mut Reader, name, usual: Duration| {
        let set = read.optional_duration(name);
        set.unwrap_or(if unset == Unset::EachRun { Duration::ZERO } else { usual })
    };
    let usual = if has_webhooks { EVERY } else { EVERY_WITHOUT_WEBHOOKS };
    let threshold = read.duration("reconcile.threshold");
    let overlap = read.duration("reconcile.overlap");
    let replayed = replay::Rules {
        every: every(read, "replay.every", EVERY),
        patience: threshold,
        overlap,
        url: public_url,
        kinds: kinds.collect(),
        whole: false,
    };
    Rules {
        rows: read.count("tick_rows"),
        reconcile: reconcile::Rules {
            every: every(read, "reconcile.every", usual),
            threshold: if has_webhooks { threshold } else { Duration::ZERO },
            overlap,
            history: read.duration("reconcile.history"),
            anew: false,
        },
        replay: has_webhooks.then_some(replayed),
    }
}
