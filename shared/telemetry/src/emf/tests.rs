use std::collections::BTreeSet;

use domain::time::{Timestamp, after};
use serde_json::json;

use super::*;
use crate::catalogue::all;

/// CloudWatch's units. Source: `MetricDatum` of Amazon CloudWatch's API.
const UNITS: [&str; 27] = [
    "Seconds",
    "Microseconds",
    "Milliseconds",
    "Bytes",
    "Kilobytes",
    "Megabytes",
    "Gigabytes",
    "Terabytes",
    "Bits",
    "Kilobits",
    "Megabits",
    "Gigabits",
    "Terabits",
    "Percent",
    "Count",
    "Bytes/Second",
    "Kilobytes/Second",
    "Megabytes/Second",
    "Gigabytes/Second",
    "Terabytes/Second",
    "Bits/Second",
    "Kilobits/Second",
    "Megabits/Second",
    "Gigabits/Second",
    "Terabits/Second",
    "Count/Second",
    "None",
];
/// Largest event of CloudWatch Logs, in the smaller of the sizes that were documented over time.
const EVENT_BYTES_MAX: usize = 256 * 1024;
/// Most dimensions in a set, in the smaller of the numbers that were documented over time.
const DIMENSIONS_MAX: usize = 9;

fn now() -> Timestamp {
    after(Timestamp::UNIX_EPOCH, Duration::from_millis(1_796_000_000_123))
}

/// What a document breaks of the specification.
fn broken(document: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let mut must = |holds: bool, rule: &str| {
        if !holds {
            broken.push(rule.to_owned());
        }
    };
    let Some(root) = document.as_object() else { return vec!["the root is an object".to_owned()] };
    let text = document.to_string();
    must(!text.contains('\n') && text.len() <= EVENT_BYTES_MAX, "one line within the size");
    let metadata = root.get("_aws").and_then(Value::as_object);
    let Some(metadata) = metadata else { return vec!["`_aws` is an object".to_owned()] };
    let is_known = |key: &String| matches!(key.as_str(), "Timestamp" | "CloudWatchMetrics");
    must(metadata.keys().all(is_known), "no further members of `_aws`");
    must(metadata.get("Timestamp").is_some_and(Value::is_u64), "`Timestamp` is a whole number");
    let directives = metadata.get("CloudWatchMetrics").and_then(Value::as_array);
    let Some(directives) = directives else {
        return vec!["`CloudWatchMetrics` is a list".to_owned()];
    };
    let is_name = |value: &Value, most: usize| {
        value.as_str().is_some_and(|text| (1..=most).contains(&text.chars().count()))
    };
    let mut names = BTreeSet::new();
    for directive in directives {
        let keys: BTreeSet<_> =
            directive.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        must(
            keys == BTreeSet::from(["Dimensions", "Metrics", "Namespace"]),
            "members of a directive",
        );
        must(is_name(&directive["Namespace"], 255), "`Namespace` is a name");
        let sets = directive["Dimensions"].as_array().cloned().unwrap_or_default();
        must(!sets.is_empty(), "`Dimensions` has a set");
        for set in sets {
            let set = set.as_array().cloned().unwrap_or_default();
            must(set.len() <= DIMENSIONS_MAX, "few dimensions");
            for key in set {
                must(is_name(&key, 250), "a dimension is a name");
                let value = key.as_str().and_then(|key| root.get(key));
                let is_value = value.is_some_and(|value| {
                    is_name(value, 1_024)
                        && value.as_str().is_some_and(|text| {
                            text.is_ascii()
                                && !text.trim().is_empty()
                                && !text.contains(|c: char| c.is_ascii_control())
                        })
                });
                must(is_value, "a dimension's value is printable ASCII text of the root");
            }
        }
        let metrics = directive["Metrics"].as_array().cloned().unwrap_or_default();
        must((1..=METRICS_MAX).contains(&metrics.len()), "at most 100 metrics");
        for metric in metrics {
            let keys: Vec<_> =
                metric.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
            must(keys == ["Name", "Unit"], "members of a metric");
            must(is_name(&metric["Name"], 255), "`Name` is a name");
            must(metric["Unit"].as_str().is_some_and(|unit| UNITS.contains(&unit)), "a known unit");
            let name = metric["Name"].as_str().unwrap_or_default();
            must(names.insert(name.to_owned()), "each metric once");
            must(
                match root.get(name) {
                    Some(Value::Number(_)) => true,
                    Some(Value::Array(values)) => {
                        (1..=VALUES_MAX).contains(&values.len())
                            && values.iter().all(Value::is_number)
                    }
                    _ => false,
                },
                "a metric's value is a number of the root, or at most 100",
            );
        }
    }
    broken
}

