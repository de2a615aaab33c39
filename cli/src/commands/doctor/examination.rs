//! All checks of one place, one after the other.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use domain::ports::{Clock, WebhookPage, Webhooks as _};
use domain::time::between;
use domain::within::within;
use futures_util::FutureExt as _;
use settings::Backend;
use tokio::task::spawn_blocking;

use super::finding::{AGAIN, Finding, Outcome, Report};
use super::receiver::{Health, Posting};
use super::{account, books, folder, receiver, secrets, stored, subscriptions};
use crate::backend::{Held, Site, Store, advised, is_here};
use crate::error::CliError;
use system::SystemClock;

/// Webhooks asked for: many more than the ten that an account may have.
const WEBHOOKS_PER_PAGE: u32 = 100;
/// A ledger that fails after this long does not answer at all.
const MUTE_AFTER: Duration = Duration::from_secs(10);
/// Longest time of one check.
const CHECK_WITHIN: Duration = Duration::from_secs(45);

/// The check that finds everything on AWS.
pub(super) const STACK: &str = "stack";

/// All checks of one place.
pub(super) struct Examination<'r> {
    pub(super) site: Arc<Site>,
    pub(super) report: &'r mut Report,
    /// Whether somebody asked for a POST to the receiver.
    pub(super) probe_receiver: bool,
}

impl Examination<'_> {
    /// Makes one after the other.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub(super) async fn run(mut self) -> Result<(), CliError> {
        let held = self.site.held();
        let held = match bounded(secrets::SECRETS, held).await {
            Ok(held) => held,
            Err(broken) => {
                self.report.add([broken])?;
                Vec::new()
            }
        };
        // Before anybody repeats them.
        let texts = held.iter().filter_map(|held| held.secret.as_ref().ok());
        self.report.conceal(texts.map(|secret| secret.expose().to_owned()));
        Box::pin(self.storage()).await?;
        let webhooks = Box::pin(self.platform()).await?;
        Box::pin(self.deliveries(&held, webhooks)).await
    }

    /// Folder, ledger, queue, results and what the ledger says.
    async fn storage(&mut self) -> Result<(), CliError> {
        let site = Arc::clone(&self.site);
        if let Backend::Aws(aws) = &site.settings.backend {
            let given = site.from_stack.len();
            let name = aws.stack.as_deref();
            let found = name.map_or_else(
                || "everything on AWS is named by settings".to_owned(),
                |name| format!("the outputs of the stack `{name}` give {given} settings"),
            );
            self.report.add([Finding::ok(STACK, found)])?;
        } else {
            let settings = site.settings.clone();
            let looking = async { spawn_blocking(move || folder::judge(&settings)).await };
            match bounded(folder::FOLDER, looking).await {
                Ok(Ok(findings)) => self.report.add(findings)?,
                Ok(Err(_)) => self.report.add([broken(folder::FOLDER)])?,
                Err(finding) => self.report.add([finding])?,
            }
        }
        let store = match bounded(stored::LEDGER, stored::open(site)).await {
            Ok(Ok(store)) => store,
            Ok(Err(finding)) | Err(finding) => {
                self.report.add([finding])?;
                let found = "the ledger is not open";
                return self.report.add(
                    [stored::QUEUE, stored::RESULTS]
                        .into_iter()
                        .chain(books::ALL)
                        .map(|check| Finding::skipped(check, found)),
                );
            }
        };
        self.stored(&store).await
    }

    async fn stored(&mut self, store: &Store) -> Result<(), CliError> {
        let now = SystemClock.now();
        let ledger = &*store.ledger;
        let answered = bounded(stored::LEDGER, stored::ledger(store)).await;
        let finding = answered.unwrap_or_else(|broken| broken);
        // One that does not answer would be waited for again and again.
        let is_mute =
            finding.outcome == Outcome::Failed && between(now, SystemClock.now()) >= MUTE_AFTER;
        self.report.add([finding])?;
        self.one(stored::QUEUE, stored::queue(store)).await?;
        self.one(stored::RESULTS, stored::results(store)).await?;
        if is_mute {
            let found = "the ledger does not answer";
            self.report.add(books::ALL.map(|check| Finding::skipped(check, found)))?;
        } else {
            self.many(books::DUE, books::due(ledger, now)).await?;
            let settings = &self.site.clone().settings;
            self.many(books::UPKEEP, books::upkeep(ledger, settings, now)).await?;
            self.one(books::PAUSES, books::pauses(ledger, now)).await?;
            self.many(books::JOBS, books::jobs(ledger)).await?;
        }
        let site = Arc::clone(&self.site);
        self.one(DEAD_LETTERS, dead_letters(&site)).await
    }

    /// API, clock and key; the account's webhooks, if they can be had.
    async fn platform(&mut self) -> Result<Result<WebhookPage, String>, CliError> {
        let site = Arc::clone(&self.site);
        let asked = match bounded(account::API, account::reach(&site)).await {
            Ok((findings, asked)) => {
                self.report.add(findings)?;
                asked
            }
            Err(broken) => {
                self.report.add([broken])?;
                None
            }
        };
        let Some(asked) = asked else {
            let found = "the API does not answer";
            self.report
                .add([account::CLOCK, account::KEY].map(|check| Finding::skipped(check, found)))?;
            return Ok(Err(found.to_owned()));
        };
        self.report.add([account::judge_clock(&asked, &site.settings)])?;
        self.one(account::KEY, account::key(&site)).await?;
        let listing = async {
            let within = account::CALL_WITHIN.min(site.settings.limits.call_timeout);
            let api = site.api().await?;
            Ok::<_, CliError>(api.list(1, WEBHOOKS_PER_PAGE, within).await?)
        };
        Ok(match bounded(subscriptions::WEBHOOKS, listing).await {
            Ok(listed) => {
                listed.map_err(|error| format!("they cannot be listed: {}", error.told()))
            }
            Err(finding) => Err(finding.found),
        })
    }

    /// Webhooks, their secrets, and the receiver.
    async fn deliveries(
        &mut self,
        held: &[Held],
        webhooks: Result<WebhookPage, String>,
    ) -> Result<(), CliError> {
        let site = Arc::clone(&self.site);
        let settings = &site.settings;
        let now = SystemClock.now();
        let (ids, is_some_unnamed) = secrets::named(held, now);
        let url = settings.public_url.as_deref();
        let listed = webhooks.as_ref().ok().map(|webhooks| webhooks.webhooks.as_slice());
        self.report.add(secrets::judge(&secrets::Judged {
            held,
            webhooks: listed,
            scheme: &settings.scheme,
            are_wanted: url.is_some(),
            now,
        }))?;
        match &webhooks {
            Err(found) => {
                self.report.add([Finding::skipped(subscriptions::WEBHOOKS, found.clone())])?;
            }
            Ok(webhooks) => {
                let kinds = match bounded(subscriptions::WEBHOOKS, site.keeper().kinds()).await {
                    Ok(Ok(kinds)) => kinds,
                    // That the secrets cannot be read was said.
                    _ => domain::job::Kind::ALL.to_vec(),
                };
                self.report.add(subscriptions::judge(&subscriptions::Known {
                    webhooks: &webhooks.webhooks,
                    unreadable: webhooks.unreadable,
                    kinds: &kinds,
                    url,
                    secrets: &ids,
                    is_some_unnamed,
                }))?;
            }
        }
        let Some(url) = url else {
            let found = "no `public_url` is set";
            return self.report.add([Finding::skipped(receiver::RECEIVER, found)]);
        };
        let is_of_stack = site.from_stack.contains(&"public_url");
        let is_ours = is_here(url) || is_of_stack;
        let word = if is_of_stack { Health::NotRouted } else { Health::Asked };
        let posting =
            if self.probe_receiver || is_ours { Posting::Allowed } else { Posting::Unasked };
        self.many(receiver::RECEIVER, receiver::probe(url, posting, word)).await
    }

    /// Makes a check that finds one thing.
    async fn one(
        &mut self,
        check: &'static str,
        looking: impl Future<Output = Finding>,
    ) -> Result<(), CliError> {
        let finding = bounded(check, looking).await.unwrap_or_else(|broken| broken);
        self.report.add([finding])
    }

    /// Makes a check that may find several things.
    async fn many(
        &mut self,
        check: &'static str,
        looking: impl Future<Output = Vec<Finding>>,
    ) -> Result<(), CliError> {
        let findings = bounded(check, looking).await.unwrap_or_else(|broken| vec![broken]);
        self.report.add(findings)
    }
}

