use super::*;

fn report() -> Report {
    Report {
        version: 1,
        balanced: true,
        seed: 1,
        wall_secs: 20.0,
        submitted: Submitted { accepted: 200, refused: 0, ambiguous: 0, unfinished: 0 },
        platform_jobs: 210,
        never_ended: 2,
        ledger: [("dead:resubmits_exhausted".to_owned(), 3), ("superseded".to_owned(), 4)].into(),
        open: 0,
        ambiguous: 0,
        judge: Judgement::default(),
        calls_per_job: 1.25,
        calls: BTreeMap::new(),
        server: BTreeMap::new(),
        webhooks: BTreeMap::new(),
        kills: 3,
        kills_while_rotating: 1,
        panicked: false,
        rotation: Some(Rotated { webhooks: 3, of: 3, runs: 4, secs: 9.0, trouble: None }),
        genuine_answers: [("202".to_owned(), 200), ("503".to_owned(), 1)].into(),
        missigned_answers: [("401".to_owned(), 10)].into(),
        ways: [("webhook".to_owned(), 190)].into(),
        healing: Healing::default(),
        audit: Some(Audited { clean: true, listed: 210, whole: 200, ..Audited::default() }),
        finished_to_stored_p50_secs: 0.05,
        finished_to_stored_p99_secs: 3.2,
        dir: None,
    }
}

#[test]
fn the_columns_are_aligned_whatever_the_reasons() {
    let text = report().to_string();
    let (_, table) = text.split_once("\n\n").unwrap();
    // Names are left, numbers right: the last digit of each stands in the same column.
    for (name, column) in [("submitted", "200"), ("dead: resubmits_exhausted", "3"), ("lost", "0")]
    {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(line.rfind(column), Some("dead: resubmits_exhausted".len() + 9 - column.len()));
    }
    assert!(text.ends_with("results                    (removed; --dir keeps them)"), "{text}");
}

#[test]
fn what_was_done_to_the_server_is_told_after_the_table() {
    let text = report().to_string();
    assert!(text.contains("\nserver killed 3 times, 1 in the rotation\n"), "{text}");
    assert!(text.contains("\n3 of 3 secrets replaced in 9.0 s, 4 runs\n"), "{text}");
    assert!(text.contains("\naudit clean: 210 jobs listed, 200 objects whole, 0.0 s\n"), "{text}");
}

#[test]
fn a_folder_that_is_kept_is_named() {
    let kept = Report { dir: Some("some/folder".to_owned()), ..report() };
    assert!(kept.to_string().ends_with("  some/folder"), "{kept}");
    assert_eq!(serde_json::to_value(report()).unwrap()["dir"], serde_json::Value::Null);
}
