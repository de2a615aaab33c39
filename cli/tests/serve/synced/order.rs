//! Whether what a process said was durable when it said so, judged by its trace.

use std::collections::{BTreeMap, BTreeSet};

use super::trace::Call;

/// Bytes of the header of a write-ahead log. Source: `SQLite`'s file format, "The WAL File".
const LOG_HEADER: usize = 32;
/// Bytes of the header before each page in a write-ahead log. Source: `SQLite`'s file format,
/// "The WAL Frame Header".
const FRAME_HEADER: usize = 24;
/// Bytes of a page.
const PAGE: usize = 4_096;
/// Where a frame's header holds the size of the database: 0 unless the frame ends a transaction.
const COMMIT_MARK: std::ops::Range<usize> = 4..8;

/// A 2xx that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The job that the request told of.
    pub(crate) job_id: String,
    /// Line on which the answer began to be written.
    pub(crate) began: usize,
}

/// What a 2xx or a `stored` lacked when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lapse {
    /// No committed transaction before it holds the row.
    NoRow,
    /// The transaction was not synced between its last write and the answer.
    RowNotSynced,
    /// No object was put before the row said that there is one.
    NoObject,
    /// The object's bytes were not synced before it got its name.
    ObjectNotSynced,
    /// The folder that holds the name was not synced before the row said so.
    NameNotSynced,
    /// A folder above it was made and not synced.
    FolderNotSynced,
}

/// Length of a job's id in these tests: a UUID.
const JOB_ID: usize = 36;

/// The states that a row is looked for in.
const RECEIVED: &str = "received";
const STORED: &str = "stored";

