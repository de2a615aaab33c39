//! `gleaner audit`: the books of a period, balanced.

mod report;

use clap::Args;
use domain::audit::{Period, Sources, audit};
use domain::ports::Clock as _;
use domain::time::{Timestamp, before};
use settings::Settings;
use system::SystemClock;

use self::report::{Difference, Report};
use crate::backend::{Adapters, Site};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Moment, parse_moment};
use crate::output::{Output, note};

/// Findings that a person is shown; --json has all that are kept.
const SHOWN_MAX: usize = 50;

/// Compare ledger, job lists, delivery logs and stored results of a period, and balance the books.
///
/// Nothing is changed, and nothing is paid for. The exit code is 0 when nothing disagrees in the
/// part of the period that can be proved, and 1 when something does. It is 5 when nothing of the
/// period can be proved, so that nothing was compared, and 69 when nothing disagrees but the
/// platform could not be asked about all of it.
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
        let sources = Sources {
            ports: adapters.pipeline.ports(),
            webhooks: &*api,
            statistics: &*api,
            deliveries: !self.no_deliveries,
            objects: !self.no_objects,
            left: settings
                .upkeep
                .reconcile
                .threshold
                .saturating_add(settings.upkeep.reconcile.every),
        };
        let sheet = audit(sources, period).await?;
        let exit = report::exit(&sheet);
        let shown = if output == Output::Json { sheet.findings.len() } else { SHOWN_MAX };
        output.print(&Report::new(&sheet))?;
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
