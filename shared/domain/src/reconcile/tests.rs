//! Job lists as they should be, and as they may be, against a ledger.

mod everywhere;
mod lists;
mod pages;
mod scenes;
mod trouble;

use self::lists::Lists;
use super::*;
use crate::entry::{Entry, StateName};
use crate::job::{JobKey, JobStatus};
use crate::ports::{ControlRow, Listed};
use crate::time::before;
use crate::work::tests::rig::{HOUR, MINUTE, Rig, extract, id};

const SECOND: Duration = Duration::from_secs(1);

/// The rules with no time left to webhooks, and each run due.
fn rules() -> Rules {
    Rules { every: Duration::ZERO, threshold: Duration::ZERO, ..Rules::default() }
}

const WET: Manner = Manner { look: Look::Scheduled, is_dry: false };
const DRY: Manner = Manner { look: Look::Scheduled, is_dry: true };

async fn run_with(ports: Ports<'_>, rules: &Rules, manner: Manner) -> Reconciled {
    let mut report = Reconciled::default();
    reconcile(ports, rules, manner, &mut report, &mut |_| {}).await.unwrap();
    report
}

async fn run(ports: Ports<'_>) -> Reconciled {
    run_with(ports, &rules(), WET).await
}

/// An entry of a list, for a job of this age.
fn listed(rig: &Rig, name: &str, status: &str, age: Duration) -> Listed {
    Listed {
        job_id: id(name),
        status: JobStatus::from_api(status),
        created_at: Some(before(rig.now(), age)),
        url: None,
        accepted_urls: None,
        formats: None,
        render_js: None,
    }
}

fn list(rig: &Rig, kind: Kind, name: &str, status: &str, age: Duration) -> JobKey {
    rig.jobs.list_job(kind, listed(rig, name, status, age));
    JobKey::new(kind, id(name))
}

/// So many finished extract jobs, one a second, the first of this age; `prefix0`, `prefix1`, ...
fn many(rig: &Rig, prefix: &str, count: u64, oldest: Duration) -> Vec<Listed> {
    let age = |number| oldest.saturating_sub(SECOND * u32::try_from(number).unwrap());
    let of = |number| listed(rig, &format!("{prefix}{number}"), "completed", age(number));
    (0..count).map(of).collect()
}

fn count(rig: &Rig, name: StateName) -> usize {
    rig.ledger.entries().iter().filter(|entry| entry.state.name() == name).count()
}

/// The saved place of the list of extract jobs.
fn saved(rig: &Rig) -> saved::Saved {
    let rows = rig.ledger.controls();
    let row = rows.iter().find(|row| row.name == "reconcile/extract");
    row.map(|row| serde_json::from_str(&row.value).unwrap()).unwrap_or_default()
}

/// Makes unreadable how far every list was compared.
async fn lose_places(rig: &Rig) {
    for row in rig.ledger.controls() {
        let spoilt = ControlRow { version: row.version + 1, value: "{".to_owned(), ..row };
        assert!(rig.ledger.write_control(&spoilt).await.unwrap());
    }
}