/// A job's id, and the state of its row.
type Row = (String, &'static str);

/// The requests of each connection that were answered 2xx.
///
/// # Panics
/// When an answer belongs to no request with one job.
pub(crate) fn answers(calls: &[Call]) -> Vec<Answer> {
    let mut events: Vec<(usize, &Call)> = Vec::new();
    for call in calls.iter().filter(|call| call.file().starts_with("socket:")) {
        if call.is(&["read", "readv", "recvfrom", "recvmsg"]) {
            events.push((call.ended, call));
        } else if call.is(&["write", "writev", "sendto", "sendmsg"]) {
            events.push((call.began, call));
        }
    }
    events.sort_by_key(|(line, _)| *line);
    let mut heard: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let mut answers = Vec::new();
    for (line, call) in events {
        let bytes = call.bytes();
        if call.is(&["read", "readv", "recvfrom", "recvmsg"]) {
            heard.entry(call.file()).or_default().extend(bytes);
            continue;
        }
        let request = heard.remove(call.file()).unwrap_or_default();
        // What the process itself asks others is no answer.
        if request.starts_with(b"POST ") && bytes.starts_with(b"HTTP/1.1 2") {
            answers.push(Answer { job_id: only_job(&request), began: line });
        }
    }
    answers
}

fn only_job(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    let jobs: Vec<_> = text.split(r#""job_id":""#).skip(1).collect();
    assert_eq!(jobs.len(), 1, "one job in a request: {text}");
    jobs[0].split('"').next().unwrap().to_owned()
}

/// A transaction in the write-ahead log.
#[derive(Debug, Default)]
struct Transaction {
    /// The rows on its pages, with their states.
    rows: BTreeSet<Row>,
    began: usize,
    ended: usize,
    /// Line on which the first sync ended that began after the transaction was written.
    synced: Option<usize>,
}

/// The rows that a page shows in one of the states: id and state lie beside each other.
fn rows(page: &[u8]) -> impl Iterator<Item = Row> {
    let shown = move |state: &'static str| {
        let is_there = move |at: &usize| page[*at..].starts_with(state.as_bytes());
        let row = move |at: usize| (String::from_utf8_lossy(&page[at - JOB_ID..at]).into(), state);
        (JOB_ID..page.len()).filter(is_there).map(row)
    };
    [RECEIVED, STORED].into_iter().flat_map(shown)
}

/// The transactions of a log, in order. One whose sync failed is none: its pages may be lost, and
/// are written anew by whoever tries again.
fn transactions(calls: &[Call], wal: &str) -> Vec<Transaction> {
    let mut all: Vec<Transaction> = Vec::new();
    let mut open = Transaction::default();
    let (mut is_begun, mut is_last) = (false, false);
    for call in calls.iter().filter(|call| call.file() == wal) {
        if call.syncs(wal) {
            for one in all.iter_mut().filter(|one| one.synced.is_none() && one.ended < call.began) {
                one.synced = Some(call.ended);
            }
        } else if ["fsync", "fdatasync"].contains(&call.name.as_str()) {
            all.retain(|one| one.synced.is_some());
        } else if call.writes(wal) {
            let data = call.bytes();
            match data.len() {
                LOG_HEADER => continue,
                FRAME_HEADER => is_last = data[COMMIT_MARK].iter().any(|byte| *byte != 0),
                PAGE => open.rows.extend(rows(&data)),
                other => panic!("{other} bytes are neither a frame's header nor its page"),
            }
            if !std::mem::replace(&mut is_begun, true) {
                open.began = call.began;
            }
            open.ended = call.ended;
            if data.len() == PAGE && is_last {
                all.push(std::mem::take(&mut open));
                is_begun = false;
            }
        }
    }
    all
}

/// The first transaction that holds each row.
fn first_written(transactions: &[Transaction]) -> BTreeMap<&Row, &Transaction> {
    let mut first = BTreeMap::new();
    for transaction in transactions {
        for row in &transaction.rows {
            first.entry(row).or_insert(transaction);
        }
    }
    first
}

/// Checks that each 2xx was written after a sync of the log that began after the write of the
/// job's row.
pub(crate) fn lapses_of_answers(calls: &[Call], wal: &str) -> Vec<(String, Lapse)> {
    let transactions = transactions(calls, wal);
    let first = first_written(&transactions);
    let judge = |answer: Answer| {
        let lapse = match first.get(&(answer.job_id.clone(), RECEIVED)) {
            Some(one) if one.synced.is_some_and(|line| line < answer.began) => return None,
            Some(one) if one.ended < answer.began => Lapse::RowNotSynced,
            _ => Lapse::NoRow,
        };
        Some((answer.job_id, lapse))
    };
    answers(calls).into_iter().filter_map(judge).collect()
}

/// Checks that the object of each job was durable, name and all, before the row said `stored`.
pub(crate) fn lapses_of_results(
    calls: &[Call],
    wal: &str,
    jobs: &[String],
) -> Vec<(String, Lapse)> {
    let transactions = transactions(calls, wal);
    let first = first_written(&transactions);
    let judge = |job_id: &String| {
        let lapse = match first.get(&(job_id.clone(), STORED)) {
            Some(written) => lapse_of_result(calls, job_id, written.began)?,
            None => Lapse::NoRow,
        };
        Some((job_id.clone(), lapse))
    };
    jobs.iter().filter_map(judge).collect()
}

fn lapse_of_result(calls: &[Call], job_id: &str, stored: usize) -> Option<Lapse> {
    let link = calls.iter().find(|call| {
        let is_named = call.data.last().is_some_and(|name| text(name).contains(job_id));
        call.is(&["link", "linkat"]) && is_named && call.ended < stored
    });
    let Some(link) = link else { return Some(Lapse::NoObject) };
    let names: Vec<_> = link.data.iter().map(|name| text(name)).collect();
    let (staged, object) = (&names[0], &names[1]);
    let written = calls.iter().filter(|call| call.writes(staged) && call.ended < link.began);
    let Some(written) = written.map(|call| call.ended).max() else { return Some(Lapse::NoObject) };
    let is_between = |call: &Call| call.began > written && call.ended < link.began;
    if !calls.iter().any(|call| call.syncs(staged) && is_between(call)) {
        return Some(Lapse::ObjectNotSynced);
    }
    names_synced(calls, object, link.ended, stored)
}

/// Checks that the name of a file that was made on line `made` was synced before line `before`,
/// and those of the folders above it that the process made.
pub(crate) fn names_synced(
    calls: &[Call],
    file: &str,
    made: usize,
    before: usize,
) -> Option<Lapse> {
    let is_synced = |folder: &str, after: usize| {
        calls.iter().any(|call| call.syncs(folder) && call.began > after && call.ended < before)
    };
    let (mut folder, _) = file.rsplit_once('/')?;
    if !is_synced(folder, made) {
        return Some(Lapse::NameNotSynced);
    }
    while let Some((above, _)) = folder.rsplit_once('/') {
        let made = calls.iter().find(|call| makes(call, folder));
        if made.is_some_and(|made| !is_synced(above, made.ended)) {
            return Some(Lapse::FolderNotSynced);
        }
        folder = above;
    }
    None
}

fn text(name: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(name)
}

fn makes(call: &Call, folder: &str) -> bool {
    call.is(&["mkdir", "mkdirat"]) && call.bytes() == folder.as_bytes()
}

#[cfg(test)]
mod tests;
