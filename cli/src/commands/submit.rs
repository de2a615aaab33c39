//! `gleaner submit`: many URLs, each paid for once.

mod earlier;
mod plan;
mod report;
mod telling;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use domain::intent::Intent;
use domain::limits::{CRAWL_DEPTH_MAX, CRAWL_PAGES_MAX};
use domain::time::after;
use settings::Settings;

use self::earlier::Earlier;
use self::plan::{Plan, Shape, plan};
use self::report::{Row, Summary};
use self::telling::Telling;
use super::fetch_flags::FetchFlags;
use crate::backend::{Adapters, Site};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Line, Source, from_arguments, parse_duration, parse_name};
use crate::output::{Output, note};
use crate::submitting::{Manner, Stop, WhenBlocked, submit_until};

/// Submissions tried at once; how many POSTs are in flight is for the pacing to say.
const AT_ONCE: usize = 32;

/// Submit URLs, from arguments, a file or standard input.
///
/// A submission is known by its run, its position in the list and what it asks for: running the
/// same command again submits nothing twice and goes on where the last one stopped, also after a
/// crash or a lost answer. Without --run the run is named after list and options, so that a list
/// that has grown is another run, paid for anew: give a list that grows at its end a name.
///
/// Prints per submission: position, ref, job id and outcome. Ends with 75 when something is left
/// over, with 69 when that is so because the platform never answered, with 2 when the platform
/// refused something for good, and with 77 or 79 when the key or the balance is in the way; see
/// `gleaner exit-codes`.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// URLs; `-` alone reads them from standard input.
    #[arg(value_name = "URL", required_unless_present = "file", conflicts_with = "file")]
    urls: Vec<String>,
    /// List of URLs, one per line, each optionally followed by a tab and a ref; `-` is standard
    /// input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Make batches of up to 1000 URLs instead of one job per URL.
    #[arg(long, conflicts_with = "crawl")]
    batch: bool,
    /// Crawl from each URL.
    #[arg(long)]
    crawl: bool,
    /// Levels of a crawl, 1 = the seed only.
    #[arg(
        long, requires = "crawl", default_value_t = 2, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(CRAWL_DEPTH_MAX))
    )]
    depth: u32,
    /// Most pages of each crawl.
    #[arg(
        long, requires = "crawl", default_value_t = 50, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(CRAWL_PAGES_MAX))
    )]
    limit: u32,
    #[command(flatten)]
    fetch: FetchFlags,
    /// Name of the run; without it, one that follows from list and options.
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    run: Option<String>,
    /// Your own id for the submission, if it is one alone.
    #[arg(long = "ref", value_name = "REF", value_parser = parse_name)]
    reference: Option<String>,
    /// How long to go on when the platform makes us wait.
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, default_value = "10m", value_parser = parse_duration)]
    max_wait: Duration,
    /// Show what would be submitted and what it would cost; send nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Submit {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let plan = self.plan()?;
        if plan.repeated > 0 {
            note(&format!("note: {} URLs occur again and are submitted again", plan.repeated));
        }
        if self.dry_run {
            return dry_run(&plan, output, settings).await;
        }
        let backend = Adapters::open(settings).await?;
        if self.run.is_none() {
            note(&format!("run {}", plan.run));
        }
        submit(&backend, &plan, self.max_wait, output).await
    }

    fn plan(&self) -> Result<Plan, CliError> {
        let lines = self.lines()?;
        let shape = match (self.batch, self.crawl) {
            (true, _) => Shape::Batch,
            (false, true) => Shape::Crawl { depth: self.depth, limit: self.limit },
            (false, false) => Shape::Extract,
        };
        let reference = self.reference.as_deref();
        plan(&lines, shape, &self.fetch.options(), self.run.clone(), reference)
            .map_err(|error| CliError::new(Exit::Usage, error.to_string()).hint(error.hint()))
    }

    fn lines(&self) -> Result<Vec<Line>, CliError> {
        match (&self.file, self.urls.as_slice()) {
            (Some(file), _) => Source::of(file.clone()).read(),
            (None, [only]) if only == "-" => Source::Stdin.read(),
            (None, urls) => from_arguments(urls).map_err(|text| {
                CliError::new(Exit::Usage, text).hint("write it out, such as https://example.com/")
            }),
        }
    }
}

/// Shows what a run would do. The ledger is read if there is one.
async fn dry_run(plan: &Plan, output: Output, settings: &Settings) -> Result<Exit, CliError> {
    let site = Site::of(settings).await?;
    let ledger = if site.is_new() { None } else { Some(site.store()?.ledger) };
    let earlier = match &ledger {
        Some(ledger) => earlier::look(&**ledger, settings, plan).await?,
        None => Earlier::default(),
    };
    earlier.warn();
    let mut summary = Summary::new(plan, &earlier, true);
    for submission in &plan.submissions {
        let intent = match &ledger {
            Some(ledger) => ledger.load_intent(&Intent::id_of(submission)).await?,
            None => None,
        };
        let row = Row::planned(submission, intent.as_ref());
        summary.count(&row);
        output.print(&row)?;
    }
    finish(&summary, output)?;
    Ok(Exit::Ok)
}

async fn submit(
    backend: &Adapters,
    plan: &Plan,
    max_wait: Duration,
    output: Output,
) -> Result<Exit, CliError> {
    let pipeline = &backend.pipeline;
    let manner = Manner {
        at_once: AT_ONCE,
        deadline: after(pipeline.clock.now(), max_wait),
        when_blocked: WhenBlocked::Stop,
    };
    let earlier = earlier::look(&*pipeline.ledger, &backend.settings, plan).await?;
    earlier.warn();
    let summary = Summary::new(plan, &earlier, false);
    let stop = Stop::default();
    let telling = Telling::new(plan, summary, output, (&*pipeline.clock, manner.deadline), &stop);
    {
        let submitting = submit_until(pipeline, &plan.submissions, manner, &stop, &telling);
        tokio::pin!(submitting);
        tokio::select! {
            () = &mut submitting => {}
            () = super::interrupted() => {
                note("stopping; what was begun is finished first");
                stop.stop();
                submitting.await;
            }
        }
    }
    telling.finish()
}

/// Prints the summary: data for a machine, talk for a person.
fn finish(summary: &Summary, output: Output) -> Result<(), CliError> {
    match output {
        Output::Json => output.print(summary),
        Output::Text => {
            note(&summary.to_string());
            Ok(())
        }
    }
}
