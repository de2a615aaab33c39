mod ports;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use domain::entry::{DeadReason, Entry, State};
use domain::intent::{IntentState, Submission};
use domain::job::{JobId, JobKey, Kind};
use domain::ports::Results as _;
use domain::request::{FetchOptions, Format, JobRequest};
use serde_json::Value;
use simulator::{Config, Faults};

use self::world::{Outcome, World};

/// Jobs of one simulation, as a demo mixes them.
const JOBS: u64 = 200;

/// Four fifths pages, the rest batches and crawls; no URL twice.
fn submissions() -> Vec<Submission> {
    let options =
        FetchOptions { formats: vec![Format::Html, Format::Markdown], ..FetchOptions::default() };
    let request = |position: u64| match position % 20 {
        0 => {
            let pages = 3 + position % 70;
            let seed = format!("https://site-{position}.example/?pages={pages}");
            JobRequest::crawl(&seed, options.clone(), 3, 60)
        }
        5 | 10 | 15 => {
            let urls: Vec<_> = (0..=position % 60)
                .map(|item| format!("https://batch.example/{position}/{item}"))
                .collect();
            JobRequest::batch(urls.iter().map(String::as_str), options.clone())
        }
        _ => JobRequest::extract(&format!("https://page.example/{position}"), options.clone()),
    };
    (0..JOBS)
        .map(|position| Submission {
            run: "simulation".to_owned(),
            position,
            request: request(position).unwrap(),
            reference: Some(format!("ref-{position}")),
        })
        .collect()
}

/// Runs one seed to its end. A failing test prints the seeds that it began, the failing one last.
fn simulate(seed: u64, faults: &Faults) -> (Outcome, World) {
    println!("seed {seed}");
    // Results are small: what is looked for here is lost jobs, not lost bytes.
    let config = Config { seed, faults: faults.clone(), result_bytes: 256, ..Config::default() };
    let mut world = World::new(config);
    let outcome = crate::run(world.run(&submissions()));
    (outcome, world)
}

/// What the platform's books say of one job.
struct Booked<'a>(&'a Value);

impl<'a> Booked<'a> {
    fn text(&self, name: &str) -> &'a str {
        self.0[name].as_str().unwrap()
    }

    fn key(&self) -> JobKey {
        let job_id = JobId::parse(self.text("job_id")).unwrap();
        JobKey::new(self.text("kind").parse().unwrap(), job_id)
    }

    fn parts(&self) -> &'a [Value] {
        self.0["parts"].as_array().unwrap()
    }
}

/// The ledger against the platform's books: every accepted job is owed by one terminal row, every
/// row is of an accepted job, and each ended as the platform ended it.
fn assert_balanced(outcome: &Outcome, world: &World) {
    let rows: BTreeMap<_, _> = outcome.entries.iter().map(|row| (row.key.clone(), row)).collect();
    let books: Vec<_> = outcome.books["jobs"].as_array().unwrap().iter().map(Booked).collect();
    let booked: BTreeSet<_> = books.iter().map(Booked::key).collect();
    let owed: BTreeSet<_> = rows.keys().cloned().collect();
    assert_eq!(
        booked.difference(&owed).collect::<Vec<_>>(),
        [] as [&JobKey; 0],
        "not in the ledger"
    );
    assert_eq!(
        owed.difference(&booked).collect::<Vec<_>>(),
        [] as [&JobKey; 0],
        "not in the books"
    );
    for job in &books {
        let row = rows[&job.key()];
        assert_ended_alike(job, row);
        if let State::Stored { result } = &row.state {
            assert_eq!(result.key, object_of(outcome, &job.key()));
            crate::run(assert_content(job, &result.key, world));
        }
    }
    assert_paid_once(outcome, books.len());
}

fn assert_ended_alike(job: &Booked<'_>, row: &Entry) {
    let is_extract = row.key.kind == Kind::Extract;
    let retryable = job.0["retryable"].as_bool();
    let dead = match &row.state {
        State::Dead { reason, .. } => Some(*reason),
        _ => None,
    };
    let is_stored = matches!(row.state, State::Stored { .. });
    let is_superseded = matches!(row.state, State::Superseded { .. });
    let as_expected = match (job.text("status"), retryable) {
        ("completed", _) => is_stored,
        ("failed", Some(true)) if is_extract => {
            is_superseded || dead == Some(DeadReason::ResubmitsExhausted)
        }
        ("failed", _) => dead == Some(DeadReason::Failed),
        ("cancelled", _) => dead == Some(DeadReason::Cancelled),
        _ => dead == Some(DeadReason::NeverSettled),
    };
    assert!(as_expected, "{} is {:?}", job.0, row.state);
}

