//! The account and the platform: statistics, work concurrency, health.

use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{ApiError, Counted};
use domain::time::Timestamp;
use serde::Deserialize;

use crate::answer::Maybe;
use crate::client::{Call, ScraperApi};
use crate::error_body::clean;
use crate::lists::date_parameter;

/// Status of a platform that is in trouble but says how; its body is the usual one.
const HEALTH_UNAVAILABLE: u16 = 503;
/// Longest unknown health status kept, in characters.
const STATUS_CHARS_MAX: usize = 64;

/// How many jobs the account may have unfinished at a time, and has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Slots that unfinished jobs hold.
    pub in_use: u64,
    /// Slots in all.
    pub limit: u64,
}

/// Where the account's work concurrency is read. A port of [`crate::Paced`].
#[async_trait]
pub trait Usage: Send + Sync {
    /// Reads the account's work concurrency. Free of charge.
    ///
    /// # Errors
    /// See [`ApiError`].
    async fn concurrency(&self, within: Duration) -> Result<Concurrency, ApiError>;
}

/// The part of the account's past that statistics are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatisticsWindow {
    /// Its start; the platform's default is 30 days ago.
    pub from: Option<Timestamp>,
    /// Its end; the platform's default is now.
    pub to: Option<Timestamp>,
}

/// What the account did in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Extractions.
    pub extraction_count: Option<u64>,
    /// Extractions of the window before.
    pub previous_period_extraction_count: Option<u64>,
    /// Share of successes, 0 to 1.
    pub success_rate: Option<f64>,
    /// Mean duration of an extraction, in milliseconds.
    pub average_extraction_duration_ms: Option<f64>,
    /// Tokens used.
    pub period_tokens_used: Option<u64>,
    /// Requests by day.
    pub requests: Vec<DayRequests>,
    /// Tokens by day.
    pub tokens_used: Vec<DayTokens>,
    /// Days that could not be read and were left out.
    pub unreadable: u32,
}

/// Requests of one day.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DayRequests {
    /// The day as the platform writes it.
    pub date: String,
    /// Those that succeeded.
    pub success_request_count: u64,
    /// Those that failed.
    pub failed_request_count: u64,
}

/// Tokens of one day.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DayTokens {
    /// The day as the platform writes it.
    pub date: String,
    /// Tokens used.
    pub tokens_used: u64,
}

/// How the platform says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Its word.
    pub status: HealthStatus,
    /// The service that answered.
    pub service: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// When it answered.
    pub timestamp: Option<Timestamp>,
}

/// The platform's word about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthStatus {
    /// All is well.
    Ok,
    /// It works, but not as it should.
    Degraded,
    /// It does not work.
    Unavailable,
    /// A word that this version does not know.
    Unknown(String),
}

#[async_trait]
impl Usage for ScraperApi {
    async fn concurrency(&self, within: Duration) -> Result<Concurrency, ApiError> {
        #[derive(Deserialize)]
        struct Body {
            work_concurrency_in_use: u64,
            work_concurrency_limit: u64,
        }

        let answer = self.send(Call::get(&["v1", "usage", "concurrency"]), within).await?;
        let body: Body = answer.read()?;
        Ok(Concurrency { in_use: body.work_concurrency_in_use, limit: body.work_concurrency_limit })
    }
}

impl ScraperApi {
    /// Reads the account's statistics.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn statistics(
        &self,
        window: StatisticsWindow,
        within: Duration,
    ) -> Result<Statistics, ApiError> {
        #[derive(Deserialize)]
        struct Body {
            #[serde(default)]
            extraction_count: Maybe<u64>,
            #[serde(default)]
            previous_period_extraction_count: Maybe<u64>,
            #[serde(default)]
            success_rate: Maybe<f64>,
            #[serde(default)]
            average_extraction_duration: Maybe<f64>,
            #[serde(default)]
            period_tokens_used: Maybe<u64>,
            #[serde(default)]
            requests: Maybe<Vec<Maybe<DayRequests>>>,
            #[serde(default)]
            tokens_used: Maybe<Vec<Maybe<DayTokens>>>,
        }

        let mut call = Call::get(&["v1", "statistics"]);
        if let Some(from) = window.from {
            call = call.query("start_date", &date_parameter(from));
        }
        if let Some(to) = window.to {
            call = call.query("end_date", &date_parameter(to));
        }
        let answer = self.send(call, within).await?;
        let body: Body = answer.read()?;
        if body.extraction_count.0.is_none() && body.period_tokens_used.0.is_none() {
            return Err(answer.unreadable("the answer has neither counts nor tokens"));
        }
        let (requests, requests_unreadable) = readable(body.requests);
        let (tokens_used, tokens_unreadable) = readable(body.tokens_used);
        Ok(Statistics {
            extraction_count: body.extraction_count.0,
            previous_period_extraction_count: body.previous_period_extraction_count.0,
            success_rate: body.success_rate.0,
            average_extraction_duration_ms: body.average_extraction_duration.0,
            period_tokens_used: body.period_tokens_used.0,
            requests,
            tokens_used,
            unreadable: requests_unreadable.saturating_add(tokens_unreadable),
        })
    }

    /// Asks the platform how it is. Needs no key and sends none; an answer of 503 that says how
    /// is an answer.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn health(&self, within: Duration) -> Result<Health, ApiError> {
        #[derive(Deserialize)]
        struct Body {
            status: String,
            #[serde(default)]
            service: Maybe<String>,
            #[serde(default)]
            version: Maybe<String>,
            #[serde(default)]
            timestamp: Maybe<String>,
        }

        let call = Call::get(&["health"]).without_key().expecting(HEALTH_UNAVAILABLE);
        let answer = self.send(call, within).await?;
        let body: Body = answer.read()?;
        let status = match body.status.as_str() {
            "ok" => HealthStatus::Ok,
            "degraded" => HealthStatus::Degraded,
            "unavailable" => HealthStatus::Unavailable,
            other => HealthStatus::Unknown(clean(other, STATUS_CHARS_MAX)),
        };
        let timestamp = body.timestamp.timestamp();
        Ok(Health { status, service: body.service.0, version: body.version.0, timestamp })
    }
}

#[async_trait]
impl domain::ports::Statistics for ScraperApi {
    async fn counted_since(&self, from: Timestamp, within: Duration) -> Result<Counted, ApiError> {
        let window = StatisticsWindow { from: Some(from), to: None };
        let statistics = self.statistics(window, within).await?;
        let days = &statistics.requests;
        Ok(Counted {
            succeeded: days
                .iter()
                .map(|day| day.success_request_count)
                .fold(0, u64::saturating_add),
            failed: days.iter().map(|day| day.failed_request_count).fold(0, u64::saturating_add),
            extractions: statistics.extraction_count,
            unreadable: statistics.unreadable,
        })
    }
}

fn readable<T>(list: Maybe<Vec<Maybe<T>>>) -> (Vec<T>, u32) {
    let list = list.0.unwrap_or_default();
    let count = list.len();
    let readable: Vec<T> = list.into_iter().filter_map(|entry| entry.0).collect();
    let unreadable = u32::try_from(count.saturating_sub(readable.len())).unwrap_or(u32::MAX);
    (readable, unreadable)
}

#[cfg(test)]
mod tests;