/// The check of the dead-letter queue.
const DEAD_LETTERS: &str = "dead-letters";

async fn dead_letters(site: &Site) -> Finding {
    match site.count_dead_letters().await {
        Ok(None) => Finding::skipped(DEAD_LETTERS, "there is no dead-letter queue here"),
        Ok(Some(0)) => Finding::ok(DEAD_LETTERS, "no task is in the dead-letter queue"),
        Ok(Some(count)) => Finding::warning(
            DEAD_LETTERS,
            format!("{count} tasks are in the dead-letter queue"),
            "see them with `gleaner dead list --reason letter`; docs/alarms.md tells why they came \
             there. Their jobs are still owed, and are sent again by the scheduler",
        ),
        Err(error) => Finding::trouble(DEAD_LETTERS, &advised(error, &site.settings), AGAIN),
    }
}

/// Makes a check within its time. One that panics or hangs is that check's trouble alone.
pub(super) async fn bounded<T>(
    check: &'static str,
    looking: impl Future<Output = T>,
) -> Result<T, Finding> {
    bounded_by(&SystemClock, check, looking).await
}

async fn bounded_by<T>(
    clock: &dyn Clock,
    check: &'static str,
    looking: impl Future<Output = T>,
) -> Result<T, Finding> {
    let guarded = Box::pin(AssertUnwindSafe(looking).catch_unwind());
    match within(clock, CHECK_WITHIN, guarded).await {
        Some(Ok(found)) => Ok(found),
        Some(Err(_)) => Err(broken(check)),
        None => Err(Finding::failed(
            check,
            format!("this check did not end within {} s", CHECK_WITHIN.as_secs()),
            "see whether the disk, the network or AWS hangs, and run it again",
        )),
    }
}

fn broken(check: &'static str) -> Finding {
    let found = "the check itself is broken";
    Finding::failed(check, found, "this is a bug in gleaner; please report it")
}

#[cfg(test)]
mod tests;
