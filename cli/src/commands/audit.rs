//! `gleaner audit`: the books of a period, balanced.

mod report;

use std::sync::Arc;

use clap::Args;
use domain::audit::{Period, Sources, audit};
use domain::ports::{Clock as _, Webhooks};
use domain::subscribe::Account;
use domain::time::{Timestamp, before};
use scraper_api::{ScraperApi, StatisticsWindow};
use settings::Settings;
use system::{SystemClock, SystemRandom};

use self::report::{Counted, Difference, Report};
use crate::backend::{Adapters, Site};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Moment, parse_moment};
use crate::output::{Output, note};

/// Findings that a person is shown; --json has all that are kept.
const SHOWN_MAX: usize = 50;

/// Tries of the call for the account's statistics, which nothing rests on.
const STATISTICS_TRIES: u32 = 3;

/// Compare ledger, job lists, delivery logs and stored results of a period, and balance the books.
///
/// Nothing is changed, and nothing is paid for. The exit code is 0 when nothing disagrees, 1 when
/// something does, and 69 when nothing disagrees but the platform could not be asked about all of
/// it.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// The period's beginning, by the jobs' time of creation: a date, a time, or so long ago.
    #[arg(long, value_name = "WHEN", default_value = "24h", value_parser = parse_moment)]
    from: Moment,
    /// The period's end, which is not in it; without it the present.
    #[arg(long, value_name = "WHEN", value_parser = parse_moment)]
    to: Option<Moment>,
    /// Leave the stored results unread: their existence, sizes and checksums are not compared.
    #[arg(long)]
    no_objects: bool,
    /// Leave the delivery logs unread.
    #[arg(long)]
    no_deliveries: bool,
}

impl Audit {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let site = Site::of(settings).await?;
        drop(site.existing_store()?);
        let api = site.api().await?;
        let adapters = Adapters::open(settings).await?;
        let period = self.period(SystemClock.now())?;
        let webhooks: &dyn Webhooks = &*api;
        let sources = Sources {
            ports: adapters.pipeline.ports(),
            webhooks,
            deliveries: !self.no_deliveries,
            objects: !self.no_objects,
        };
        let sheet = audit(sources, period).await?;
        let counted = counted(&api, &adapters.settings, period).await;
        let exit = report::exit(&sheet);
        let shown = if output == Output::Json { sheet.findings.len() } else { SHOWN_MAX };
        output.print(&Report::new(&sheet, counted))?;
        for finding in sheet.findings.iter().take(shown) {
            output.print(&Difference::of(finding))?;
        }
        let left = sheet.findings.len().saturating_sub(shown);
        if left > 0 {
            note(&format!("note: {left} more; --json prints all"));
        }
        Ok(exit)
    }

    fn period(&self, now: Timestamp) -> Result<Period, CliError> {
        let at = |moment: &Moment| match moment {
            Moment::At(at) => *at,
            Moment::Ago(ago) => before(now, *ago),
        };
        let period = Period { from: at(&self.from), to: self.to.as_ref().map_or(now, at) };
        if period.from >= period.to {
            return Err(CliError::new(Exit::Usage, "the period ends before it begins")
                .hint("give an earlier --from, or a later --to"));
        }
        Ok(period)
    }
}

/// The platform's own count of the period, as an outside check; `None` if it cannot be had.
async fn counted(api: &Arc<ScraperApi>, settings: &Settings, period: Period) -> Option<Counted> {
    let window = StatisticsWindow { from: Some(period.from), to: Some(period.to) };
    let within = settings.limits.call_timeout;
    let account = Account {
        webhooks: &**api,
        clock: &SystemClock,
        random: &SystemRandom,
        within,
        tries: STATISTICS_TRIES,
    };
    match account.patiently(|| api.statistics(window, within)).await {
        Ok(statistics) => Some(Counted {
            succeeded: statistics.requests.iter().map(|day| day.success_request_count).sum(),
            failed: statistics.requests.iter().map(|day| day.failed_request_count).sum(),
        }),
        Err(error) => {
            note(&format!("note: the account's statistics cannot be read: {error}"));
            None
        }
    }
}
