//! `gleaner extract`: one URL, at once.

use std::time::Duration;

use clap::Args;
use domain::request::JobRequest;
use settings::Settings;

use super::fetch_flags::{FetchFlags, FormatFlag};
use crate::backend::Site;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{from_arguments, parse_duration};
use crate::output::{Output, write};

/// Extract one URL at once, and print the result; recorded nowhere.
///
/// The call waits for the result and prints it byte for byte; with --json, the platform's whole
/// answer. It is charged, and recorded nowhere: the platform keeps no job for it, and neither the
/// ledger nor the results know of it. For anything that must not be lost or paid twice use
/// `gleaner submit`.
#[derive(Debug, Args)]
pub(crate) struct Extract {
    /// The page.
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    fetch: FetchFlags,
    /// How long the platform may take.
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, default_value = "1m", value_parser = parse_duration)]
    timeout: Duration,
}

impl Extract {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let format = self.format(output)?;
        from_arguments(std::slice::from_ref(&self.url))
            .map_err(|text| CliError::new(Exit::Usage, text))?;
        let mut options = self.fetch.options();
        if options.formats.is_empty() {
            options.formats = vec![format.into()];
        }
        let request = JobRequest::extract(&self.url, options)
            .map_err(|error| CliError::new(Exit::Usage, error.to_string()))?;
        let api = Site::of(settings).await?.api().await?;
        let page = api.extract_now(&request, self.timeout).await?;
        if output == Output::Json {
            output.line(&page.raw.0)?;
            return Ok(Exit::Ok);
        }
        let text = match format {
            FormatFlag::Html => page.html,
            FormatFlag::Markdown => page.markdown,
        };
        let text = text.ok_or_else(|| {
            CliError::new(Exit::Data, "the answer does not hold the format that was asked for")
                .hint("see the whole answer with --json")
        })?;
        write(text.as_bytes())?;
        Ok(Exit::Ok)
    }

    /// The one format that is printed.
    fn format(&self, output: Output) -> Result<FormatFlag, CliError> {
        match self.fetch.format.as_slice() {
            [] => Ok(FormatFlag::Html),
            [format] => Ok(*format),
            [format, ..] if output == Output::Json => Ok(*format),
            _ => Err(CliError::new(Exit::Usage, "only one format can be printed byte for byte")
                .hint("name one --format, or take the whole answer with --json")),
        }
    }
}
