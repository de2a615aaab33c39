//! The adapters of one process, and the steps' view of them.

use std::sync::Arc;

use domain::limits::Limits;
use domain::looks::LookRate;
use domain::pause::Pauses;
use domain::ports::{Clock, Jobs, Ledger, Queue, Random, Results};
use domain::steps::Ports;

/// Everything that the steps need, owned.
#[derive(Clone)]
pub struct Pipeline {
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The way to the workers.
    pub queue: Arc<dyn Queue>,
    /// The platform's API.
    pub jobs: Arc<dyn Jobs>,
    /// The result store.
    pub results: Arc<dyn Results>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
    /// The bounds.
    pub limits: Limits,
    /// The account's pauses, as last read.
    pub pauses: Arc<Pauses>,
    /// How many of the last looks found nothing.
    pub looks: Arc<LookRate>,
}

impl Pipeline {
    /// The steps' view.
    pub fn ports(&self) -> Ports<'_> {
        Ports {
            ledger: &*self.ledger,
            queue: &*self.queue,
            jobs: &*self.jobs,
            results: &*self.results,
            clock: &*self.clock,
            random: &*self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }
}
