//! Replay: what the platform's delivery logs say was delivered, or was not, is compared with the
//! ledger.
//!
//! Rows are grouped by event type and job. Whatever the log says of a delivery, a job that the
//! ledger does not hold is announced; one that it holds costs nothing but a look at its row, so
//! that a delivery that we refuse for good brings its job once and never again. Each webhook's log
//! is read as far as there is something new in it. Harmless when run twice or at once.

mod log;
mod reading;
mod rows;
mod saved;

use std::time::Duration;

pub use rows::Logged;

use crate::adopt::{is_passing, keep_to};
use crate::job::Kind;
use crate::ports::{ApiError, Control, PortError, Webhook, Webhooks};
use crate::progress;
use crate::reconcile::Manner;
use crate::steps::Ports;
use crate::subscribe::{Listed, PAGE_SIZE, PAGES_MAX};
use crate::subscriptions::{Subscriptions, is_same_url};
use crate::time::Timestamp;
use log::Ended;
use saved::{ROW, Saved};

/// Most failing calls for the list of webhooks; the next run is the retry.
const TRIES_MAX: u32 = 3;

/// When all logs were last read as far as there was something new; `None` if they never were.
///
/// # Errors
/// Those of the ledger.
pub async fn read_at(control: &(impl Control + ?Sized)) -> Result<Option<Timestamp>, PortError> {
    Ok(progress::load::<Saved>(control, ROW).await?.at.read_at)
}

/// How delivery logs are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Pause between two readings.
    pub every: Duration,
    /// How long a delivery that is on its way is left alone.
    pub patience: Duration,
    /// How far before the newest row that was seen the next reading begins.
    pub overlap: Duration,
    /// The receiver's public URL: webhooks with it are ours. All are, if it is not known, or if none
    /// has it, as behind another name.
    pub url: Option<String>,
    /// The kinds of job whose events shall be delivered.
    pub kinds: Vec<Kind>,
    /// Whether each log is read from its first page to its last, whatever was read before.
    pub whole: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            every: Duration::from_mins(5),
            patience: Duration::from_mins(10),
            overlap: Duration::from_mins(15),
            url: None,
            kinds: Kind::ALL.to_vec(),
            whole: false,
        }
    }
}

/// Whoever hears what becomes of each job that a log speaks of.
pub type Hear<'a> = dyn FnMut(&Logged) + Send + Sync + 'a;

/// What a reading of the logs found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Webhooks whose log was read.
    pub webhooks: u32,
    /// How the account's webhooks stand, if they could be listed.
    pub subscriptions: Option<Subscriptions>,
    /// Webhooks that were gone when their log was to be read.
    pub vanished: u32,
    /// Pages read.
    pub pages: u32,
    /// Rows on them, once for each time that one was shown.
    pub rows: u32,
    /// Jobs that had finished without the ledger's knowing it, now announced: the gap.
    pub announced: u32,
    /// Those of them that the ledger did not know at all.
    pub unknown: u32,
    /// Those of them whose delivery we had taken, as the log says.
    pub taken: u32,
    /// Jobs whose delivery is on its way, left alone.
    pub waiting: u32,
    /// Jobs that are older than what the ledger remembers, left alone.
    pub forgotten: u32,
    /// Rows that name no job.
    pub nameless: u32,
    /// Rows of event types that are not owed.
    pub strange: u32,
    /// Entries that cannot be read, and are no rows.
    pub unreadable: u32,
    /// Jobs whose row of the ledger cannot be read or written: somebody must look at them.
    pub faulty: u32,
    /// Logs that were let go although they never came to rest.
    pub unsure: u32,
    /// When the oldest of the announced jobs was logged.
    pub oldest: Option<Timestamp>,
    /// When the logs were last read to the end of what was new; `None` if they never were.
    pub read_at: Option<Timestamp>,
    /// Whether something was not looked at; the next run goes on there.
    pub partial: bool,
    /// What kept a log from being read.
    pub trouble: Option<ApiError>,
}

/// Reads the delivery logs, if their time has come. While the account is paused nothing is done.
///
/// `report` says what was done also after an error.
///
/// # Errors
/// Those of the ledger and the queue; what was done stays done.
///
/// # Cancellation
/// As after a crash: what was announced stays so, and the next run begins where the last one saved
/// its place.
pub async fn replay(
    ports: Ports<'_>,
    webhooks: &dyn Webhooks,
    rules: &Rules,
    manner: Manner,
    report: &mut Replayed,
    hear: &mut Hear<'_>,
) -> Result<(), PortError> {
    if manner.is_held(ports).await? {
        report.partial = true;
        return Ok(());
    }
    let now = ports.clock.now();
    let mut progress = progress::load::<Saved>(ports.ledger, ROW).await?;
    report.read_at = progress.at.read_at;
    if !progress.at.is_due(rules.every, now) {
        return Ok(());
    }
    let mut is_early = false;
    match ours(ports, webhooks, rules, manner, report).await? {
        None => is_early = true,
        Some(ours) => {
            progress.at.keep(&ours);
            for webhook in &ours {
                let mut log = log::Reader { ports, webhooks, rules, manner, report, hear };
                match log.read(&webhook.id, &mut progress).await? {
                    Ended::Whole => {}
                    Ended::Early => is_early = true,
                    Ended::OutOfTime => {
                        is_early = true;
                        break;
                    }
                }
            }
        }
    }
    let ended = ports.clock.now();
    if is_early {
        report.partial = true;
        progress.at.tried_at = Some(ended);
    } else {
        progress.at.read_at = Some(ended);
        report.read_at = Some(ended);
    }
    log::save(ports, manner, &mut progress).await
}

/// The webhooks whose logs are read; `None`, and reported, if they cannot be listed.
async fn ours(
    ports: Ports<'_>,
    webhooks: &dyn Webhooks,
    rules: &Rules,
    manner: Manner,
    report: &mut Replayed,
) -> Result<Option<Vec<Webhook>>, PortError> {
    let Some(mut ours) = listed(ports, webhooks, manner, report).await? else { return Ok(None) };
    let url = rules.url.as_deref();
    report.subscriptions = Some(Subscriptions::of(&rules.kinds, url, &ours));
    ours.retain(|webhook| webhook.event_type.kind().is_some());
    let is_here = |webhook: &Webhook| url.is_some_and(|url| is_same_url(url, &webhook.url));
    if ours.iter().any(is_here) {
        ours.retain(is_here);
    }
    Ok(Some(ours))
}

/// The account's webhooks; `None`, and reported, if they cannot be listed whole.
async fn listed(
    ports: Ports<'_>,
    webhooks: &dyn Webhooks,
    manner: Manner,
    report: &mut Replayed,
) -> Result<Option<Vec<Webhook>>, PortError> {
    let mut all = Listed::default();
    let (mut page, mut tries) = (1, 0);
    while page <= PAGES_MAX {
        let usual = ports.limits.call_timeout;
        let Some(within) = manner.look.within(ports.clock.now(), usual) else { return Ok(None) };
        match webhooks.list(page, PAGE_SIZE, within).await {
            Ok(listed) => {
                if all.add(listed) {
                    break;
                }
                page += 1;
            }
            Err(error) => {
                tries += 1;
                let goes_on = is_passing(&error) && tries < TRIES_MAX;
                keep_to(ports, &error).await?;
                if !goes_on {
                    report.trouble = Some(error);
                    return Ok(None);
                }
            }
        }
    }
    report.unreadable = report.unreadable.saturating_add(all.unreadable);
    Ok(Some(all.webhooks))
}

#[cfg(test)]
mod tests;
