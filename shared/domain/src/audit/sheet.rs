//! The balance sheet.

use std::collections::BTreeMap;

use super::{Discrepancy, Finding, Period};
use crate::entry::StateName;
use crate::job::{JobKey, Kind};
use crate::ports::Counted;
use crate::time::Timestamp;

/// Most findings that are kept; all are counted.
const FINDINGS_MAX: usize = 10_000;

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// The period that was asked for.
    pub period: Period,
    /// The part of it that was compared; `None` if nothing was.
    pub proved: Option<Period>,
    /// What of it cannot be proved, and why.
    pub unproved: Vec<Unproved>,
    /// Jobs, by kind.
    pub kinds: BTreeMap<Kind, KindSheet>,
    /// Stored results.
    pub objects: ObjectSheet,
    /// Deliveries.
    pub deliveries: DeliverySheet,
    /// The platform's own count; `None` if it was not asked for, since nothing was compared.
    pub outside: Option<Outside>,
    /// Submissions by state, of all times.
    pub submissions: BTreeMap<&'static str, u64>,
    /// How many things disagree, by the way in which they do.
    pub discrepancies: BTreeMap<Discrepancy, u64>,
    /// The first 10,000 of them.
    pub findings: Vec<Finding>,
}

/// One kind's jobs. What is listed is in the ledger or unknown: `listed` is the sum of `ledger` and
/// `unknown`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindSheet {
    /// Jobs that the platform lists.
    pub listed: u64,
    /// Those by the platform's status.
    pub statuses: BTreeMap<String, u64>,
    /// Those by the state of their row.
    pub ledger: BTreeMap<StateName, u64>,
    /// Those that have no row: among them unfinished ones, which nobody is owed yet, and young ones,
    /// which may yet be told of.
    pub unknown: u64,
    /// Rows whose job the platform does not list (any more).
    pub unlisted: u64,
    /// Entries of the list that cannot be read.
    pub unreadable: u64,
}

/// Stored results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectSheet {
    /// Results that rows name.
    pub named: u64,
    /// Those that were read back and are what their rows say.
    pub whole: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What the delivery logs say of the period. A job counts once for each webhook and event type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliverySheet {
    /// Events one delivery of which was taken.
    pub taken: u64,
    /// Events no delivery of which was taken (yet).
    pub not_taken: u64,
    /// Rows without a job, or that cannot be read.
    pub unreadable: u64,
}

/// The platform's own count, held against the books.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// The beginning of what was counted; it ends now.
    pub from: Timestamp,
    /// The count; `None` if it could not be read.
    pub counted: Option<Counted>,
    /// Extract jobs of the period that the platform lists as completed.
    pub finished: u64,
    /// What it says.
    pub verdict: OutsideVerdict,
}

/// What the platform's own count says about the books.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutsideVerdict {
    /// It is large enough for what the platform lists.
    Agrees,
    /// It lacks jobs that must be in it.
    Short,
    /// Nothing, and why not.
    NotJudged(String),
}

/// What an audit comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing disagrees in the part of the period that can be proved, and all of it was compared.
    Balances,
    /// Something disagrees.
    Differs,
    /// Nothing disagrees, but the platform could not be asked about all of it.
    Troubled,
    /// Nothing of the period can be proved, and nothing was compared.
    NothingProved,
}

impl Verdict {
    /// The name in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Balances => "balances",
            Self::Differs => "differs",
            Self::Troubled => "troubled",
            Self::NothingProved => "nothing_proved",
        }
    }
}

/// Why a part of what was asked for is not proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unproved {
    /// The ledger may have forgotten rows of this time.
    Forgotten(Period),
    /// The lists may not yet hold jobs of this time.
    TooFresh(Period),
    /// The list over this time could not be read whole, or never came to rest.
    Unsure(Kind, Period),
    /// The platform could not be asked.
    Trouble(String),
}

impl Sheet {
    pub(super) fn new(period: Period, proved: Option<Period>, unproved: Vec<Unproved>) -> Self {
        Self {
            period,
            proved,
            unproved,
            kinds: Kind::ALL.into_iter().map(|kind| (kind, KindSheet::default())).collect(),
            objects: ObjectSheet::default(),
            deliveries: DeliverySheet::default(),
            outside: None,
            submissions: BTreeMap::new(),
            discrepancies: BTreeMap::new(),
            findings: Vec::new(),
        }
    }

    /// What it comes to.
    pub fn verdict(&self) -> Verdict {
        if !self.discrepancies.is_empty() {
            Verdict::Differs
        } else if self.proved.is_none() {
            Verdict::NothingProved
        } else if self.is_troubled() {
            Verdict::Troubled
        } else {
            Verdict::Balances
        }
    }

    /// Whether something was compared, all of it, and nothing disagrees.
    pub fn balances(&self) -> bool {
        self.verdict() == Verdict::Balances
    }

    /// Whether the platform could not be asked about all of the period.
    pub fn is_troubled(&self) -> bool {
        let is_trouble =
            |part: &Unproved| matches!(part, Unproved::Trouble(_) | Unproved::Unsure(..));
        self.unproved.iter().any(is_trouble)
    }

    pub(super) fn kind(&mut self, kind: Kind) -> &mut KindSheet {
        self.kinds.entry(kind).or_default()
    }

    pub(super) fn find(&mut self, discrepancy: Discrepancy, key: Option<&JobKey>, facts: String) {
        *self.discrepancies.entry(discrepancy).or_default() += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { discrepancy, key: key.cloned(), facts });
        }
    }
}
