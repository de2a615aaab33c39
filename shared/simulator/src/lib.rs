//! A faithful stand-in for the scraping platform, with faults and books of its own.
//!
//! [`Platform`] is the platform without its network: a pure, seeded state machine to which every
//! call brings the moment at which it happens. [`serve`] puts it behind HTTP and sends its
//! webhooks. The books say what really happened, so that a client can be judged by them.
//!
//! It knows nothing of the product that it tests.
//!
//! # Beyond the platform's own endpoints
//!
//! These need the API key too and know no faults.
//!
//! | call | answer |
//! |---|---|
//! | `GET /sim/books?after=N&limit=N&detail=jobs` | what became of every accepted job, from ordinal `after` on; `next` is the following page's `after`, or null |
//! | `GET /sim/books?detail=parts` | the same with every finished part: status, corpus file, length and SHA-256 of its texts |
//! | `GET /sim/counters` | calls by endpoint and status, refusals, ways of answers, webhook attempts by outcome |
//! | `GET /sim/faults` | the faults in force |
//! | `POST /sim/faults` | sets the faults: a whole document (what is missing is 0), or `"none"`, `"gentle"`, `"harsh"` |
//! | `PATCH /sim/faults` | changes what the document names |
//!
//! A crawl's seed may say how large its site is: `https://example.com/?pages=120`. Its pages are
//! the seed and `https://example.com/page-1` to `page-119`.
//!
//! # Where the contract is silent
//!
//! Chosen here: lists are sorted newest first and an empty list has `page_count` 0; `input_index`
//! counts the submitted URLs; events of a paused webhook are dropped; the log of a deleted webhook
//! is gone; a retry is signed with the secret of its own moment; an eleventh webhook is refused
//! with 422; cancelled parts stand in `results` with status `cancelled`; each unfinished job holds
//! one work-concurrency slot; batch items and crawl pages are in no list and send no events.

mod acceptance;
mod answer;
mod backstage;
mod books;
mod call;
mod children;
mod clock;
mod config;
mod content;
mod counters;
mod deliveries;
mod delivery_log;
mod dice;
mod error;
mod fate;
mod faults;
mod injection;
mod job;
mod listing;
mod moment;
mod platform;
mod query;
mod route;
mod sender;
mod server;
mod signature;
mod statistics;
mod submission;
mod submit;
mod views;
mod webhooks;
mod wire;

pub use answer::{Answer, Transport};
pub use books::Detail;
pub use call::Call;
pub use clock::{Clock, SystemClock};
pub use config::{Config, EventScope, LogRows, SignatureEncoding, WebhookConfig};
pub use content::Corpus;
pub use counters::Counters;
pub use deliveries::{Attempt, AttemptId, AttemptOutcome, RETRY_SECS, WebhookRequest};
pub use error::SimulatorError;
pub use faults::{ApiFaults, DeliveryFaults, Faults, JobFaults, ListFaults};
pub use job::{Kind, Status};
pub use moment::Moment;
pub use platform::Platform;
pub use server::{Running, Stop, serve, start};
pub use webhooks::WEBHOOKS_MAX;

#[cfg(test)]
mod tests;
