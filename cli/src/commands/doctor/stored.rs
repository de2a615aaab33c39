//! Ledger, queue and results: whether they can be reached, read and, as far as that can be told
//! without harm, written.

use std::sync::Arc;

use domain::ports::{Clock as _, ControlRow};
use domain::time::between;
use settings::Backend;
use tokio::task::spawn_blocking;

use super::finding::{AGAIN, Finding};
use super::folder::older_version;
use crate::backend::{Root, Site, Store, advised};
use crate::error::CliError;
use crate::exit::Exit;
use system::SystemClock;

/// The names of the checks.
pub(super) const LEDGER: &str = "ledger";
pub(super) const QUEUE: &str = "queue";
pub(super) const RESULTS: &str = "results";

/// What to do about a file that cannot be opened.
const OTHER_FOLDER: &str = "name another data folder with --data-dir or GLEANER_DATA_DIR, or use a \
                            newer gleaner";
/// A row that nobody writes.
const NO_ROW: &str = "doctor";
/// A version that follows none: where there is no row, a write of it changes nothing.
const NO_VERSION: u64 = 2;

/// Opens what is there. An older ledger is left alone, because opening it would change it.
pub(super) async fn open(site: Arc<Site>) -> Result<Store, Finding> {
    let settings = &site.settings;
    if settings.backend == Backend::Embedded {
        let file = settings.ledger_file();
        if site.is_new() {
            let found = format!("there is no ledger `{}` yet", file.display());
            return Err(Finding::skipped(LEDGER, found));
        }
        if let Some(version) = older_version(&file) {
            let found = format!(
                "`{}` has schema version {version}; the next verb that opens it brings it to \
                 version {}",
                file.display(),
                embedded::SCHEMA_VERSION
            );
            let advice = "stop an older `gleaner serve` before; this takes seconds for a million \
                          jobs";
            return Err(Finding::warning(LEDGER, found, advice));
        }
    }
    // Opening a file may wait for whoever writes it.
    let opening = spawn_blocking(move || site.existing_store()).await;
    let opened = opening
        .unwrap_or_else(|error| Err(CliError::new(Exit::Bug, "cannot open it").because(error)));
    opened.map_err(|error| Finding::trouble(LEDGER, &error, OTHER_FOLDER))
}

/// Reads the ledger, and makes a write whose condition cannot hold.
pub(super) async fn ledger(store: &Store) -> Finding {
    let row = ControlRow { name: NO_ROW.to_owned(), version: NO_VERSION, value: "{}".to_owned() };
    let begun = SystemClock.now();
    let tried = async {
        store.ledger.load_control(NO_ROW).await?;
        store.ledger.write_control(&row).await
    };
    match tried.await {
        Ok(_) => {
            let millis = between(begun, SystemClock.now()).as_millis();
            Finding::ok(LEDGER, format!("it can be read and written ({millis} ms for both)"))
        }
        Err(error) => Finding::trouble(LEDGER, &advised(error.into(), &store.settings), AGAIN),
    }
}

/// Counts what waits. To send something would make work.
pub(super) async fn queue(store: &Store) -> Finding {
    match store.tasks.count_waiting().await {
        Ok(count) => Finding::ok(QUEUE, format!("it can be read; {count} tasks wait")),
        Err(error) => Finding::trouble(QUEUE, &advised(error.into(), &store.settings), AGAIN),
    }
}

/// Looks for one object. A folder was written to when it was opened; to put an object into a
/// bucket would tell whoever listens to it.
pub(super) async fn results(store: &Store) -> Finding {
    let found = match &store.root {
        Root::Folder(folder) => format!("`{}` can be read and written", folder.display()),
        #[cfg(feature = "aws")]
        Root::Bucket(start) => {
            format!("{start} can be read; whether it can be written is not tried")
        }
    };
    match store.results.list("", None, 1).await {
        Ok(_) => Finding::ok(RESULTS, found),
        Err(error) => Finding::trouble(RESULTS, &advised(error.into(), &store.settings), AGAIN),
    }
}
