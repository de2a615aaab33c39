//! `gleaner doctor`: whether everything is as it must be, and what to do about what is not.

mod account;
mod books;
mod capture;
mod configured;
mod examination;
mod finding;
mod folder;
mod receiver;
mod secrets;
mod stored;
mod subscriptions;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use settings::Settings;

use self::capture::{Capture, Source};
use self::examination::{Examination, STACK, bounded};
use self::finding::{AGAIN, Finding, Report};
use super::settings_flags::SettingsFlags;
use crate::backend::{Site, advised};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::parse_duration;
use crate::output::Output;

/// Check settings, storage, key, platform, webhooks, secrets and receiver.
///
/// Each check says what it found and what to do about it. Nothing is changed, no task is made and
/// no secret is shown. Ends with 1 when a check failed; warnings are no failure.
///
/// With --capture or --from, one real delivery is examined instead: which verification settings
/// accept it, with the signing secrets that are here. They are printed, and the delivery is saved as
/// a test fixture, redacted and signed anew. Ends with 1 when none do, and with 3 when no delivery
/// came.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Post an unsigned delivery to `public_url` to see that it is refused; without the flag only a
    /// receiver on this machine or of the stack is asked.
    #[arg(long, conflicts_with_all = ["capture", "from"])]
    probe_receiver: bool,
    /// Wait for one real delivery, and answer it 503, so that the platform sends it again.
    #[arg(long, conflicts_with = "from")]
    capture: bool,
    /// Take the delivery from a file: a request as it came over HTTP, or an event of Lambda.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Address to wait at; port 0 takes a free one [default: the setting `listen`].
    #[arg(long, value_name = "ADDRESS", requires = "capture", conflicts_with = "from")]
    listen: Option<SocketAddr>,
    /// Longest wait [default: 10m].
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = parse_duration,
        requires = "capture",
        conflicts_with = "from"
    )]
    within: Option<Duration>,
    /// File for the redacted delivery, which must not be there yet [default with --capture:
    /// gleaner-delivery.http].
    #[arg(long, value_name = "FILE")]
    fixture: Option<PathBuf>,
    /// File for the delivery as it is, which --from reads again; it may hold whole pages.
    #[arg(long, value_name = "FILE", requires = "capture", conflicts_with = "from")]
    keep: Option<PathBuf>,
}

impl Doctor {
    pub(crate) async fn run(self, output: Output, flags: &SettingsFlags) -> Result<Exit, CliError> {
        if let Some(capture) = self.capture()? {
            let settings = flags.load()?;
            let capturing = Box::pin(capture.run(output, &settings));
            return capturing.await.map_err(|error| advised(error, &settings));
        }
        let mut report = Report::new(output);
        match flags.load() {
            Ok(settings) => Box::pin(self.examine(&settings, &mut report)).await?,
            Err(error) => {
                report.add([Finding::trouble(configured::SETTINGS, &error, AGAIN)])?;
                report
                    .add([Finding::skipped("all", "nothing else is looked at without settings")])?;
            }
        }
        report.end()
    }

    /// The delivery to examine, if one is asked for.
    fn capture(&self) -> Result<Option<Capture>, CliError> {
        let source = match (&self.from, self.capture) {
            (Some(file), _) => Source::File(file.clone()),
            (None, true) => {
                Source::Wire { listen: self.listen, within: self.within.unwrap_or(capture::WAIT) }
            }
            (None, false) if self.fixture.is_some() => {
                return Err(CliError::new(Exit::Usage, "--fixture needs --capture or --from"));
            }
            (None, false) => return Ok(None),
        };
        Ok(Some(Capture { source, fixture: self.fixture.clone(), keep: self.keep.clone() }))
    }

    async fn examine(&self, settings: &Settings, report: &mut Report) -> Result<(), CliError> {
        report.conceal(settings.secret_values.iter().map(|(_, value)| value.expose().to_owned()));
        report.conceal(settings.api_key.iter().map(|key| key.expose().to_owned()));
        report.add(configured::judge(settings))?;
        let site = match Box::pin(bounded(STACK, Site::of(settings))).await {
            Ok(Ok(site)) => Arc::new(site),
            Ok(Err(error)) => {
                return report.add([Finding::trouble(STACK, &advised(error, settings), AGAIN)]);
            }
            Err(broken) => return report.add([broken]),
        };
        let all = Examination { site, report, probe_receiver: self.probe_receiver };
        Box::pin(all.run()).await
    }
}
