//! The embedded server over raw HTTP, in this process and as one of its own, and the verbs around
//! it.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets something unexpected shall panic"
)]

mod couriers;
mod delivered;
mod finished;
mod http;
mod killed;
mod process;
mod refused;
mod resumed;
mod rotating;
mod scrapes;
mod settings;
mod site;
mod storage;
#[cfg(target_os = "linux")]
mod synced;
mod texts;
mod told;
mod trials;
mod webhooks;
mod whole;
