//! `gleaner dead`: what was given up, and what an operator makes of it.

mod choice;
mod decide;
mod letters;
mod list;
mod report;

use clap::{Args, Subcommand};
use domain::job::Kind;
use domain::redrive::PayAgain;
use settings::Settings;

use self::choice::{Chosen, Filter, Target, parse_target};
pub(crate) use self::decide::{Order, WORKED_BY, one};
use super::jobs::{Shown, find, url_of};
use crate::backend::{Site, Store};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Limit, parse_limit};
use crate::output::Output;

/// List what was given up, look at it, try it again, or discard it.
///
/// That is the ledger's dead jobs and, on AWS, the letters of the dead-letter queue: messages that
/// no worker could take. `letter:ID` names a letter, in the lists as well.
#[derive(Debug, Args)]
pub(crate) struct Dead {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(List),
    Show(Show),
    Redrive(Redrive),
    Discard(Discard),
}

/// List dead jobs and letters.
#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    filter: Filter,
    /// Most rows, or `all`; 100 if not given, and all with --json.
    #[arg(long, allow_negative_numbers = true, value_name = "ROWS", value_parser = parse_limit)]
    limit: Option<Limit>,
}

/// Show one dead job with its history, or one letter.
#[derive(Debug, Args)]
struct Show {
    /// The job's id or ref, or `letter:ID`.
    #[arg(value_name = "ID", value_parser = parse_target)]
    id: Target,
    /// The job's kind, where one id is known under several.
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
}

/// Try dead jobs again, each once, with a fresh budget.
///
/// Name them by their ids, from arguments or standard input (`-`), or by a filter. Each is opened
/// as it was found, and noted in its history with who and why; what somebody else has opened
/// meanwhile is left alone, and so is what dies again while the command runs. A running server, or
/// the worker on AWS, works them; without one, `gleaner poll` does. A letter goes back to the queue,
/// if it is a task.
///
/// Prints per job: kind, id and what was done. Ends with 75 when it was interrupted, with 4 when a
/// job is not known, and with 64 when something that was named is not dead or needs --pay-again.
#[derive(Debug, Args)]
struct Redrive {
    #[command(flatten)]
    chosen: Chosen,
    /// Also those that are dead because nobody knows whether their last retry was accepted: another
    /// one may be paid twice. Look for the job at the platform first.
    #[arg(long)]
    pay_again: bool,
}

/// Decide that nobody need look at dead jobs again: they stay dead, as `discarded`, whatever the
/// platform says of them.
///
/// Chosen as for `redrive`, which may still open them by id. A letter is removed from its queue.
#[derive(Debug, Args)]
struct Discard {
    #[command(flatten)]
    chosen: Chosen,
}

impl Dead {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let (order, chosen) = match self.action {
            Action::List(List { filter, limit }) => {
                let store = store(settings).await?;
                return list::run(&store, &filter, limit, output).await;
            }
            Action::Show(show) => return show.run(&store(settings).await?, output).await,
            Action::Redrive(Redrive { chosen, pay_again }) => {
                let pay_again = if pay_again { PayAgain::Accepted } else { PayAgain::Never };
                (Order::Redrive(pay_again), chosen)
            }
            Action::Discard(Discard { chosen }) => (Order::Discard, chosen),
        };
        // Before anything is opened: a list that cannot be used is told first.
        let selection = chosen.selection()?;
        let store = store(settings).await?;
        decide::run(&store, order, &chosen, selection, output).await
    }
}

async fn store(settings: &Settings) -> Result<Store, CliError> {
    Site::of(settings).await?.existing_store()
}

impl Show {
    async fn run(self, store: &Store, output: Output) -> Result<Exit, CliError> {
        match self.id {
            Target::Job(name) => {
                let entry = find(&*store.ledger, &name, self.kind).await?;
                let url = url_of(&*store.ledger, &entry).await?;
                output.print(&Shown::new(entry, url))?;
            }
            Target::Letter(id) => letters::show(store, &id, output).await?,
        }
        Ok(Exit::Ok)
    }
}
