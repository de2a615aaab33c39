use std::collections::BTreeMap;
use std::time::Duration;

use super::*;

fn text_of(metrics: &Metrics) -> String {
    let started = Timestamp::from_millisecond(1_796_000_000_050).unwrap();
    exposition(metrics, started)
}

fn is_name(text: &str) -> bool {
    let first = text.chars().next().unwrap_or(' ');
    (first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Reads the format strictly; the samples by name and labels.
fn read(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut family = ("", "");
    let mut heads: Vec<&str> = Vec::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(is_name(name) && !heads.contains(&name) && !help.contains('\\'), "{line}");
            heads.push(name);
            family = (name, "");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, family.0, "a type follows the help of its name");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            family.1 = kind;
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let rest = name.strip_prefix(family.0).unwrap();
            let allowed: &[&str] =
                if family.1 == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(is_name(name) && allowed.contains(&rest), "{line}");
            for label in labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()) {
                let (name, value) = label.split_once('=').unwrap();
                assert!(is_name(name), "{line}");
                assert!(
                    value.len() > 2 && value.starts_with('"') && value.ends_with('"'),
                    "{line}"
                );
            }
            assert!(samples.insert(series.to_owned(), value.parse().unwrap()).is_none(), "{line}");
        }
    }
    samples
}

#[test]
fn every_metric_is_told_in_the_format() {
    let metrics = Metrics::for_scrapes();
    let samples = read(&text_of(&metrics));
    for counter in Counter::ALL {
        let name = format!("gleaner_{}_total", counter.metric().name);
        assert_eq!(samples.get(&name), Some(&0.0), "{name}");
    }
    for name in ["overdue_age", "entries"] {
        assert!(!samples.keys().any(|series| series.contains(name)), "{name} is not measured yet");
    }
    for gauge in Gauge::ALL {
        metrics.set(*gauge, 7);
    }
    metrics.add(Counter::JobsStored, 3);
    metrics.set_entries(&[("stored".to_owned(), 3), ("dead:gone".to_owned(), 1)].into());
    metrics.time(Timing::Task, Duration::from_millis(20));
    metrics.time(Timing::Task, Duration::from_hours(1));
    let samples = read(&text_of(&metrics));
    for (name, value) in [
        ("process_start_time_seconds", 1_796_000_000.05),
        ("gleaner_jobs_stored_total", 3.0),
        ("gleaner_overdue_age_seconds", 7.0),
        ("gleaner_paused", 7.0),
        ("gleaner_entries{state=\"stored\"}", 3.0),
        ("gleaner_entries{state=\"expected\"}", 0.0),
        ("gleaner_entries_dead{reason=\"gone\"}", 1.0),
        ("gleaner_task_duration_seconds_bucket{le=\"0.01\"}", 0.0),
        ("gleaner_task_duration_seconds_bucket{le=\"0.025\"}", 1.0),
        ("gleaner_task_duration_seconds_bucket{le=\"300\"}", 1.0),
        ("gleaner_task_duration_seconds_bucket{le=\"+Inf\"}", 2.0),
        ("gleaner_task_duration_seconds_count", 2.0),
        ("gleaner_task_duration_seconds_sum", 3_600.02),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name}");
    }
}

#[test]
fn seconds_are_decimals() {
    for (millis, text) in [
        (0, "0"),
        (1, "0.001"),
        (25, "0.025"),
        (500, "0.5"),
        (10_000, "10"),
        (1_796_000_000_050, "1796000000.05"),
    ] {
        assert_eq!(millis_as_seconds(millis), text);
    }
}

#[test]
fn the_answer_to_a_scrape_is_as_it_was() {
    let metrics = Metrics::for_scrapes();
    metrics.count(Counter::Starts);
    metrics.set(Gauge::Paused, 1);
    metrics.set_entries(&BTreeMap::new());
    insta::assert_snapshot!(text_of(&metrics));
}
