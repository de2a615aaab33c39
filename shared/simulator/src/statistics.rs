//! GET /v1/statistics: daily sums of settled extractions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::{Answer, Problem};
use crate::moment::Moment;
use crate::platform::Platform;
use crate::query::Query;

/// Days that the report covers when no start is given (contract 1.8).
const DAYS_DEFAULT: i64 = 30;

/// Sums per UTC day of settling.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    days: BTreeMap<i64, Day>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Day {
    completed: u64,
    failed: u64,
    jobs: u64,
    took_ms: u64,
}

impl Statistics {
    /// Adds a settled job.
    pub(crate) fn add(&mut self, at: Moment, completed: u32, failed: u32, took: Duration) {
        let day = self.days.entry(at.day()).or_default();
        day.completed += u64::from(completed);
        day.failed += u64::from(failed);
        day.jobs += 1;
        day.took_ms += u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    }

    fn sum(&self, first: i64, last: i64) -> Day {
        if first > last {
            return Day::default();
        }
        self.days.range(first..=last).fold(Day::default(), |sum, (_, day)| Day {
            completed: sum.completed + day.completed,
            failed: sum.failed + day.failed,
            jobs: sum.jobs + day.jobs,
            took_ms: sum.took_ms.saturating_add(day.took_ms),
        })
    }
}

impl Platform {
    /// Answers GET /v1/statistics; whole UTC days are counted.
    pub(crate) fn report_statistics(&self, query: &Query) -> Result<Answer, Vec<Problem>> {
        let last = query.date("end_date")?.unwrap_or(self.now).day();
        let first = query.date("start_date")?.map_or(last - DAYS_DEFAULT, Moment::day);
        let sum = self.statistics.sum(first, last);
        let days_before = last.saturating_sub(first) + 1;
        let before = self.statistics.sum(first.saturating_sub(days_before), first - 1);
        let count = sum.completed + sum.failed;
        let ratio = |part: u64, whole: u64| {
            let float = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
            if whole == 0 { 0.0 } else { float(part) / float(whole) }
        };
        let days = || self.statistics.days.range(first..=last.max(first)).filter(|_| first <= last);
        let requests: Vec<Value> = days()
            .map(|(day, sums)| {
                json!({ "date": Moment::of_day(*day), "success_request_count": sums.completed,
                        "failed_request_count": sums.failed })
            })
            .collect();
        let tokens: Vec<Value> = days()
            .map(|(day, sums)| json!({ "date": Moment::of_day(*day), "tokens_used": sums.completed }))
            .collect();
        Ok(Answer::json(
            200,
            json!({
                "extraction_count": count,
                "previous_period_extraction_count": before.completed + before.failed,
                "success_rate": ratio(sum.completed, count),
                "average_extraction_duration": sum.took_ms.checked_div(sum.jobs).unwrap_or(0),
                "period_tokens_used": sum.completed,
                "requests": requests,
                "tokens_used": tokens,
            }),
        ))
    }
}
