//! The product in memory, the platform in some weather, and one clock.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::State;
use domain::envelope::EnvelopeFormat;
use domain::intent::Submission;
use domain::job::Kind;
use domain::keyring::Keyring;
use domain::limits::{Limits, Policies};
use domain::looks::LookRate;
use domain::pause::Pauses;
use domain::ports::{
    Clock as _, HeldTask, Jobs, Ledger, PortError, Queue, Results, SecretSource, TaskSource, Vault,
    Webhooks,
};
use domain::request::{FetchOptions, JobRequest};
use domain::signature::preset::Preset;
use domain::signature::verdict::Verdict;
use domain::signature::verify;
use domain::steps::Ports;
use domain::task::Task;
use domain::testing::{
    EventClock, MemoryLedger, MemoryQueue, MemoryResults, MemoryVault, SeededRandom,
};
use simulator::{Config, Faults};

use super::account::Account;
use super::process::{Fate, Process};
use super::promises::{Broken, Promises};
use super::rest;
use super::scenario::{Ordeal, SUBMISSIONS, Step};
use super::upkeep::{Rotations, subscribe};
use super::witness::Witness;
use crate::faulty::{
    FaultPlan, FaultyJobs, FaultyLedger, FaultyQueue, FaultyResults, FaultySecrets, FaultyVault,
    FaultyWebhooks, Pace, Surroundings,
};
use crate::platform::{Delivery, PlatformJobs};

/// How long a call takes at most where several processes are at work.
const PACE_MAX: Duration = Duration::from_millis(40);
/// URLs of a batch, and pages of a crawl.
const ITEMS: u32 = 5;

/// The adapters, as whoever plants a bug may change them.
pub struct Parts {
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The way to the workers.
    pub queue: Arc<dyn Queue>,
    /// The platform.
    pub jobs: Arc<dyn Jobs>,
    /// The result store.
    pub results: Arc<dyn Results>,
    /// The signing secrets as rotations see them.
    pub vault: Arc<dyn Vault>,
    /// The signing secrets as receivers read them.
    pub secrets: Arc<dyn SecretSource>,
    /// The platform's webhooks.
    pub webhooks: Arc<dyn Webhooks>,
}

/// Plants a bug between the steps and their adapters.
pub trait Tamper: Send + Sync {
    /// The adapters with the bug.
    fn tamper(&self, parts: Parts) -> Parts;
}

/// No bug.
pub struct Untouched;

impl Tamper for Untouched {
    fn tamper(&self, parts: Parts) -> Parts {
        parts
    }
}

/// A queue that is sent to by one port, which may be tampered with, and taken from by another.
pub(super) struct Tasks {
    send: Arc<dyn Queue>,
    take: Arc<MemoryQueue>,
}

#[async_trait]
impl Queue for Tasks {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        self.send.send(task, delay).await
    }
}

#[async_trait]
impl TaskSource for Tasks {
    async fn receive(&self, limit: u32, hold: Duration) -> Result<Vec<HeldTask>, PortError> {
        self.take.receive(limit, hold).await
    }

    async fn acknowledge(&self, held: &HeldTask) -> Result<(), PortError> {
        self.take.acknowledge(held).await
    }
}

/// Everything that outlives a process.
pub(super) struct World {
    seed: u64,
    pub(super) clock: Arc<EventClock>,
    pub(super) platform: Arc<PlatformJobs>,
    pub(super) ledger: Arc<MemoryLedger>,
    pub(super) queue: Arc<MemoryQueue>,
    pub(super) results: Arc<MemoryResults>,
    parts: Parts,
    tasks: Arc<Tasks>,
    pub(super) vault: Arc<MemoryVault>,
    pub(super) witness: Arc<Witness>,
    pub(super) account: Arc<Account>,
    pub(super) rotations: Rotations,
    /// Receivers that go on: they read the secrets again when they must.
    pub(super) receivers: [Keyring; 2],
    pub(super) limits: Limits,
    pub(super) format: EnvelopeFormat,
    pub(super) promises: Promises,
}

