//! Asking for a job that the ledger does not know, before anything is written down for it.

use std::time::Duration;

use crate::job::{JobKey, Kind};
use crate::pause::Scope;
use crate::ports::{ApiError, ApiErrorKind, PageRequest, PortError};
use crate::probe;
use crate::steps::Ports;
use crate::time::{Timestamp, after, between};
use crate::work::{Look, PutOff};

/// The smallest page: only whether the job is there is asked.
const FIRST_ITEM: PageRequest = PageRequest { page: 1, page_size: 1 };

/// What the platform says of a job.
pub(super) enum Answer {
    /// It has the job.
    There,
    /// Nothing that decides it: why, and how long to wait at least.
    Not(PutOff, Duration),
}

/// Asks the platform whether it has a job. Writes no row; a pause of the account is kept and
/// extended as by any other call.
///
/// # Errors
/// Those of the ledger.
pub(super) async fn ask(
    ports: Ports<'_>,
    key: &JobKey,
    deadline: Timestamp,
) -> Result<Answer, PortError> {
    let (now, limits) = (ports.clock.now(), ports.limits);
    let look = Look::Until(deadline);
    if let Some(pause) = probe::held(ports, Scope::All, look).await? {
        return Ok(Answer::Not(PutOff::Paused(pause.why), between(now, pause.until)));
    }
    let usual = match key.kind {
        Kind::Extract => limits.call_timeout,
        Kind::Batch | Kind::Crawl => limits.page_timeout,
    };
    let Some(within) = look.within(ports.clock.now(), usual) else {
        return Ok(Answer::Not(PutOff::OutOfTime, Duration::ZERO));
    };
    let answer = match key.kind {
        Kind::Extract => ports.jobs.extract(&key.job_id, within).await.map(drop),
        Kind::Batch | Kind::Crawl => ports.jobs.parent(key, FIRST_ITEM, within).await.map(drop),
    };
    match answer {
        // Whatever is too large to be read is there.
        Ok(()) | Err(ApiError { kind: ApiErrorKind::TooLarge, .. }) => Ok(Answer::There),
        Err(error) => {
            if let (ApiErrorKind::Throttled, Some(wait)) = (error.kind, error.retry_after) {
                let until = after(ports.clock.now(), wait.min(limits.retry_after_clamp));
                ports.pauses.extend(ports.ledger, Scope::All, until, error.kind.as_str()).await?;
            }
            Ok(Answer::Not(PutOff::Trouble(error), Duration::ZERO))
        }
    }
}
