use super::*;

const WAL: &str = "/d/ledger.db-wal";
const JOB: &str = "00000000-0000-4000-8000-000000000001";

/// A page of the log with a row, as `strace` writes it down.
fn page(row: &str) -> String {
    format!(r#""{row}{}", 4096, 56"#, r"\0".repeat(PAGE - row.len()))
}

/// A trace in which each step is a line of its own, `{row}` being the job's row as received.
fn trace(steps: &[&str]) -> Vec<Call> {
    let row = page(&format!("{JOB}received"));
    let stored = page(&format!("{JOB}stored"));
    let line = |step: &&str| match *step {
        "request" => format!(
            r#"7 recvfrom(4<socket:[1]>, "POST /webhook\r\n\r\n{{\"job_id\":\"{JOB}\"}}", 99) = 90"#
        ),
        "answer" => {
            r#"7 writev(4<socket:[1]>, [{iov_base="HTTP/1.1 202 Accepted"}], 1) = 21"#.into()
        }
        "frame" => format!(r#"9 pwrite64(5<{WAL}>, "\0\0\0\2{}", 24, 32) = 24"#, r"\0".repeat(20)),
        "last frame" => {
            format!(r#"9 pwrite64(5<{WAL}>, "\0\0\0\2\0\0\0\3{}", 24, 32) = 24"#, r"\0".repeat(16))
        }
        "row" => format!(r"9 pwrite64(5<{WAL}>, {row}) = 4096"),
        "row begins" => format!(r"9 pwrite64(5<{WAL}>, {row} <unfinished ...>"),
        "row ends" => "9 <... pwrite64 resumed>) = 4096".into(),
        "stored" => format!(r"9 pwrite64(5<{WAL}>, {stored}) = 4096"),
        "other page" => format!(r"9 pwrite64(5<{WAL}>, {}) = 4096", page("")),
        "sync" => format!("9 fdatasync(5<{WAL}>) = 0"),
        "sync begins" => format!("8 fsync(5<{WAL}> <unfinished ...>"),
        "sync ends" => "8 <... fsync resumed>) = 0".into(),
        "sync fails" => format!("9 fsync(5<{WAL}>) = -1 EIO (Input/output error)"),
        "sync of another file" => "9 fsync(6</d/ledger.db>) = 0".into(),
        "folder" => r#"6 mkdir("/d/r", 0777) = 0"#.into(),
        "above synced" => "6 fsync(7</d>) = 0".into(),
        "bytes" => r#"6 write(7</d/r/x#1>, "abc", 3) = 3"#.into(),
        "bytes synced" => "6 fsync(7</d/r/x#1>) = 0".into(),
        "link" => format!(r#"6 linkat(AT_FDCWD</>, "/d/r/x#1", AT_FDCWD</>, "/d/r/{JOB}", 0) = 0"#),
        "name synced" => "6 fsync(7</d/r>) = 0".into(),
        other => panic!("no step: {other}"),
    };
    super::super::trace::parse(&steps.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// What is found in a trace that has one answer.
fn answered(steps: &[&str]) -> Option<Lapse> {
    let calls = trace(steps);
    assert_eq!(answers(&calls).len(), 1);
    let found = lapses_of_answers(&calls, WAL);
    assert!(found.iter().all(|(job, _)| job == JOB));
    found.first().map(|(_, lapse)| *lapse)
}

#[test]
fn a_sync_between_write_and_answer_is_what_is_asked_for() {
    assert_eq!(answered(&["request", "last frame", "row", "sync", "answer"]), None);
    let begun = ["request", "last frame", "row", "sync begins", "sync ends", "answer"];
    assert_eq!(answered(&begun), None);
    let shared = ["request", "frame", "row", "last frame", "other page", "sync", "answer"];
    assert_eq!(answered(&shared), None);
}

#[test]
fn an_answer_without_its_sync_is_found() {
    let unsynced = Some(Lapse::RowNotSynced);
    assert_eq!(answered(&["request", "last frame", "row", "answer"]), unsynced);
    assert_eq!(answered(&["request", "last frame", "row", "answer", "sync"]), unsynced, "late");
    let early = ["request", "sync", "last frame", "row", "answer"];
    assert_eq!(answered(&early), unsynced, "early");
    let another = ["request", "last frame", "row", "sync of another file", "answer"];
    assert_eq!(answered(&another), unsynced, "of another file");
}

#[test]
fn a_sync_that_overlaps_write_or_answer_does_not_count() {
    let unsynced = Some(Lapse::RowNotSynced);
    let before = ["request", "last frame", "sync begins", "row", "sync ends", "answer"];
    assert_eq!(answered(&before), unsynced);
    let within =
        ["request", "last frame", "row begins", "sync begins", "row ends", "sync ends", "answer"];
    assert_eq!(answered(&within), unsynced);
    let over = ["request", "last frame", "row", "sync begins", "answer", "sync ends"];
    assert_eq!(answered(&over), unsynced);
}

#[test]
fn a_row_counts_when_its_transaction_is_whole() {
    let open = ["request", "frame", "row", "sync", "answer", "last frame", "other page", "sync"];
    assert_eq!(answered(&open), Some(Lapse::NoRow));
    let early = ["request", "frame", "row", "sync", "last frame", "other page", "answer"];
    assert_eq!(answered(&early), Some(Lapse::RowNotSynced));
    assert_eq!(answered(&["request", "answer", "last frame", "row", "sync"]), Some(Lapse::NoRow));
    assert_eq!(
        answered(&["request", "last frame", "stored", "sync", "answer"]),
        Some(Lapse::NoRow)
    );
}

#[test]
fn a_failed_sync_voids_what_was_written_before_it() {
    let given_up = ["request", "last frame", "row", "sync fails", "sync", "answer"];
    assert_eq!(answered(&given_up), Some(Lapse::NoRow));
    let anew =
        ["request", "last frame", "row", "sync fails", "last frame", "row", "sync", "answer"];
    assert_eq!(answered(&anew), None);
}

/// The steps of a result that is stored as it should be.
const STORING: [&str; 8] = [
    "folder",
    "above synced",
    "bytes",
    "bytes synced",
    "link",
    "name synced",
    "last frame",
    "stored",
];

fn found_stored(steps: &[&str]) -> Option<Lapse> {
    lapses_of_results(&trace(steps), WAL, &[JOB.to_owned()]).first().map(|(_, lapse)| *lapse)
}

#[test]
fn each_step_of_a_result_is_missed() {
    assert_eq!(found_stored(&STORING), None);
    for (step, lapse) in [
        ("above synced", Lapse::FolderNotSynced),
        ("bytes", Lapse::NoObject),
        ("bytes synced", Lapse::ObjectNotSynced),
        ("link", Lapse::NoObject),
        ("name synced", Lapse::NameNotSynced),
        ("stored", Lapse::NoRow),
    ] {
        let left: Vec<_> = STORING.into_iter().filter(|other| *other != step).collect();
        assert_eq!(found_stored(&left), Some(lapse), "without {step}");
    }
}

#[test]
fn each_step_of_a_result_has_its_place() {
    for (step, behind, lapse) in [
        ("bytes synced", "link", Lapse::ObjectNotSynced),
        ("bytes", "bytes synced", Lapse::ObjectNotSynced),
        ("link", "name synced", Lapse::NameNotSynced),
        ("name synced", "stored", Lapse::NameNotSynced),
        ("above synced", "stored", Lapse::FolderNotSynced),
        ("folder", "above synced", Lapse::FolderNotSynced),
    ] {
        let mut steps = STORING.to_vec();
        steps.retain(|other| *other != step);
        let at = steps.iter().position(|other| *other == behind).unwrap();
        steps.insert(at + 1, step);
        assert_eq!(found_stored(&steps), Some(lapse), "{step} after {behind}");
    }
}
