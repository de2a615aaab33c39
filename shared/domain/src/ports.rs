//! What the steps need from the world: one trait per file, domain values in and out.
//!
//! Expected outcomes (a lost race, an object that is already there) are values. Errors are few
//! and say what to do. Every effect may happen twice, and every answer may be lost after the
//! effect happened; each method says what that means.

mod clock;
mod dead_letters;
mod error;
mod jobs;
mod ledger;
mod queue;
mod random;
mod results;
mod secrets;
mod statistics;
mod vault;
mod webhooks;

pub use clock::Clock;
pub use dead_letters::{DeadLetter, DeadLetterQueue, Excerpt};
pub use error::{ErrorKind, PortError};
pub use jobs::{
    ApiError, ApiErrorKind, ExtractJob, Item, Jobs, ListPage, ListQuery, Listed, PageRequest,
    ParentPage, RawJson, SubmitError,
};
pub use ledger::{
    Control, ControlRow, Cursor, Due, Entries, EntryFilter, Expected, Inspection, IntentExpected,
    IntentWritten, Intents, Ledger, Loaded, Met, Page, Pairs, RowWrite, Written, WrittenBoth,
};
pub use queue::{HeldTask, Queue, TaskSource};
pub use random::Random;
pub use results::{PutOutcome, Results};
pub use secrets::{LoadedSecrets, SecretSource};
pub use statistics::{Counted, Statistics};
pub use vault::{Holds, NameError, Promoted, PutPending, Slot, SlotId, Vault, Version, VersionId};
pub use webhooks::{
    CreatedWebhook, Delivery, DeliveryPage, DeliveryStatus, NewWebhook, Webhook, WebhookChange,
    WebhookId, WebhookPage, Webhooks,
};
