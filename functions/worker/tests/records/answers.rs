//! The records of one event, and what is answered.

use std::path::Path;

use aws_lambda_events::sqs::SqsEvent;
use domain::ports::Clock as _;
use domain::task::Task;
use serde_json::json;
use telemetry::Counter;
use worker::EventError;

use super::rig::{HANGS, PANICS, event, failures, key, rig};

/// Every file of events/worker gets the answer that events/README.md promises.
#[tokio::test]
async fn every_file_gets_the_answer_that_is_promised() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events");
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder.join("worker"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["foreign.json", "many.json", "mixed.json", "one.json"]);
    for name in names {
        let row = page.lines().find(|line| line.contains(&format!("](worker/{name})"))).unwrap();
        let text = std::fs::read_to_string(folder.join("worker").join(&name)).unwrap();
        let event: SqsEvent = serde_json::from_str(&text).unwrap();
        let ids: Vec<_> =
            event.records.iter().map(|record| record.message_id.clone().unwrap()).collect();
        let rig = rig();
        let answer = rig.worker.work(event, rig.in_a_minute()).await.unwrap();
        let wanted: &[usize] = match row.trim_end_matches(['|', ' ']).rsplit_once("| ").unwrap().1 {
            "no failures" => &[],
            "the second failed" => &[1],
            "the first two failed" => &[0, 1],
            other => panic!("{name}: {other}"),
        };
        let mut wanted: Vec<_> = wanted.iter().map(|at| ids.get(*at).unwrap().clone()).collect();
        wanted.sort();
        assert_eq!(failures(&answer), wanted, "{name}");
    }
}

/// WK-01: what is answered is what AWS reads, letter by letter: a list that is there although it is
/// empty, and in it the ids of the messages. Anything else counts as a failure of all records.
#[tokio::test]
async fn an_answer_names_the_messages_as_aws_reads_them() {
    for (bodies, wanted) in [
        (
            ["", "", ""],
            r#"{"batchItemFailures":[{"itemIdentifier":"m0"},{"itemIdentifier":"m1"},{"itemIdentifier":"m2"}]}"#,
        ),
        (["j1", "", "j2"], r#"{"batchItemFailures":[{"itemIdentifier":"m1"}]}"#),
        (["j1", "j2", "j3"], r#"{"batchItemFailures":[]}"#),
    ] {
        let rig = rig();
        let mut tasks = Vec::new();
        for id in bodies {
            tasks.push(if id.is_empty() { String::new() } else { rig.finished(id).await });
        }
        let tasks: Vec<_> = tasks.iter().map(String::as_str).collect();
        let answer = rig.worker.work(event(&tasks), rig.in_a_minute()).await.unwrap();
        assert_eq!(serde_json::to_string(&answer).unwrap(), wanted);
        let stored = bodies.iter().filter(|id| !id.is_empty()).count();
        assert_eq!(rig.results.keys().len(), stored);
    }
}

/// WK-03: a record's trouble is its own, a panic and a message that is no task included.
#[tokio::test]
async fn the_trouble_of_one_record_is_its_alone() {
    let rig = rig();
    let [first, last] = [rig.finished("j1").await, rig.finished("j2").await];
    let panics = rig.announce(PANICS).await;
    let failed = rig.work(&[&first, "{", &panics, "", &last]).await;
    assert_eq!(failed, ["m1", "m2", "m3"]);
    assert_eq!(rig.results.keys().len(), 2);
    let metrics = &rig.worker.metrics;
    assert_eq!(metrics.read(Counter::JobsStored), 2);
    assert_eq!(metrics.read(Counter::TasksPanicked), 1);
    assert_eq!(metrics.read(Counter::TasksFailed), 2);
}

#[tokio::test]
async fn equal_tasks_are_looked_at_once() {
    let rig = rig();
    let task = rig.finished("j1").await;
    assert!(rig.work(&[&task, &task, &task]).await.is_empty());
    assert_eq!((rig.looks(), rig.results.keys().len()), (1, 1));
}

/// A record without an id cannot be named, so that nothing may be called done.
#[tokio::test]
async fn a_record_without_an_id_fails_them_all() {
    let rig = rig();
    let task = rig.finished("j1").await;
    for id in [json!(null), json!("")] {
        let records = json!({ "Records": [{ "messageId": id, "body": task }] });
        let event: SqsEvent = serde_json::from_value(records).unwrap();
        let refused = rig.worker.work(event, rig.in_a_minute()).await;
        assert!(matches!(refused, Err(EventError::NoMessageId)));
    }
    assert_eq!(rig.looks(), 0);
}

/// DQ-06: with no time left at all, not even a look begins: what no time is left for goes on as a
/// message of its own. The record is done, no receipt is spent, and nothing was asked.
#[tokio::test]
async fn what_no_time_is_left_for_is_sent_on() {
    let rig = rig();
    let task = rig.finished("j1").await;
    assert!(rig.work_until(&[&task], rig.clock.now()).await.is_empty());
    assert_eq!((rig.looks(), rig.results.keys().len()), (0, 0));
    assert_eq!(rig.queue.tasks(), [Task { key: key("j1") }]);
    assert!(rig.work(&[&task]).await.is_empty());
    assert_eq!(rig.results.keys().len(), 1);
}

/// An answer that never comes ends before the function does, and keeps nobody up.
#[tokio::test]
async fn a_call_that_hangs_is_given_up_in_time() {
    let rig = rig();
    // This clock jumps over what is waited for, so that the other job has to be first.
    let [hangs, other] = [rig.announce(HANGS).await, rig.finished("a1").await];
    let deadline = rig.in_a_minute();
    assert_eq!(rig.work_until(&[&hangs, &other], deadline).await, ["m0"]);
    assert!(rig.clock.now() <= deadline);
    assert_eq!(rig.results.keys().len(), 1);
}