/// The one object of a job that says that it is stored.
fn object_of(outcome: &Outcome, key: &JobKey) -> String {
    let is_its =
        |object: &&String| object.contains(key.job_id.as_str()) && !object.contains("-part-");
    let mut objects = outcome.objects.iter().map(|(object, _)| object).filter(is_its);
    let object = objects.next().unwrap().clone();
    assert_eq!(objects.next(), None);
    object
}

/// What is stored of a job is what the platform served, part by part.
async fn assert_content(job: &Booked<'_>, key: &str, world: &World) {
    let (_, content) = world.results.read(key).await.unwrap().unwrap();
    let object: Value = serde_json::from_slice(&content).unwrap();
    let mut stored = BTreeMap::new();
    if job.key().kind == Kind::Extract {
        stored.insert(job.parts()[0]["url"].clone().to_string(), object["job"].clone());
    } else {
        for part in object["parts"].as_array().unwrap() {
            let key = part["key"].as_str().unwrap();
            let (_, lines) = world.results.read(key).await.unwrap().unwrap();
            for line in String::from_utf8(lines).unwrap().lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                let url = line["item"]["url"].to_string();
                assert!(stored.insert(url, line["item"].clone()).is_none());
            }
        }
    }
    assert_eq!(stored.len(), job.parts().len());
    for part in job.parts() {
        let item = &stored[&part["url"].to_string()];
        assert_eq!(item["status"], part["status"]);
        for format in ["html", "markdown"] {
            let bytes = item["data"][format].as_str().map(str::len);
            assert_eq!(
                bytes,
                part[format]["bytes"].as_u64().map(|it| usize::try_from(it).unwrap())
            );
        }
    }
}

/// Each submission was paid for once, and each failed job replaced once.
fn assert_paid_once(outcome: &Outcome, jobs: usize) {
    let accepted = outcome
        .intents
        .iter()
        .filter(|intent| matches!(intent.state, IntentState::Accepted { .. }))
        .count();
    let superseded =
        outcome.entries.iter().filter(|row| matches!(row.state, State::Superseded { .. })).count();
    assert_eq!(outcome.intents.len(), submissions().len());
    assert_eq!(accepted, submissions().len());
    assert_eq!(jobs, accepted + superseded);
}

#[test]
fn on_a_calm_day_everything_is_stored_at_once() {
    let (outcome, world) = simulate(1, &Faults::none());
    assert_balanced(&outcome, &world);
    assert!(outcome.entries.iter().all(|row| matches!(row.state, State::Stored { .. })));
    assert_eq!(world.receptions, BTreeMap::from([(202, 200)]));
}

#[test]
fn nothing_is_lost_or_doubled_in_gentle_weather() {
    for seed in 1..=3 {
        let (outcome, world) = simulate(seed, &Faults::gentle());
        assert_balanced(&outcome, &world);
    }
}

#[test]
fn nothing_is_lost_or_doubled_in_harsh_weather() {
    for seed in 1..=3 {
        let (outcome, world) = simulate(seed, &Faults::harsh());
        assert_balanced(&outcome, &world);
        // The weather was what it is called: forged and repeated deliveries, lost answers.
        assert!(world.receptions[&401] > 0 && world.receptions[&202] > 0);
        let books = outcome.books["jobs"].as_array().unwrap();
        assert!(books.iter().any(|job| job["answer_lost"] == true));
        let superseded = |row: &&Entry| matches!(row.state, State::Superseded { .. });
        assert!(outcome.entries.iter().filter(superseded).count() > 5);
    }
}

#[test]
fn one_seed_is_one_history() {
    let (first, _) = simulate(7, &Faults::harsh());
    let (second, _) = simulate(7, &Faults::harsh());
    assert!(first == second, "two runs of one seed differ");
    let (other, _) = simulate(8, &Faults::harsh());
    assert_ne!(first.books, other.books);
}
