//! CloudWatch's embedded metric format: JSON lines on standard output, of which CloudWatch Logs
//! makes metrics.
//!
//! A document holds what was counted since the last one, so that the statistic of an alarm is the
//! sum. A counter that an alarm looks at is told when it is zero, too. Durations are in milliseconds.
//! The dimensions are the stack, and the role where several functions count separately.

use std::io::{self, Write};
use std::time::Duration;

use domain::time::Timestamp;
use serde_json::{Map, Value, json};
use settings::Role;

use crate::catalogue::{Counter, Dimensions, Gauge, Metric, Timing, Unit, Zero};
use crate::metrics::Metrics;

/// The namespace of all metrics.
pub const NAMESPACE: &str = "Gleaner";
/// Most values of one metric in a document. Source: Amazon CloudWatch User Guide, "Specification:
/// Embedded metric format".
pub const VALUES_MAX: usize = 100;
/// Most metrics in a document. Source: as above.
pub const METRICS_MAX: usize = 100;
/// Dimension and member of the stack.
const STACK: &str = "stack";
/// Dimension and member of the role.
const ROLE: &str = "role";

/// Writes the metrics of one function.
#[derive(Debug, Clone)]
pub struct Emf {
    role: Role,
    stack: String,
}

impl Emf {
    /// For a function of a stack. An empty name of the stack would be no dimension.
    pub fn new(role: Role, stack: &str) -> Self {
        Self { role, stack: stack.to_owned() }
    }

    /// Takes what was counted since the last call, and writes it as one line or, where something
    /// was timed more than a hundred times, as several. To be called at the end of each invocation,
    /// when it is over: what is counted afterwards is in the next one's.
    ///
    /// # Errors
    /// When it cannot be written; what was taken is lost then.
    pub fn flush(&self, metrics: &Metrics, now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
        for document in self.documents(metrics, now) {
            // As one write, so that no other line comes in between.
            out.write_all(format!("{document}\n").as_bytes())?;
        }
        out.flush()
    }

    /// Takes what was counted since the last call, as documents.
    pub fn documents(&self, metrics: &Metrics, now: Timestamp) -> Vec<Value> {
        let is_ours = |metric: &Metric| metric.is_told_by(self.role);
        let mut told = Vec::new();
        for counter in Counter::ALL.iter().filter(|counter| is_ours(counter.metric())) {
            let (metric, count) = (counter.metric(), metrics.take(*counter));
            if count > 0 || metric.zero == Zero::Told {
                told.push((metric, json!(count)));
            }
        }
        for gauge in Gauge::ALL.iter().filter(|gauge| is_ours(gauge.metric())) {
            told.extend(metrics.take_gauge(*gauge).map(|value| (gauge.metric(), json!(value))));
        }
        // The first document holds all of these; the others have values alone.
        let mut documents = vec![told];
        for timing in Timing::ALL.iter().filter(|timing| is_ours(timing.metric())) {
            let values = metrics.take_values(*timing);
            for (number, values) in values.chunks(VALUES_MAX).enumerate() {
                let values: Vec<f64> = values.iter().map(|took| millis(*took)).collect();
                if number == documents.len() {
                    documents.push(Vec::new());
                }
                if let Some(document) = documents.get_mut(number) {
                    document.push((timing.metric(), json!(values)));
                }
            }
        }
        documents.retain(|told| !told.is_empty());
        documents.into_iter().map(|told| self.document(&told, now)).collect()
    }

    fn document(&self, told: &[(&Metric, Value)], now: Timestamp) -> Value {
        let directives: Vec<Value> = [Dimensions::Stack, Dimensions::StackAndRole]
            .into_iter()
            .filter_map(|dimensions| {
                let metrics: Vec<Value> = told
                    .iter()
                    .filter(|(metric, _)| metric.dimensions == dimensions)
                    .map(|(metric, value)| {
                        json!({ "Name": metric.name, "Unit": unit(metric, value) })
                    })
                    .collect();
                let keys: &[&str] = match dimensions {
                    Dimensions::Stack => &[STACK],
                    Dimensions::StackAndRole => &[STACK, ROLE],
                };
                let directive =
                    json!({ "Namespace": NAMESPACE, "Dimensions": [keys], "Metrics": metrics });
                (!metrics.is_empty()).then_some(directive)
            })
            .collect();
        let metadata =
            json!({ "Timestamp": now.as_millisecond(), "CloudWatchMetrics": directives });
        let mut document = Map::new();
        document.insert("_aws".to_owned(), metadata);
        document.insert(STACK.to_owned(), json!(self.stack));
        document.insert(ROLE.to_owned(), json!(self.role.as_str()));
        for (metric, value) in told {
            document.insert(metric.name.to_owned(), value.clone());
        }
        Value::Object(document)
    }
}

/// CloudWatch's word for what the numbers are.
fn unit(metric: &Metric, value: &Value) -> &'static str {
    match metric.unit {
        Unit::Count => "Count",
        // Lists are durations, see above.
        Unit::Seconds if value.is_array() => "Milliseconds",
        Unit::Seconds => "Seconds",
        Unit::None => "None",
    }
}

/// Milliseconds with three digits after the point.
fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests;
