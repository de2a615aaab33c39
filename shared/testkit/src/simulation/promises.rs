//! The promises, as they can be checked after each operation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use domain::entry::{Entry, State};
use domain::job::{JobKey, Kind};
use domain::object::describe;
use serde_json::Value;
use simulator::Detail;

use super::process::ToldBy;
use super::world::World;
use crate::platform::PlatformJobs;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What was so before, and must be so for ever.
#[derive(Debug, Default)]
pub(super) struct Promises {
    rows: BTreeMap<JobKey, Entry>,
    objects: BTreeMap<String, Vec<u8>>,
    acknowledged: BTreeSet<JobKey>,
    refused: bool,
}

impl Promises {
    /// Notes what a process says.
    pub(super) fn hear(&mut self, told: &ToldBy) {
        self.acknowledged.extend(told.acknowledged.iter().cloned());
        self.refused |= told.refused;
    }

    /// Checks all that must hold at any time, and notes what is so now.
    pub(super) fn check(&mut self, world: &World) -> Option<Broken> {
        let broken = self
            .acknowledged_are_owed(world)
            .or_else(|| self.terminal_states_stay(world))
            .or_else(|| self.objects_stay(world))
            .or_else(|| stored_results_are_there(world))
            .or_else(|| self.genuine_is_accepted())
            .or_else(|| paid_once(&booked(&world.platform)))
            .or_else(|| world.clock.run(world.witness.broken()).flatten());
        let rows = world.ledger.entries().into_iter();
        self.rows = rows.map(|entry| (entry.key.clone(), entry)).collect();
        let keys = world.results.keys().into_iter();
        self.objects =
            keys.filter_map(|key| Some((key.clone(), world.results.bytes(&key)?))).collect();
        broken
    }

    fn genuine_is_accepted(&self) -> Option<Broken> {
        let text = "a delivery was refused though its secret has long been known";
        self.refused.then(|| Broken(text.to_owned()))
    }

    fn acknowledged_are_owed(&self, world: &World) -> Option<Broken> {
        let lost = self.acknowledged.iter().find(|key| world.ledger.entry(key).is_none())?;
        Some(Broken(format!("{lost} was acknowledged, and there is no row")))
    }

    fn terminal_states_stay(&self, world: &World) -> Option<Broken> {
        self.rows.values().filter(|row| row.state.is_terminal()).find_map(|before| {
            let Some(now) = world.ledger.entry(&before.key) else {
                return Some(Broken(format!("the row of {} is gone", before.key)));
            };
            let is_reopened =
                matches!(before.state, State::Dead { .. }) && now.generation > before.generation;
            (now.state != before.state && !is_reopened).then(|| {
                let (from, to) = (before.state.name(), now.state.name());
                Broken(format!("{} was {from} and is {to}", before.key))
            })
        })
    }

    fn objects_stay(&self, world: &World) -> Option<Broken> {
        let changed =
            |(key, bytes): &(&String, &Vec<u8>)| world.results.bytes(key).as_ref() != Some(*bytes);
        let (key, _) = self.objects.iter().find(changed)?;
        Some(Broken(format!("{key} is not what it was")))
    }
}

fn stored_results_are_there(world: &World) -> Option<Broken> {
    world.ledger.entries().into_iter().find_map(|entry| {
        let State::Stored { result } = &entry.state else { return None };
        let Some(bytes) = world.results.bytes(&result.key) else {
            return Some(Broken(format!("{} is stored, and there is no object", entry.key)));
        };
        let is = describe(&result.key, &bytes);
        ((is.bytes, &is.sha256) != (result.bytes, &result.sha256))
            .then(|| Broken(format!("the object of {} is another than its row says", entry.key)))
    })
}

/// A job of the platform's books, as far as payments go.
#[derive(Debug, Clone)]
pub(super) struct Booked {
    pub(super) kind: Kind,
    pub(super) id: String,
    pub(super) url: String,
    pub(super) status: String,
    pub(super) retryable: bool,
    /// URLs that were paid for.
    pub(super) urls: Vec<String>,
    /// Those of them, and of the pages found, that failed retryably.
    pub(super) failed: BTreeSet<String>,
}

/// All jobs of the platform's books, in the order in which they were accepted.
pub(super) fn booked(platform: &PlatformJobs) -> Vec<Booked> {
    let books = platform.books_in(Detail::Jobs);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let jobs = books.get("jobs").and_then(Value::as_array).cloned().unwrap_or_default();
    let booked = jobs.iter().map(|job| Booked {
        kind: super::world::kind_of(job["kind"].as_str().unwrap_or_default()),
        id: text(&job["job_id"]),
        url: job["urls"].get(0).map(text).unwrap_or_default(),
        status: text(&job["status"]),
        retryable: job["retryable"] == true,
        urls: list(&job["urls"]).iter().map(text).collect(),
        failed: list(&job["failed_items"])
            .iter()
            .filter(|item| item["retryable"] == true)
            .map(|item| text(&item["url"]))
            .collect(),
    });
    booked.collect()
}

impl Booked {
    /// Whether somebody else submitted it.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.url.starts_with("https://elsewhere")
    }

    /// Whether it may be submitted again.
    pub(super) fn failed_retryably(&self) -> bool {
        self.status == "failed" && self.retryable && self.kind == Kind::Extract
    }

    /// Whether a URL of it may be paid for again.
    fn failed_at(&self, url: &str) -> bool {
        self.failed_retryably() || self.failed.contains(url)
    }

    pub(super) fn key(&self) -> JobKey {
        JobKey::new(self.kind, domain::job::JobId::parse(&self.id).expect("a job id"))
    }
}

/// Of the jobs of one URL all but the last have failed retryably there: nobody pays while another
/// one may yet succeed, or has.
fn paid_once(jobs: &[Booked]) -> Option<Broken> {
    let mut last: BTreeMap<&str, &Booked> = BTreeMap::new();
    for job in jobs.iter().filter(|job| !job.is_elsewhere()) {
        for url in &job.urls {
            if let Some(before) = last.insert(url, job)
                && !before.failed_at(url)
            {
                let (id, status) = (&before.id, &before.status);
                return Some(Broken(format!("{url} was paid for again, and job {id} is {status}")));
            }
        }
    }
    None
}