impl World {
    pub(super) fn new(seed: u64, tamper: &dyn Tamper) -> Self {
        let clock = Arc::new(EventClock::default());
        let faults = match seed % 3 {
            0 => Faults::none(),
            1 => Faults::gentle(),
            _ => Faults::harsh(),
        };
        let config = Config { seed, result_bytes: 64, ..Config::default() };
        let platform = Arc::new(PlatformJobs::new(config, clock.clone()).unwrap());
        let vault = Arc::new(MemoryVault::new(clock.clone()));
        let witness = Arc::new(Witness::new(platform.clone(), vault.clone()));
        subscribe(&clock, &witness, &vault);
        platform.set_faults(faults);
        let account = Arc::new(Account::new(platform.clone(), clock.clone()));
        let ledger = Arc::new(MemoryLedger::new());
        let queue = Arc::new(MemoryQueue::new(clock.clone()));
        let results = Arc::new(MemoryResults::new());
        let parts = tamper.tamper(Parts {
            ledger: ledger.clone(),
            queue: queue.clone(),
            jobs: account.clone(),
            results: results.clone(),
            vault: vault.clone(),
            secrets: vault.clone(),
            webhooks: witness.clone(),
        });
        let tasks = Arc::new(Tasks { send: parts.queue.clone(), take: queue.clone() });
        let limits = limits(seed);
        let scheme = || Preset::Geonode.scheme().expect("a preset is valid");
        let receivers = [(), ()].map(|()| Keyring::new(parts.secrets.clone(), scheme(), &limits));
        Self {
            seed,
            limits,
            format: EnvelopeFormat::default(),
            promises: Promises::default(),
            clock,
            platform,
            ledger,
            queue,
            results,
            parts,
            tasks,
            vault,
            witness,
            account,
            rotations: Rotations::default(),
            receivers,
        }
    }

    /// Lets a step happen; a line that tells of it.
    pub(super) fn take(&mut self, step: &Step) -> String {
        let is_crowd = step.processes.len() > 1;
        let hosts: Vec<Host> = step
            .processes
            .iter()
            .zip(0_u64..)
            .map(|((_, ordeals), number)| self.host(step.number * 16 + number, ordeals, is_crowd))
            .collect();
        let clock = self.clock.clone();
        let told = {
            let world = &*self;
            let running = step.processes.iter().zip(&hosts).map(|((operation, _), host)| {
                let process = Process { world, host };
                process.run(*operation)
            });
            clock.run(futures_util::future::join_all(running)).expect("a step waits for time alone")
        };
        let mut parts = vec![format!("{:>3}", step.number)];
        for (((operation, _), told), host) in step.processes.iter().zip(told).zip(&hosts) {
            self.promises.hear(&told);
            let calls = host.plan.calls();
            parts.push(format!("{operation:?}: {}, {} calls", told.text, calls.len()));
        }
        parts.push(self.digest());
        parts.join(" | ")
    }

    /// Whether a delivery is signed with a secret that every receiver must know by now.
    pub(super) async fn should_be_known(&self, delivery: &Delivery) -> bool {
        let known = self.witness.known_for_long().await;
        let scheme = Preset::Geonode.scheme().expect("a preset is valid");
        let verdict = verify(&scheme, &delivery.headers, &delivery.body, &known, self.clock.now());
        matches!(verdict, Verdict::Verified(_))
    }

    /// The promise that does not hold, if one does not.
    pub(super) fn broken(&mut self) -> Option<Broken> {
        let mut promises = std::mem::take(&mut self.promises);
        let broken = promises.check(self);
        self.promises = promises;
        broken
    }

    /// Lets all faults cease and everything end; a line that tells of it, and the promise that is
    /// broken then.
    pub(super) fn come_to_rest(&mut self) -> (String, Option<Broken>) {
        let broken = rest::come_to_rest(self);
        (format!("end | {}", self.digest()), broken)
    }

    /// What there is, in few characters: equal for equal worlds.
    fn digest(&self) -> String {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let mut hasher = DefaultHasher::new();
        for entry in self.ledger.entries() {
            let name = match &entry.state {
                State::Dead { reason, .. } => format!("dead:{reason}"),
                state => state.name().to_string(),
            };
            *counts.entry(name).or_default() += 1;
            format!("{entry:?}").hash(&mut hasher);
        }
        for intent in self.ledger.intents() {
            format!("{intent:?}").hash(&mut hasher);
        }
        for key in self.results.keys() {
            (self.results.bytes(&key), key).hash(&mut hasher);
        }
        self.queue.depth().hash(&mut hasher);
        format!("{} | {counts:?} {:016x}", self.clock.now(), hasher.finish())
    }

