//! A faithful stand-in for the scraping platform, with faults and books of its own.
//!
//! [`Platform`] is the platform without its network: a pure, seeded state machine to which every
//! call brings the moment at which it happens. [`serve`] puts it behind HTTP and sends its
//! webhooks. The books say what really happened, so that a client can be judged by them.
//!
//! It knows nothing of the product that it tests.

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
