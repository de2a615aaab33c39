//! Measures what a delivery costs the embedded ledger: a conditional write of a new row, then a
//! task, each synced to disk.
//!
//! `cargo run --release -p embedded --example accept_rate [directory]`; the directory's disk is
//! what is measured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use domain::entry::{Cause, Entry};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::{Clock, Entries, Expected, Queue, Written};
use domain::task::Task;
use domain::time::Timestamp;
use embedded::{Settings, SqliteStore};

/// Rounds per number of callers; their median is printed.
const ROUNDS: usize = 5;

/// Callers and deliveries per caller.
const LOADS: [(usize, usize); 3] = [(1, 200), (32, 60), (256, 20)];

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct FixedClock;

#[async_trait]
impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    async fn sleep(&self, _duration: Duration) {}
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let directory = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(directory)?;
    let store = SqliteStore::open(
        &directory.path().join("gleaner.db"),
        Arc::new(FixedClock),
        Settings::default(),
    )?;
    for (callers, each) in LOADS {
        for sends in [false, true] {
            let mut rates = Vec::with_capacity(ROUNDS);
            let mut waits = Vec::new();
            for round in 0..ROUNDS {
                let name = format!("{callers}-{sends}-{round}");
                let (rate, mut round_waits) = run(&store, &name, callers, each, sends).await?;
                rates.push(rate);
                waits.append(&mut round_waits);
            }
            report(callers, sends, &mut rates, &mut waits);
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
async fn run(
    store: &SqliteStore,
    name: &str,
    callers: usize,
    each: usize,
    sends: bool,
) -> Result<(f64, Vec<Duration>), Failure> {
    let begun = Instant::now();
    let mut running = Vec::with_capacity(callers);
    for caller in 0..callers {
        let (store, name) = (store.clone(), name.to_owned());
        running.push(tokio::spawn(async move {
            let mut waits = Vec::with_capacity(each);
            for number in 0..each {
                let at = Instant::now();
                deliver(&store, &format!("{name}-{caller}-{number}"), sends).await?;
                waits.push(at.elapsed());
            }
            Ok::<_, Failure>(waits)
        }));
    }
    let mut waits = Vec::with_capacity(callers * each);
    for caller in running {
        waits.append(&mut caller.await??);
    }
    let deliveries = u32::try_from(waits.len())?;
    Ok((f64::from(deliveries) / begun.elapsed().as_secs_f64(), waits))
}

async fn deliver(store: &SqliteStore, id: &str, sends: bool) -> Result<(), Failure> {
    let key = JobKey::new(Kind::Extract, JobId::parse(id)?);
    let now = Timestamp::UNIX_EPOCH;
    let entry = Entry::expected(key.clone(), None, Cause::Delivery, now, &Limits::default());
    if store.write(&entry, Expected::Absent(now)).await? != Written::Done {
        return Err("a new row met another".into());
    }
    if sends {
        store.send(&Task { key }, Duration::ZERO).await?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
fn report(callers: usize, sends: bool, rates: &mut [f64], waits: &mut [Duration]) {
    rates.sort_by(f64::total_cmp);
    waits.sort();
    let what = if sends { "row and task" } else { "row" };
    let rate = rates.get(rates.len() / 2).copied().unwrap_or_default();
    let median = waits.get(waits.len() / 2).copied().unwrap_or_default();
    let late = waits.get(waits.len() * 99 / 100).copied().unwrap_or_default();
    println!(
        "{callers:>4} callers, {what:<12}: {rate:>7.0} a second, \
         {:>6.2} ms median, {:>6.2} ms 99th percentile",
        median.as_secs_f64() * 1e3,
        late.as_secs_f64() * 1e3,
    );
}
