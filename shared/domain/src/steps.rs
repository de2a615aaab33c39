//! The ports that the steps share.

use std::sync::Arc;

use crate::announce::AnnouncePorts;
use crate::limits::Limits;
use crate::looks::LookRate;
use crate::pause::Pauses;
use crate::ports::{Clock, Jobs, Ledger, Queue, Random, Results};

/// Everything that `work`, `submit`, `poll` and the sweep need.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    /// The ledger.
    pub ledger: &'a dyn Ledger,
    /// The way to the workers.
    pub queue: &'a dyn Queue,
    /// The platform's API.
    pub jobs: &'a dyn Jobs,
    /// The result store.
    pub results: &'a dyn Results,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Chance.
    pub random: &'a dyn Random,
    /// The bounds.
    pub limits: &'a Limits,
    /// The account's pauses, as last read.
    pub pauses: &'a Pauses,
    /// How many of the last looks found nothing.
    pub looks: &'a LookRate,
}

impl<'a> Ports<'a> {
    /// The part of the ports that announcing needs.
    pub const fn announcing(&self) -> AnnouncePorts<'a> {
        AnnouncePorts {
            entries: self.ledger,
            queue: self.queue,
            clock: self.clock,
            random: self.random,
            limits: self.limits,
        }
    }
}

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
