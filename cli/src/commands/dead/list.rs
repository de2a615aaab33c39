//! The list of the dead.

use domain::ports::Clock as _;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use system::SystemClock;

use super::choice::Filter;
use super::letters;
use super::report::DeadJob;
use crate::backend::Store;
use crate::commands::jobs::{ROWS_AT_ONCE, url_of};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::Limit;
use crate::output::{Output, note, note_unreadable};

/// Rows read at once.
const PAGE: u32 = 500;

/// Prints dead entries, then letters.
///
/// # Errors
/// Those of the ledger and the dead-letter queue.
pub(super) async fn run(
    store: &Store,
    filter: &Filter,
    limit: Option<Limit>,
    output: Output,
) -> Result<Exit, CliError> {
    let now = SystemClock.now();
    let mut left = Limit::rows(limit, output);
    let mut more = false;
    let mut cursor = None;
    while filter.wants_entries() && !more {
        let asked = filter.of_entries();
        let page = store.ledger.list_entries(&asked, cursor.as_ref(), PAGE).await?;
        let mut chosen: Vec<_> =
            page.items.into_iter().filter(|entry| filter.has(entry, now)).collect();
        more = chosen.len() > left;
        chosen.truncate(left);
        left -= chosen.len();
        let urls: Vec<_> = stream::iter(&chosen)
            .map(|entry| url_of(&*store.ledger, entry))
            .buffered(ROWS_AT_ONCE)
            .try_collect()
            .await?;
        for (entry, url) in chosen.iter().zip(&urls) {
            output.print(&DeadJob::of(entry, url.as_deref()))?;
        }
        note_unreadable(&page.unreadable);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    if filter.wants_letters() && !more {
        more = letters::list(store, filter, left, output).await?;
    }
    if more {
        note("note: there are more; raise --limit, or narrow them down");
    }
    Ok(Exit::Ok)
}
