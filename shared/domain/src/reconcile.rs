//! Reconcile: the platform's job lists are compared with the ledger, and what the ledger does not
//! know is announced or expected.
//!
//! Each kind's list is walked unfiltered over a pinned window of `created_at`, from the watermark
//! up to the present. Order and counts of pages are not relied upon, and a list that takes more
//! than one page is walked again before the watermark passes it. Costs are in proportion to what
//! is new: a page of the list and a read of the ledger for a hundred jobs. Harmless when run twice
//! or at once; the workers do the work.

pub(crate) mod compare;
mod kind;
pub(crate) mod plan;
mod saved;
pub(crate) mod window;

use std::time::Duration;

pub use plan::{Found, Step};
pub(crate) use saved::AGAIN;

use crate::job::Kind;
use crate::pause::Scope;
use crate::ports::{ApiError, Control, PortError};
use crate::probe;
use crate::progress;
use crate::steps::Ports;
use crate::time::Timestamp;
use crate::work::Look;

/// When the lists were last compared to their ends: of the three, the one that was so longest ago.
/// `None` if one never was.
///
/// # Errors
/// Those of the ledger.
pub async fn compared_at(
    control: &(impl Control + ?Sized),
) -> Result<Option<Timestamp>, PortError> {
    let mut oldest: Option<Timestamp> = None;
    for kind in Kind::ALL {
        let progress = progress::load::<saved::Saved>(control, &saved::row_name(kind)).await?;
        let Some(at) = progress.at.walked_at else { return Ok(None) };
        oldest = Some(oldest.map_or(at, |oldest| oldest.min(at)));
    }
    Ok(oldest)
}

/// How job lists are compared with the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Pause between two walks over a list.
    pub every: Duration,
    /// How long jobs are left to their webhooks; zero without webhooks.
    pub threshold: Duration,
    /// How far before the newest job that was seen the next walk begins: longer than any list lags
    /// behind its jobs.
    pub overlap: Duration,
    /// How far back the first walk begins, at most as far as the ledger remembers.
    pub history: Duration,
    /// Whether a walk begins there whatever was compared before.
    pub anew: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            every: Duration::from_mins(5),
            threshold: Duration::from_mins(10),
            overlap: Duration::from_mins(15),
            history: Duration::MAX,
            anew: false,
        }
    }
}

/// Whoever hears what becomes of each job that is looked at.
pub type Hear<'a> = dyn FnMut(&Found) + Send + Sync + 'a;

/// How a plan is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// Until when calls may be made.
    pub look: Look,
    /// Whether nothing is written, and nothing sent.
    pub is_dry: bool,
}

impl Manner {
    /// Whether the account is left alone: it is paused, or it is in trouble still, as a
    /// [`probe`] shows once a pause for that has ended. What is dry claims no probe.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn is_held(self, ports: Ports<'_>) -> Result<bool, PortError> {
        let now = ports.clock.now();
        let pause = if self.is_dry {
            ports.pauses.active(ports.ledger, Scope::All, now).await?
        } else {
            probe::held(ports, Scope::All, self.look).await?
        };
        Ok(pause.is_some())
    }
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// List pages read.
    pub pages: u32,
    /// Jobs on them, once for each time that one was listed.
    pub listed: u32,
    /// Jobs that had finished without the ledger's knowing it, now announced: the gap.
    pub announced: u32,
    /// Those of them that the ledger did not know at all.
    pub unknown: u32,
    /// Open jobs that the ledger did not know, now expected.
    pub expected: u32,
    /// Jobs that are older than what the ledger remembers, left alone.
    pub forgotten: u32,
    /// Jobs whose time of creation cannot be read; they are compared all the same.
    pub undated: u32,
    /// Entries of the lists that cannot be read, and are no jobs.
    pub unreadable: u32,
    /// Jobs whose row cannot be read or written: somebody must look at them.
    pub faulty: u32,
    /// Pages of a list that says of itself that it is longer than it says.
    pub capped: u32,
    /// Windows that were let go although their list never came to rest.
    pub unsure: u32,
    /// When the oldest of the announced jobs was created.
    pub oldest: Option<Timestamp>,
    /// When the list that was walked to its end least recently was; `None` if one never was.
    pub walked_at: Option<Timestamp>,
    /// Whether something was not compared; the next run goes on there.
    pub partial: bool,
    /// What kept a list from being read.
    pub trouble: Option<ApiError>,
}

/// Compares those lists whose time has come. While the account is paused nothing is done.
///
/// `report` says what was done also after an error.
///
/// # Errors
/// Those of the ledger and the queue; what was done stays done.
///
/// # Cancellation
/// As after a crash: what was announced stays so, and the next run begins where the last one saved
/// its place.
pub async fn reconcile(
    ports: Ports<'_>,
    rules: &Rules,
    manner: Manner,
    report: &mut Reconciled,
    hear: &mut Hear<'_>,
) -> Result<(), PortError> {
    let mut oldest_walk = Some(Timestamp::MAX);
    for kind in Kind::ALL {
        if manner.is_held(ports).await? {
            report.partial = true;
            return Ok(());
        }
        let mut compared = kind::Comparison { ports, rules, manner, kind, report, hear };
        let walked_at = compared.run().await?;
        oldest_walk = oldest_walk.min(walked_at);
    }
    report.walked_at = oldest_walk;
    Ok(())
}

#[cfg(test)]
mod tests;
