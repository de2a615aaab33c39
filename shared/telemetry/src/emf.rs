//! CloudWatch's embedded metric format: JSON lines on standard output, of which CloudWatch Logs
//! makes metrics.
//!
//! A document holds what was counted since the last one, so that the statistic of an alarm is the
//! sum. A counter that an alarm looks at is told when it is zero, too. Durations are in milliseconds.
//! The dimensions are the stack, and the role where several functions count separately.

mod document;

use std::io::{self, Write};
use std::time::Duration;

use domain::time::Timestamp;
use serde_json::Value;
use settings::Role;

use crate::catalogue::{Counter, Dimensions, Gauge, Metric, Timing, Unit, Zero};
use crate::metrics::Metrics;
use document::{Directive, Document, Member, Metadata, Name};

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
        for told in take(self.role, metrics) {
            let mut line = serde_json::to_vec(&self.document(told, now))?;
            line.push(b'\n');
            // As one write, so that no other line comes in between.
            out.write_all(&line)?;
        }
        out.flush()
    }

    /// Takes what was counted since the last call, as documents.
    pub fn documents(&self, metrics: &Metrics, now: Timestamp) -> Vec<Value> {
        let documents = take(self.role, metrics).into_iter().map(|told| self.document(told, now));
        // What is told has nothing that JSON does not know.
        documents.filter_map(|document| serde_json::to_value(document).ok()).collect()
    }

    /// The sender of an event waits for its document: it is written without a tree of values.
    fn document<'a>(&'a self, told: Vec<Told<'a>>, now: Timestamp) -> Document<'a> {
        let directive = |dimensions, keys| {
            let told = told.iter().filter(|told| told.metric.dimensions == dimensions);
            let metrics: Vec<_> = told.map(Told::name).collect();
            let directive = Directive { dimensions: [keys], metrics, namespace: NAMESPACE };
            (!directive.metrics.is_empty()).then_some(directive)
        };
        let by_stack = directive(Dimensions::Stack, &[STACK]);
        let by_role = directive(Dimensions::StackAndRole, &[STACK, ROLE]);
        let directives = by_stack.into_iter().chain(by_role).collect();
        let metadata = Metadata { directives, timestamp: now.as_millisecond() };
        let mut members: Vec<_> = told.into_iter().map(|it| (it.metric.name, it.value)).collect();
        members.push((STACK, Member::Text(&self.stack)));
        members.push((ROLE, Member::Text(self.role.as_str())));
        members.sort_unstable_by_key(|(name, _)| *name);
        Document { metadata, members }
    }
}

/// Takes what a function tells. The first part holds all but some values, the others have values
/// alone.
fn take(role: Role, metrics: &Metrics) -> Vec<Vec<Told<'static>>> {
    let is_ours = |metric: &Metric| metric.is_told_by(role);
    let mut told = Vec::new();
    for counter in Counter::ALL.iter().filter(|counter| is_ours(counter.metric())) {
        let (metric, count) = (counter.metric(), metrics.take(*counter));
        if count > 0 || metric.zero == Zero::Told {
            told.push(Told { metric, value: Member::Count(count) });
        }
    }
    for gauge in Gauge::ALL.iter().filter(|gauge| is_ours(gauge.metric())) {
        let value = metrics.take_gauge(*gauge).map(Member::Count);
        told.extend(value.map(|value| Told { metric: gauge.metric(), value }));
    }
    let mut parts = vec![told];
    for timing in Timing::ALL.iter().filter(|timing| is_ours(timing.metric())) {
        let values = metrics.take_values(*timing);
        for (number, values) in values.chunks(VALUES_MAX).enumerate() {
            let values = Member::Millis(values.iter().map(|took| millis(*took)).collect());
            if number == parts.len() {
                parts.push(Vec::new());
            }
            if let Some(part) = parts.get_mut(number) {
                part.push(Told { metric: timing.metric(), value: values });
            }
        }
    }
    parts.retain(|told| !told.is_empty());
    parts
}

/// One metric and what is told of it.
struct Told<'a> {
    metric: &'static Metric,
    value: Member<'a>,
}

impl Told<'_> {
    fn name(&self) -> Name {
        Name { name: self.metric.name, unit: unit(self.metric, &self.value) }
    }
}

/// CloudWatch's word for what the numbers are.
fn unit(metric: &Metric, value: &Member) -> &'static str {
    match metric.unit {
        Unit::Count => "Count",
        // Lists are durations, see above.
        Unit::Seconds if matches!(value, Member::Millis(_)) => "Milliseconds",
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
