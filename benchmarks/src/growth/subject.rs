//! One ledger under measurement, with everything that the steps need around it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use domain::announce::AnnouncePorts;
use domain::entry::StateName;
use domain::envelope::EnvelopeFormat;
use domain::job::Kind;
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::looks::LookRate;
use domain::pause::Pauses;
use domain::ports::{Clock, Cursor, Due as _, EntryFilter, Inspection as _};
use domain::receive::ReceivePorts;
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::steps::Ports;
use domain::time::{Timestamp, between};
use embedded::{Settings, SqliteStore};

use super::file;
use super::ports::{AllCompleted, Nowhere, OneSecret, Seeded, SetClock};

/// The secret that deliveries are signed with.
const SECRET: &str = "a-signing-secret-of-this-benchmark";
/// Rows in a page of the command line's listings.
pub(super) const PAGE: u32 = 500;

/// A ledger of a size.
pub(super) struct Subject {
    /// Rows that it was filled with.
    pub(super) size: usize,
    /// The data folder.
    pub(super) folder: PathBuf,
    pub(super) store: SqliteStore,
    pub(super) clock: Arc<SetClock>,
    pub(super) random: Seeded,
    pub(super) secret: Secret,
    pub(super) keyring: Keyring,
    pub(super) format: EnvelopeFormat,
    pub(super) limits: Limits,
    pub(super) middle: Middle,
    pauses: Pauses,
    looks: LookRate,
}

/// Where listings go on half-way.
#[derive(Debug, Default)]
pub(super) struct Middle {
    pub(super) all: Option<Cursor>,
    pub(super) stored: Option<Cursor>,
    pub(super) crawls: Option<Cursor>,
    pub(super) dead_batches: Option<Cursor>,
    pub(super) intents: Option<Cursor>,
}

/// The file in a data folder.
pub(super) fn ledger_file(folder: &Path) -> PathBuf {
    folder.join("ledger.db")
}

/// Opens a data folder's ledger.
pub(super) fn open(folder: &Path, clock: Arc<SetClock>) -> Result<SqliteStore> {
    Ok(SqliteStore::open(&ledger_file(folder), clock, Settings::default())?)
}

impl Subject {
    /// Opens a ledger that was filled.
    pub(super) async fn open(folder: &Path, size: usize) -> Result<Self> {
        let clock = Arc::new(SetClock::default());
        let secret = Secret::new(SECRET)?;
        let source = Arc::new(OneSecret(secret.clone()));
        let limits = Limits {
            // What is stored meanwhile expires a moment later, so that the file keeps its size.
            retention: std::time::Duration::from_secs(1),
            // What was swept is due again in the next round, and is never given up.
            sweep_spacing: std::time::Duration::from_secs(1),
            sweep_spacing_cap: std::time::Duration::from_secs(1),
            sweeps_max: u32::MAX,
            ..Limits::default()
        };
        let mut subject = Self {
            size,
            folder: folder.to_owned(),
            store: open(folder, Arc::clone(&clock))?,
            clock,
            random: Seeded::new(u64::try_from(size)?.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            keyring: Keyring::new(source, Preset::Geonode.scheme()?, &limits),
            secret,
            format: EnvelopeFormat::default(),
            limits,
            middle: Middle::default(),
            pauses: Pauses::default(),
            looks: LookRate::default(),
        };
        subject.go_on().await?;
        subject.middle = subject.find_middle().await?;
        Ok(subject)
    }

    pub(super) fn ports(&self) -> Ports<'_> {
        Ports {
            ledger: &self.store,
            queue: &self.store,
            jobs: &AllCompleted,
            results: &Nowhere,
            clock: &*self.clock,
            random: &self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }

    pub(super) fn receiving(&self) -> ReceivePorts<'_> {
        let ports = self.ports();
        let announcing: AnnouncePorts<'_> = ports.announcing();
        ReceivePorts { announcing, keyring: &self.keyring, format: &self.format }
    }

    /// A ref that one row has, the last that was written.
    pub(super) fn reference(&self) -> Result<String> {
        file::last_reference(self.size).context("no row has a ref")
    }

    /// Sets the clock on to where a former run left it, so that its overdue rows are due again.
    async fn go_on(&self) -> Result<()> {
        let overdue = u32::try_from(file::OVERDUE)?;
        let page = self.store.list_due(Timestamp::MAX, None, overdue).await?;
        let last = page.items.last().and_then(|row| row.due_at).context("nothing is overdue")?;
        self.clock.advance(i64::try_from(between(self.now(), last).as_secs())?);
        Ok(())
    }

    async fn find_middle(&self) -> Result<Middle> {
        let filter = |state, kind| EntryFilter { state, kind, reference: None };
        let dead_batches = filter(Some(StateName::Dead), Some(Kind::Batch));
        Ok(Middle {
            all: self.half_way(&filter(None, None), self.size).await?,
            stored: self.half_way(&filter(Some(StateName::Stored), None), self.size).await?,
            // About 4 and 0.2 of 100 rows.
            crawls: self.half_way(&filter(None, Some(Kind::Crawl)), self.size / 25).await?,
            dead_batches: self.half_way(&dead_batches, self.size / 550).await?,
            intents: {
                let run = file::run(self.size / 2);
                self.store.list_intents(Some(&run), None, PAGE / 4).await?.next
            },
        })
    }

    /// Where a listing of about so many rows goes on after half of them.
    async fn half_way(&self, filter: &EntryFilter, rows: usize) -> Result<Option<Cursor>> {
        let mut left = rows / 2;
        let mut cursor = None;
        while left > 0 {
            let step = left.min(1_000);
            let page =
                self.store.list_entries(filter, cursor.as_ref(), u32::try_from(step)?).await?;
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
            left -= step;
        }
        Ok(cursor)
    }

    /// The time of the ledger's clock.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
