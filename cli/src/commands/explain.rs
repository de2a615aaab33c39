//! `gleaner explain`: one job's story, out of the ledger, the platform, its delivery logs and the
//! stored result.

mod looks;
mod told;

use clap::Args;
use domain::explain::{Known, Sight, explain};
use domain::job::{JobKey, Kind};
use domain::pause::{Pauses, Scope};
use domain::ports::Clock as _;
use settings::Settings;
use system::SystemClock;

use self::looks::{Looks, Subject};
use self::told::Told;
use crate::backend::Site;
use crate::commands::jobs::{Name, find_all, only, parse_job, unknown};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;

/// Tell everything that is known of one job, how it stands, and what will happen next.
///
/// The ledger's row and submission, the platform's answer, the delivery logs and the stored result
/// are read; nothing is changed, and nothing is paid for.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The job's id or, where no job has that id, its ref; `ref:REF` is a ref always.
    #[arg(value_name = "ID", value_parser = parse_job)]
    id: Name,
    /// The job's kind, where one id is known under several.
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
    /// Ask the ledger and the result store only.
    #[arg(long)]
    offline: bool,
}

impl Explain {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let site = Site::of(settings).await?;
        let store = site.existing_store()?;
        let ledger = &*store.ledger;
        let found = only(&self.id, find_all(ledger, &self.id, self.kind).await?)?;
        let looks = Looks::new(&site, self.offline).await;
        let subject = match found {
            Some(entry) => {
                // The platform knows no job by the id of a follow-up.
                let sight = match entry.follow_up {
                    None => looks.sight(&entry.key).await,
                    Some(_) => Sight::NotAsked,
                };
                Subject { key: entry.key.clone(), entry: Some(entry), sight }
            }
            None => looks.stranger(self.key_of_stranger()?, self.kind).await,
        };
        let Subject { key, entry, sight } = subject;
        let submission = entry.as_ref().and_then(|entry| entry.link.as_ref());
        let intent = match submission {
            Some(link) => ledger.load_intent(&link.submission).await?,
            None => None,
        };
        let now = SystemClock.now();
        let pause = Pauses::default().active(ledger, Scope::All, now).await?;
        let deliveries = looks.deliveries(&key).await;
        let object = looks::object(&*store.results, entry.as_ref()).await;
        let known = Known {
            now,
            limits: &store.settings.limits,
            key: &key,
            entry: entry.as_ref(),
            intent: intent.as_ref(),
            sight: &sight,
            deliveries: &deliveries.rows,
            object: &object,
            pause: pause.as_ref(),
        };
        let mut explanation = explain(known);
        explanation.remarks.extend(deliveries.trouble);
        let state = entry.as_ref().map(|entry| entry.state.name());
        output.print(&Told::new(&key, state, explanation))?;
        Ok(Exit::Ok)
    }

    /// The id of a job that the ledger does not know, as the platform may know it.
    fn key_of_stranger(&self) -> Result<JobKey, CliError> {
        let id = self.id.id.clone().ok_or_else(|| unknown(&self.id))?;
        Ok(JobKey::new(self.kind.unwrap_or(Kind::Extract), id))
    }
}
