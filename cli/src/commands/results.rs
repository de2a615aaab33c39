//! `gleaner results`: what is stored, and where.

mod list;
mod locate;
mod show;

use std::fmt;

use clap::{Args, Subcommand};
use domain::job::{JobId, Kind};
use serde::Serialize;
use settings::Settings;

use crate::backend::{Site, Store};
use crate::commands::jobs::{Name, parse_job};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;

/// List stored results, print one, or tell where it lies.
#[derive(Debug, Args)]
pub(crate) struct Results {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the stored results, in the order of kind and date.
    List(list::List),
    /// Print a result: the object of an extract job, or one line per item of a batch or crawl.
    Show(One),
    /// Print the absolute path of a result's file, or of all files of a batch or crawl; on AWS
    /// their URLs.
    Path(One),
}

#[derive(Debug, Args)]
struct One {
    /// The job's id or, where no job has that id, its ref; `ref:REF` is a ref always.
    #[arg(value_name = "ID", value_parser = parse_job)]
    id: Name,
    /// The job's kind, where one id is known under several.
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
}

/// One file.
#[derive(Serialize)]
struct Place<'a> {
    version: u32,
    r#type: &'static str,
    kind: Kind,
    job_id: &'a JobId,
    /// Relative to where the results lie.
    key: &'a str,
    /// The absolute path, or the URL in the bucket.
    path: String,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.path)
    }
}

impl Results {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let store = Site::of(settings).await?.existing_store()?;
        match self.action {
            Action::List(list) => list.run(&store, output).await,
            Action::Show(one) => {
                let located = locate::locate(&store, &one.id, one.kind).await?;
                show::show(&store, &located).await
            }
            Action::Path(one) => {
                let located = locate::locate(&store, &one.id, one.kind).await?;
                path(&store, &located, output).await
            }
        }
    }
}

async fn path(store: &Store, located: &locate::Located, output: Output) -> Result<Exit, CliError> {
    let mut keys = vec![located.key.clone()];
    if located.kind != Kind::Extract {
        keys.extend(show::manifest(store, located).await?.parts.into_iter().map(|part| part.key));
    }
    for key in &keys {
        let path = store.root.locate(key)?;
        let (kind, job_id) = (located.kind, &located.job_id);
        output.print(&Place { version: 1, r#type: "path", kind, job_id, key, path })?;
    }
    Ok(Exit::Ok)
}
