//! [`domain::ports::Control`].

use domain::ports::ControlRow;
use futures_util::future::join_all;

use super::LedgerSubject;

fn row(name: &str, version: u64, value: &str) -> ControlRow {
    ControlRow { name: name.to_owned(), version, value: value.to_owned() }
}

/// A row begins with version 1 and no other.
pub async fn a_control_row_begins_with_version_1(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    assert_eq!(ledger.load_control("pause/all").await.unwrap(), None);
    for version in [0, 2, u64::MAX] {
        assert!(!ledger.write_control(&row("pause/all", version, "{}")).await.unwrap());
    }
    assert_eq!(ledger.load_control("pause/all").await.unwrap(), None);
    assert!(ledger.write_control(&row("pause/all", 1, "{}")).await.unwrap());
    let found = ledger.load_control("pause/all").await.unwrap();
    assert_eq!(found, Some(row("pause/all", 1, "{}")));
}

/// A row goes on by one version at a time; a repetition and a gap change nothing.
pub async fn a_control_row_goes_on_by_one_version(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    for version in 1..=3 {
        let next = row("cursor", version, &format!("\"{version}\""));
        assert!(ledger.write_control(&next).await.unwrap());
        for wrong in [0, version - 1, version, version + 2, u64::MAX] {
            assert!(!ledger.write_control(&row("cursor", wrong, "0")).await.unwrap(), "{wrong}");
        }
        assert_eq!(ledger.load_control("cursor").await.unwrap(), Some(next));
    }
}

/// Of two that read the same version, the one that writes later is told.
pub async fn one_of_many_control_writes_succeeds(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    for version in 1..=2 {
        let rows: Vec<_> =
            (0..20).map(|number| row("spend", version, &number.to_string())).collect();
        let written = join_all(rows.iter().map(|row| ledger.write_control(row))).await;
        let mut winners =
            rows.iter().zip(written).filter(|(_, written)| matches!(written, Ok(true)));
        let (won, _) = winners.next().expect("one write succeeds");
        assert!(winners.next().is_none());
        assert_eq!(ledger.load_control("spend").await.unwrap().as_ref(), Some(won));
    }
}

/// Names that differ in a byte are rows of their own; values come back as they were.
pub async fn control_rows_with_odd_names_and_values_are_kept(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let names = ["a", "A", "a/b", "a%", "a_", "'", "spend/2026-11-30", "\u{e9}", "e\u{301}"];
    let large = format!("\"{}\"", "x".repeat(100_000));
    let values = ["", "null", "{\"a\": \"\u{1f980}\\u0000\"}", " 1 ", "'", large.as_str()];
    let rows: Vec<_> = names
        .into_iter()
        .zip(values.into_iter().cycle())
        .map(|(name, value)| row(name, 1, value))
        .collect();
    for row in &rows {
        assert!(ledger.write_control(row).await.unwrap(), "{}", row.name);
    }
    for row in rows {
        assert_eq!(ledger.load_control(&row.name).await.unwrap(), Some(row));
    }
}
