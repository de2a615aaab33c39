//! The audit: ledger, job lists, delivery logs and stored objects of a period are laid side by
//! side, with the account's statistics as an outside check, and whatever disagrees is found.
//!
//! The audit changes nothing and may run beside everything else. Whatever looks wrong is read once
//! more before it is called so, since jobs move on while they are looked at.

mod books;
mod finding;
mod judge;
mod lists;
mod logs;
mod objects;
mod outside;
mod rows;
mod sheet;

pub use finding::{Discrepancy, Finding};
pub use sheet::{
    DeliverySheet, KindSheet, ObjectSheet, Outside, OutsideVerdict, Sheet, Unproved, Verdict,
};

use std::time::Duration;

use crate::job::Kind;
use crate::limits::Limits;
use crate::ports::{ApiError, PortError, Statistics, Webhooks};
use crate::steps::Ports;
use crate::subscribe::Account;
use crate::time::{Timestamp, after, before};
use books::Books;

/// Tries of each call of the platform.
const TRIES: u32 = 6;

/// A span of `created_at`: `from` is in it, `to` is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Its beginning.
    pub from: Timestamp,
    /// Its end.
    pub to: Timestamp,
}

impl Period {
    fn is_empty(self) -> bool {
        self.from >= self.to
    }

    fn holds(self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }

    /// The part that can be proved now, and what cannot: rows are forgotten after their retention,
    /// and lists may lag behind their jobs.
    fn provable(self, now: Timestamp, limits: &Limits) -> (Self, Vec<Unproved>) {
        let remembered = limits.remembered_from(now);
        let settled = before(now, limits.adoption_margin);
        let part = Self { from: self.from.max(remembered), to: self.to.min(settled) };
        let mut unproved = Vec::new();
        if self.from < remembered {
            let period = Self { from: self.from, to: remembered.min(self.to) };
            unproved.push(Unproved::Forgotten(period));
        }
        if self.to > settled {
            let period = Self { from: settled.max(self.from), to: self.to };
            unproved.push(Unproved::TooFresh(period));
        }
        (part, unproved)
    }
}

/// What is looked at.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The ports of the other steps.
    pub ports: Ports<'a>,
    /// The platform's webhooks.
    pub webhooks: &'a dyn Webhooks,
    /// The platform's own count.
    pub statistics: &'a dyn Statistics,
    /// Whether their delivery logs are read.
    pub deliveries: bool,
    /// Whether each stored object is read back and compared with its row.
    pub objects: bool,
    /// How long a job without a row is left to its webhooks, and to whoever finds it without them,
    /// from its creation on: until then it is missed by nobody.
    pub left: Duration,
}

/// Audits a period.
///
/// # Errors
/// Those of the ledger and of the result store. Trouble with the platform ends the part that met it
/// and is in the sheet: that part is not proved.
pub async fn audit(sources: Sources<'_>, period: Period) -> Result<Sheet, PortError> {
    let ports = sources.ports;
    let (part, unproved) = period.provable(ports.clock.now(), ports.limits);
    let proved = (!part.is_empty()).then_some(part);
    let mut sheet = Sheet::new(period, proved, unproved);
    if proved.is_none() {
        return Ok(sheet);
    }
    let mut books = Books::new(part);
    rows::read(ports, sources.objects, &mut books, &mut sheet).await?;
    rows::submissions(ports, &mut sheet).await?;
    let left_from = before(ports.clock.now(), sources.left);
    let account = |sheet: &Sheet| Account {
        webhooks: sources.webhooks,
        clock: ports.clock,
        random: ports.random,
        within: ports.limits.call_timeout,
        // Where patience was in vain once, the rest is asked once each.
        tries: if sheet.is_troubled() { 1 } else { TRIES },
    };
    for kind in Kind::ALL {
        lists::read(ports, account(&sheet), (kind, left_from), &mut books, &mut sheet).await?;
    }
    if sources.deliveries {
        logs::read(ports, account(&sheet), left_from, &mut books, &mut sheet).await?;
    }
    rows::overdue(ports, &books, &mut sheet).await?;
    books.close(&mut sheet);
    outside::check(account(&sheet), sources.statistics, &books, &mut sheet).await;
    if sources.objects {
        objects::strays(ports, &books, &mut sheet).await?;
    }
    sheet.findings.sort();
    Ok(sheet)
}

/// Trouble of the platform, as it stands in a sheet.
fn trouble(what: &str, error: &ApiError) -> Unproved {
    Unproved::Trouble(format!("{what}: {error}"))
}

/// How long after it should have been looked at a row counts as forgotten by the sweep.
fn is_overdue(due_at: Timestamp, now: Timestamp, limits: &Limits) -> bool {
    after(due_at, limits.sweep_spacing) <= now
}

#[cfg(test)]
mod tests;
