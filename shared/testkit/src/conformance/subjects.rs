use std::any::Any;
use std::sync::Arc;

use domain::job::JobKey;
use domain::ports::{Clock, DeadLetterQueue, Ledger, Queue, Results, TaskSource};
use domain::testing::ManualClock;

/// What ledgers may differ in.
#[derive(Debug, Clone, Copy)]
pub struct LedgerCaps {
    /// Longest row as JSON, in bytes: this much is kept, one byte more is refused.
    pub row_bytes_max: usize,
    /// Whether rows are listed in key order, not by arrival or as a ledger that is spread over
    /// machines has them.
    pub lists_in_key_order: bool,
}

impl Default for LedgerCaps {
    /// 400 kB, in key order.
    fn default() -> Self {
        Self { row_bytes_max: 400_000, lists_in_key_order: true }
    }
}

/// Something to do to what is stored under a key.
type Spoil<K> = Box<dyn Fn(&K)>;

/// A ledger to be tried.
pub struct LedgerSubject {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) caps: LedgerCaps,
    pub(super) spoil_entry: Option<Spoil<JobKey>>,
    pub(super) spoil_intent: Option<Spoil<str>>,
    kept: Vec<Box<dyn Any>>,
}

impl LedgerSubject {
    /// An empty ledger with the usual capabilities.
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        let caps = LedgerCaps::default();
        Self { ledger, caps, spoil_entry: None, spoil_intent: None, kept: Vec::new() }
    }

    /// With other capabilities.
    #[must_use]
    pub fn with_caps(mut self, caps: LedgerCaps) -> Self {
        self.caps = caps;
        self
    }

    /// With ways to make stored rows and intents unreadable, past the port.
    #[must_use]
    pub fn spoiling(
        mut self,
        entry: impl Fn(&JobKey) + 'static,
        intent: impl Fn(&str) + 'static,
    ) -> Self {
        self.spoil_entry = Some(Box::new(entry));
        self.spoil_intent = Some(Box::new(intent));
        self
    }

    /// Keeps something, such as a temporary folder, as long as the ledger is tried.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.kept.push(Box::new(keep));
        self
    }
}

/// A queue to be tried, with the clock that it runs by.
pub struct QueueSubject<Q> {
    pub(super) queue: Arc<Q>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) send_body: Option<Spoil<str>>,
    kept: Vec<Box<dyn Any>>,
}

impl<Q: Queue + TaskSource> QueueSubject<Q> {
    /// An empty queue.
    pub fn new(queue: Arc<Q>, clock: Arc<ManualClock>) -> Self {
        Self { queue, clock, send_body: None, kept: Vec::new() }
    }

    /// With a way to send a message that is no task, past the port.
    #[must_use]
    pub fn sending_bodies(mut self, send: impl Fn(&str) + 'static) -> Self {
        self.send_body = Some(Box::new(send));
        self
    }

    /// Keeps something as long as the queue is tried.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.kept.push(Box::new(keep));
        self
    }
}

/// A dead-letter queue to be tried, with the queue that its tasks go back to.
pub struct DeadLettersSubject {
    pub(crate) letters: Arc<dyn DeadLetterQueue>,
    pub(crate) queue: Arc<dyn TaskSource>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) put: Spoil<str>,
    kept: Vec<Box<dyn Any>>,
}

impl DeadLettersSubject {
    /// An empty one, and a way to lay messages into it, past the port.
    pub fn new(
        letters: Arc<dyn DeadLetterQueue>,
        queue: Arc<dyn TaskSource>,
        clock: Arc<ManualClock>,
        put: impl Fn(&str) + 'static,
    ) -> Self {
        Self { letters, queue, clock, put: Box::new(put), kept: Vec::new() }
    }

    /// Keeps something as long as the queue is tried.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.kept.push(Box::new(keep));
        self
    }
}

/// A result store to be tried.
pub struct ResultsSubject {
    pub(super) results: Arc<dyn Results>,
    pub(super) spoil: Option<Spoil<str>>,
    kept: Vec<Box<dyn Any>>,
}

impl ResultsSubject {
    /// An empty store.
    pub fn new(results: Arc<dyn Results>) -> Self {
        Self { results, spoil: None, kept: Vec::new() }
    }

    /// With a way to damage a stored object, past the port.
    #[must_use]
    pub fn spoiling(mut self, spoil: impl Fn(&str) + 'static) -> Self {
        self.spoil = Some(Box::new(spoil));
        self
    }

    /// Keeps something as long as the store is tried.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.kept.push(Box::new(keep));
        self
    }
}

/// A clock to be tried.
pub struct ClockSubject {
    pub(super) clock: Arc<dyn Clock>,
}

impl ClockSubject {
    /// A clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}