    /// A process's own view of the world, with what befalls its calls.
    pub(super) fn host(&self, number: u64, ordeals: &[Ordeal], is_crowd: bool) -> Host {
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(number);
        let plan = FaultPlan::of(ordeals.iter().map(|ordeal| (ordeal.call, ordeal.fault)));
        let kills = ordeals.iter().any(|ordeal| ordeal.kills);
        let fate = Fate::new(self.clock.clone(), kills);
        let mut surroundings = Surroundings::new(plan.clone(), fate.clone());
        if is_crowd {
            surroundings = surroundings.at_pace(Pace::new(self.clock.clone(), seed, PACE_MAX));
        }
        let scheme = Preset::Geonode.scheme().expect("a preset is valid");
        let around = || surroundings.clone();
        let source = Arc::new(FaultySecrets::new(self.parts.secrets.clone(), around()));
        Host {
            ledger: FaultyLedger::new(self.parts.ledger.clone(), around()),
            tasks: FaultyQueue::new(self.tasks.clone(), around()),
            jobs: FaultyJobs::new(self.parts.jobs.clone(), around()),
            results: FaultyResults::new(self.parts.results.clone(), around()),
            webhooks: FaultyWebhooks::new(self.parts.webhooks.clone(), around()),
            vault: FaultyVault::new(self.parts.vault.clone(), around()),
            number: usize::try_from(number).unwrap_or(usize::MAX),
            keyring: Keyring::new(source, scheme, &self.limits),
            random: SeededRandom::new(seed),
            pauses: Pauses::default(),
            looks: LookRate::default(),
            plan,
            fate,
        }
    }

    /// The submissions of the simulation: extract jobs, two batches and a crawl.
    pub(super) fn submission(&self, number: u64) -> Submission {
        let host = format!("https://s{}.example", self.seed);
        let options = FetchOptions::default();
        let request = match number {
            0..=6 => JobRequest::extract(&format!("{host}/{number}"), options),
            7 | 8 => {
                let urls: Vec<_> =
                    (0..ITEMS).map(|item| format!("{host}/{number}/{item}")).collect();
                JobRequest::batch(urls.iter().map(String::as_str), options)
            }
            _ => JobRequest::crawl(&format!("{host}/{number}?pages={ITEMS}"), options, 2, ITEMS),
        };
        Submission {
            run: "simulation".to_owned(),
            position: number % SUBMISSIONS,
            request: request.expect("a valid request"),
            reference: Some(format!("ref-{number}")),
        }
    }

    /// What somebody else asks of the same account.
    pub(super) fn elsewhere(&self, number: u64) -> JobRequest {
        let url = format!("https://elsewhere{}.example/{number}", self.seed);
        JobRequest::extract(&url, FetchOptions::default()).expect("a valid request")
    }
}

/// A process: its ports, with what befalls their calls, and what it keeps in memory.
pub(super) struct Host {
    ledger: FaultyLedger,
    pub(super) tasks: FaultyQueue<Tasks>,
    jobs: FaultyJobs,
    results: FaultyResults,
    pub(super) webhooks: FaultyWebhooks,
    pub(super) vault: FaultyVault,
    /// Names the process.
    pub(super) number: usize,
    pub(super) keyring: Keyring,
    random: SeededRandom,
    pauses: Pauses,
    looks: LookRate,
    plan: Arc<FaultPlan>,
    pub(super) fate: Arc<Fate>,
}

impl Host {
    pub(super) fn ports<'a>(&'a self, world: &'a World) -> Ports<'a> {
        Ports {
            ledger: &self.ledger,
            queue: &self.tasks,
            jobs: &self.jobs,
            results: &self.results,
            clock: &*world.clock,
            random: &self.random,
            limits: &world.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }
}

/// The documented limits, with the long waits of days cut to hours.
/// In some worlds what is off by default is on.
fn limits(seed: u64) -> Limits {
    Limits {
        announce_grace: Duration::from_mins(3),
        max_age: Duration::from_hours(3),
        ambiguous_after: Duration::from_hours(1),
        policies: Policies {
            resubmit_failed_items: seed.is_multiple_of(2),
            resubmit_unlinked: seed.is_multiple_of(7),
        },
        ..Limits::default()
    }
}

/// All kinds of job, by the platform's word.
pub(super) fn kind_of(word: &str) -> Kind {
    word.parse().expect("a kind")
}