#[track_caller]
fn assert_valid(documents: &[Value]) {
    for document in documents {
        assert_eq!(broken(document), Vec::<String>::new(), "{document}");
    }
}

/// The names that a document tells, with their directives' dimensions.
fn told(document: &Value) -> Vec<(String, usize)> {
    let directives = document["_aws"]["CloudWatchMetrics"].as_array().unwrap();
    let names = directives.iter().flat_map(|directive| {
        let dimensions = directive["Dimensions"][0].as_array().unwrap().len();
        directive["Metrics"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |metric| (metric["Name"].as_str().unwrap().to_owned(), dimensions))
    });
    names.collect()
}

#[test]
fn documents_keep_to_the_specification_whatever_was_counted() {
    for role in Role::ALL {
        let emf = Emf::new(role, "gleaner-prod");
        let metrics = Metrics::for_flushes();
        assert_valid(&emf.documents(&metrics, now()));
        for counter in Counter::ALL {
            metrics.add(*counter, u64::MAX);
        }
        for gauge in Gauge::ALL {
            metrics.set(*gauge, u64::MAX);
        }
        for timing in Timing::ALL {
            for ms in 0..5_000 {
                metrics.time(*timing, Duration::from_micros(ms * 1_001));
            }
        }
        let documents = emf.documents(&metrics, now());
        // Each holds at most a hundred values of a timing.
        let has_timings = Timing::ALL.iter().any(|timing| timing.metric().is_told_by(role));
        assert_eq!(documents.len() > 1, has_timings, "{role}");
        assert_valid(&documents);
        let names: Vec<_> = told(&documents[0]).into_iter().map(|(name, _)| name).collect();
        for (kind, metric) in all().filter(|(_, metric)| metric.is_told_by(role)) {
            assert!(names.contains(&metric.name.to_owned()), "{role} {kind} {}", metric.name);
        }
    }
}

#[test]
fn the_judge_of_documents_finds_what_is_wrong() {
    let metrics = Metrics::for_flushes();
    metrics.time(Timing::Task, Duration::from_millis(7));
    let good = Emf::new(Role::Worker, "gleaner").documents(&metrics, now()).remove(0);
    assert_valid(std::slice::from_ref(&good));
    let broken_by = |spoil: &dyn Fn(&mut Value)| {
        let mut document = good.clone();
        spoil(&mut document);
        broken(&document)
    };
    let spoils: [&dyn Fn(&mut Value); 10] = [
        &|document| document["_aws"]["Timestamp"] = json!("2026-11-30T00:00:00Z"),
        &|document| document["_aws"]["Other"] = json!(1),
        &|document| document["_aws"]["CloudWatchMetrics"][0]["Namespace"] = json!(""),
        &|document| document["_aws"]["CloudWatchMetrics"][0]["Dimensions"] = json!([["missing"]]),
        &|document| document["stack"] = json!(""),
        &|document| document["stack"] = json!("gl\u{e9}aner"),
        &|document| document["jobs_dead"] = json!("0"),
        &|document| document["task_duration"] = json!(vec![1; 101]),
        &|document| document["task_duration"] = json!([]),
        &|document| {
            document["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Unit"] = json!("Things");
        },
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        assert!(!broken_by(spoil).is_empty(), "{number}");
    }
}

