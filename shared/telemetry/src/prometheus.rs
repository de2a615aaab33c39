//! Prometheus' text format, version 0.0.4.
//!
//! Names begin with `gleaner_`; a counter's ends with `_total`, and what has a unit ends with it.
//! Durations are histograms in seconds.

use std::fmt::Write as _;

use domain::time::Timestamp;

use crate::catalogue::{Counter, Family, Gauge, Metric, Timing, Unit};
use crate::metrics::Metrics;
use crate::timing::Totals;

/// The content type of the answer to a scrape.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// What our names begin with.
const PREFIX: &str = "gleaner_";

/// All metrics as the answer to a scrape, of a process that began at `started`. What was not
/// measured yet is left out.
pub fn exposition(metrics: &Metrics, started: Timestamp) -> String {
    let mut text = String::new();
    // The name that all tools know; it has no prefix.
    let (name, help) = ("process_start_time_seconds", "When the process was started.");
    head(&mut text, name, help, "gauge");
    let started = u64::try_from(started.as_millisecond()).unwrap_or_default();
    line(&mut text, name, "", &millis_as_seconds(started));
    for counter in Counter::ALL {
        let metric = counter.metric();
        let name = format!("{PREFIX}{}_total", metric.name);
        head(&mut text, &name, metric.meaning, "counter");
        line(&mut text, &name, "", &metrics.read(*counter).to_string());
    }
    for gauge in Gauge::ALL {
        let Some(value) = metrics.gauge(*gauge) else { continue };
        let name = name_of(gauge.metric());
        head(&mut text, &name, gauge.metric().meaning, "gauge");
        line(&mut text, &name, "", &value.to_string());
    }
    for family in Family::ALL {
        let counts = metrics.family(*family);
        if counts.is_empty() {
            continue;
        }
        let name = name_of(family.metric());
        head(&mut text, &name, family.metric().meaning, "gauge");
        for (value, count) in counts {
            line(&mut text, &name, &format!("{}=\"{value}\"", family.label()), &count.to_string());
        }
    }
    for timing in Timing::ALL {
        if let Some(totals) = metrics.totals(*timing) {
            histogram(&mut text, timing.metric(), &totals);
        }
    }
    text
}

fn name_of(metric: &Metric) -> String {
    let unit = match metric.unit {
        Unit::Count | Unit::None => "",
        Unit::Seconds => "_seconds",
    };
    format!("{PREFIX}{}{unit}", metric.name)
}

fn histogram(text: &mut String, metric: &Metric, totals: &Totals) {
    let name = name_of(metric);
    head(text, &name, metric.meaning, "histogram");
    let bucket = format!("{name}_bucket");
    for (bound_ms, count) in &totals.up_to {
        let bound = millis_as_seconds(*bound_ms);
        line(text, &bucket, &format!("le=\"{bound}\""), &count.to_string());
    }
    line(text, &bucket, "le=\"+Inf\"", &totals.count.to_string());
    line(text, &format!("{name}_sum"), "", &totals.sum.as_secs_f64().to_string());
    line(text, &format!("{name}_count"), "", &totals.count.to_string());
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    // Writing to a text does not fail.
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn line(text: &mut String, name: &str, label: &str, value: &str) {
    let _ = match label {
        "" => writeln!(text, "{name} {value}"),
        label => writeln!(text, "{name}{{{label}}} {value}"),
    };
}

/// Seconds in decimals, without the errors of binary fractions.
fn millis_as_seconds(millis: u64) -> String {
    let text = format!("{}.{:03}", millis / 1_000, millis % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
