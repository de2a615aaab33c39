use domain::entry::{Cause, DeadReason, Entry, Link, State};
use domain::limits::Limits;
use domain::ports::{EntryFilter, Inspection};
use rusqlite::params;

use super::*;
use crate::row::{EntryRow, IntentRow};
use crate::testing::{clock, entry, extract, intent, start};
use crate::{Settings, SqliteStore};

fn insert(connection: &Connection, row: &EntryRow) {
    connection
        .execute(
            "INSERT INTO entries (kind, job_id, state, generation, version, due_at, expires_at, \
             dead_reason, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                row.kind,
                row.job_id,
                row.state,
                row.generation,
                row.version,
                row.due_at,
                row.expires_at,
                row.dead_reason,
                row.json,
            ],
        )
        .unwrap();
}

fn with_ref(id: &str, reference: Option<&str>) -> Entry {
    let mut row = entry(id);
    row.link = Some(Link {
        submission: "s".to_owned(),
        lineage: row.key.job_id.clone(),
        attempt: 0,
        base: 0,
        request: None,
        reference: reference.map(str::to_owned),
    });
    row
}

/// Rows of version 1 are found by their refs and are counted, also those that do not decode.
#[tokio::test]
async fn version_1_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(UPGRADES[0]).unwrap();
    old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    let gone = State::Dead { reason: DeadReason::Gone, error: None, result: None };
    let gone =
        with_ref("c", Some("ours \u{e9}")).settled(gone, Cause::Work, start(), &Limits::default());
    let rows = [entry("a"), with_ref("b", Some("ours \u{e9}")), gone, with_ref("d", None)];
    for row in &rows {
        insert(&old, &EntryRow::encode(row).unwrap());
    }
    for (id, json) in [("e", "{"), ("f", r#"{"link":{"ref":7}}"#)] {
        let row = EntryRow::encode(&entry(id)).unwrap();
        insert(&old, &EntryRow { json: json.to_owned(), ..row });
    }
    let open = intent("run", 0, extract("https://example.com/"));
    let row = IntentRow::encode(&open).unwrap();
    old.execute(
        "INSERT INTO intents (id, run, position, kind, state, version, due_at, expires_at, json) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            row.id,
            row.run,
            row.position,
            row.kind,
            row.state,
            row.version,
            row.due_at,
            row.expires_at,
            row.json,
        ],
    )
    .unwrap();
    drop(old);
    let store = SqliteStore::open(&path, clock(), Settings::default()).unwrap();
    let filter =
        EntryFilter { reference: Some("ours \u{e9}".to_owned()), ..EntryFilter::default() };
    let found = store.list_entries(&filter, None, 10).await.unwrap().items;
    assert_eq!(found, [rows[1].clone(), rows[2].clone()]);
    let counts = store.count_entries().await.unwrap();
    let wanted = [("dead", 1), ("dead:gone", 1), ("expected", 5)];
    assert_eq!(counts, wanted.map(|(name, rows)| (name.to_owned(), rows)).into());
    assert_eq!(store.count_intents().await.unwrap(), [("open".to_owned(), 1)].into());
}