/// OB-03, SC-07: what an alarm looks at is told as zero by its function, and by each tick of the scheduler.
#[test]
fn zero_is_told_where_an_alarm_looks() {
    let names = |role| {
        let documents = Emf::new(role, "gleaner").documents(&Metrics::for_flushes(), now());
        documents.iter().flat_map(told).map(|(name, _)| name).collect::<BTreeSet<_>>()
    };
    let receiver = names(Role::Receiver);
    assert!(
        receiver.contains("deliveries_rejected") && receiver.contains("deliveries_unavailable")
    );
    assert!(!receiver.contains("deliveries_ignored") && !receiver.contains("jobs_dead"));
    assert!(names(Role::Worker).contains("jobs_dead"));
    let scheduler = names(Role::Scheduler);
    for name in [
        "ticks",
        "jobs_dead",
        "deliveries_rejected",
        "intents_ambiguous",
        "jobs_listed",
        "jobs_missed",
        "list_troubles",
    ] {
        assert!(scheduler.contains(name), "{name}");
    }
}

#[test]
fn a_document_says_what_was_counted_since_the_last_one() {
    let emf = Emf::new(Role::Worker, "gleaner");
    let metrics = Metrics::for_flushes();
    metrics.count(Counter::Starts);
    metrics.add(Counter::JobsStored, 3);
    metrics.count(Counter::JobsPutOff);
    metrics.time(Timing::Task, Duration::from_micros(12_345));
    let documents = emf.documents(&metrics, now());
    assert_eq!(documents.len(), 1);
    let document = &documents[0];
    assert_eq!(document["_aws"]["Timestamp"], json!(1_796_000_000_123_u64));
    assert_eq!((&document["stack"], &document["role"]), (&json!("gleaner"), &json!("worker")));
    assert_eq!((&document["jobs_stored"], &document["starts"]), (&json!(3), &json!(1)));
    assert_eq!(document["task_duration"], json!([12.345]));
    let dimensions = |name: &str| told(document).into_iter().find(|(told, _)| told == name);
    assert_eq!(dimensions("jobs_stored").unwrap().1, 1);
    assert_eq!(dimensions("starts").unwrap().1, 2);
    insta::assert_snapshot!(serde_json::to_string_pretty(document).unwrap());
    let again = &emf.documents(&metrics, now())[0];
    assert_eq!(again["jobs_stored"], json!(0));
    assert_eq!((again.get("starts"), again.get("task_duration")), (None, None));
}

#[test]
fn more_than_a_hundred_values_make_further_documents() {
    let emf = Emf::new(Role::Worker, "gleaner");
    let metrics = Metrics::for_flushes();
    for _ in 0..250 {
        metrics.time(Timing::Task, Duration::from_millis(1));
    }
    let documents = emf.documents(&metrics, now());
    let counts: Vec<_> =
        documents.iter().map(|d| d["task_duration"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [100, 100, 50]);
    assert!(documents[1].get("jobs_dead").is_none(), "what was counted is told once");
    assert_valid(&documents);
}

#[test]
fn each_document_is_one_line() {
    let emf = Emf::new(Role::Scheduler, "gleaner");
    let metrics = Metrics::for_flushes();
    for _ in 0..101 {
        metrics.time(Timing::Tick, Duration::from_secs(1));
    }
    let mut out = Vec::new();
    emf.flush(&metrics, now(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with('\n'));
    assert_eq!(text.lines().count(), 2);
    for line in text.lines() {
        assert_valid(&[serde_json::from_str(line).unwrap()]);
    }
    insta::assert_snapshot!(
        text.lines().next().unwrap().split("\"tick_duration\"").next().unwrap()
    );
}
