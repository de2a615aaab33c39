//! What is looked up for a story. Trouble with one source is told, and ends none of the others.

use std::sync::Arc;
use std::time::Duration;

use domain::entry::{Entry, State};
use domain::explain::{Logged, ObjectSight, Sight};
use domain::job::{JobError, JobKey, JobStatus, Kind};
use domain::limits::LIST_PAGE_MAX;
use domain::ports::{ApiError, ApiErrorKind, Delivery, Jobs as _, PageRequest, Results, Webhook};
use domain::subscribe::Account;
use domain::time::Timestamp;
use scraper_api::ScraperApi;
use system::{SystemClock, SystemRandom};

use crate::backend::Site;

/// Most pages that are read of one webhook's log: 5,000 deliveries.
const LOG_PAGES_MAX: u32 = 50;

/// Tries of each call of the platform.
const TRIES: u32 = 3;

/// The job that is told of.
pub(super) struct Subject {
    pub(super) key: JobKey,
    pub(super) entry: Option<Entry>,
    pub(super) sight: Sight,
}

/// What the delivery logs hold of a job.
#[derive(Default)]
pub(super) struct Deliveries {
    pub(super) rows: Vec<Logged>,
    /// What could not be read.
    pub(super) trouble: Vec<String>,
}

/// Whom the platform's side is asked of.
pub(super) struct Looks {
    api: Asked,
    within: Duration,
}

enum Asked {
    No,
    /// There is no client, for this reason.
    Failed(String),
    Api(Arc<ScraperApi>),
}

impl Looks {
    pub(super) async fn new(site: &Site, offline: bool) -> Self {
        let api = if offline {
            Asked::No
        } else {
            match site.api().await {
                Ok(api) => Asked::Api(api),
                Err(error) => Asked::Failed(error.to_string()),
            }
        };
        Self { api, within: site.settings.limits.call_timeout }
    }

    /// What the platform says of a job.
    pub(super) async fn sight(&self, key: &JobKey) -> Sight {
        let api = match &self.api {
            Asked::No => return Sight::NotAsked,
            Asked::Failed(why) => return Sight::Failed(why.clone()),
            Asked::Api(api) => api,
        };
        let account = self.account(api);
        let answer = if key.kind == Kind::Extract {
            let job = account.patiently(|| api.extract(&key.job_id, self.within)).await;
            job.map(|job| (job.status, job.created_at, job.error))
        } else {
            let first = PageRequest { page: 1, page_size: 1 };
            let page = account.patiently(|| api.parent(key, first, self.within)).await;
            page.map(|page| (page.status, page.created_at, None))
        };
        seen(answer)
    }

    /// A job that the ledger does not know: of the kind that is given, or of the first one under
    /// which the platform knows it.
    pub(super) async fn stranger(&self, key: JobKey, kind: Option<Kind>) -> Subject {
        for candidate in
            Kind::ALL.into_iter().filter(|known| kind.is_none_or(|kind| kind == *known))
        {
            let candidate = JobKey::new(candidate, key.job_id.clone());
            let sight = self.sight(&candidate).await;
            if !matches!(sight, Sight::Missing) {
                return Subject { key: candidate, entry: None, sight };
            }
        }
        Subject { key, entry: None, sight: Sight::Missing }
    }

    /// What the logs of all webhooks for this kind of job hold of it.
    pub(super) async fn deliveries(&self, key: &JobKey) -> Deliveries {
        let mut deliveries = Deliveries::default();
        let Asked::Api(api) = &self.api else { return deliveries };
        let account = self.account(api);
        let webhooks = match account.list().await {
            Ok(listed) => listed.webhooks,
            Err(error) => {
                deliveries.trouble.push(format!("The webhooks could not be listed: {error}."));
                return deliveries;
            }
        };
        let ours = webhooks.iter().filter(|webhook| webhook.event_type.kind() == Some(key.kind));
        for webhook in ours {
            if let Err(trouble) = read_log(account, webhook, key, &mut deliveries.rows).await {
                let id = webhook.id.as_str();
                deliveries.trouble.push(format!("The log of webhook {id}: {trouble}."));
            }
        }
        deliveries
    }

    fn account<'a>(&self, api: &'a ScraperApi) -> Account<'a> {
        Account {
            webhooks: api,
            clock: &SystemClock,
            random: &SystemRandom,
            within: self.within,
            tries: TRIES,
        }
    }
}

/// Reads what a webhook's log holds of a job.
async fn read_log(
    account: Account<'_>,
    webhook: &Webhook,
    key: &JobKey,
    rows: &mut Vec<Logged>,
) -> Result<(), String> {
    for page in 1..=LOG_PAGES_MAX {
        let (webhooks, within) = (account.webhooks, account.within);
        let call = || webhooks.deliveries(&webhook.id, page, LIST_PAGE_MAX, within);
        let log = account.patiently(call).await;
        let log = log.map_err(|error| format!("it could not be read: {error}"))?;
        if log.deliveries.is_empty() && log.unreadable == 0 {
            return Ok(());
        }
        let of_job = |delivery: &&Delivery| delivery.job_id.as_ref() == Some(&key.job_id);
        for delivery in log.deliveries.iter().filter(of_job) {
            let logged = Logged { webhook: webhook.id.clone(), delivery: delivery.clone() };
            // Rows move between pages while they are read.
            if !rows.contains(&logged) {
                rows.push(logged);
            }
        }
    }
    Err(format!("only its first {LOG_PAGES_MAX} pages were read"))
}

type Answer = Result<(JobStatus, Option<Timestamp>, Option<JobError>), ApiError>;

fn seen(answer: Answer) -> Sight {
    match answer {
        Ok((status, created_at, error)) => Sight::Job { status, created_at, error },
        // An id that is no UUID is refused where the platform wants one: no job has it.
        Err(ApiError { kind: ApiErrorKind::Missing | ApiErrorKind::Refused, .. }) => Sight::Missing,
        Err(error) => Sight::Failed(error.to_string()),
    }
}

/// What lies where the row says that the result is.
pub(super) async fn object(results: &dyn Results, entry: Option<&Entry>) -> ObjectSight {
    let state = entry.map(|entry| &entry.state);
    let Some(State::Stored { result } | State::Dead { result: Some(result), .. }) = state else {
        return ObjectSight::NotAsked;
    };
    match results.read(&result.key).await {
        Ok(Some((found, _))) if (found.bytes, &found.sha256) == (result.bytes, &result.sha256) => {
            ObjectSight::Whole
        }
        Ok(Some(_)) => ObjectSight::Differs,
        Ok(None) => ObjectSight::Missing,
        Err(error) if error.kind == domain::ports::ErrorKind::Corrupt => ObjectSight::Differs,
        Err(error) => ObjectSight::Failed(error.to_string()),
    }
}
