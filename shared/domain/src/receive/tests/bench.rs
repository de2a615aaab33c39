//! A receiver over ports in memory, each of whose calls can be made to fail, hang or wait.

use std::collections::BTreeMap;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;

use crate::announce::{AnnounceOutcome, AnnouncePorts, announce};
use crate::entry::{Cause, Entry};
use crate::envelope::EnvelopeFormat;
use crate::intent::Intent;
use crate::job::{JobId, JobKey, Kind};
use crate::keyring::Keyring;
use crate::limits::Limits;
use crate::looks::LookRate;
use crate::pause::Pauses;
use crate::ports::{
    Clock, Control, ControlRow, Cursor, Due, Entries, EntryFilter, ErrorKind, Expected, Inspection,
    IntentExpected, IntentWritten, Intents, LoadedSecrets, Page, Pairs, PortError, Queue, RowWrite,
    SecretSource, Written, WrittenBoth,
};
use crate::receive::{ReceivePorts, Reception, receive};
use crate::signature::preset::Preset;
use crate::signature::scheme::Scheme;
use crate::signature::secret::Secret;
use crate::signature::sign::sign;
use crate::steps::Ports;
use crate::sweep::{Swept, sweep};
use crate::task::Task;
use crate::testing::{MemoryLedger, MemoryQueue, MemoryResults, ScriptedJobs, SeededRandom};
use crate::time::{Timestamp, after, between};

pub(crate) const SECRET: &str = "test-secret-1";
pub(crate) const V1: &[u8] = br#"{"job_id":"j1","event_type":"extract_completed","id":"d1"}"#;

/// What befalls one call of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails and does nothing.
    Before(ErrorKind),
    /// It does its work, and the answer is lost.
    After(ErrorKind),
    /// It never returns and does nothing.
    HangBefore,
    /// It does its work and never returns.
    HangAfter,
}

type Meanwhile = Box<dyn FnOnce() + Send>;

/// Counts the calls of all ports behind it and spoils those that it was told to.
#[derive(Default)]
pub(crate) struct Gate {
    calls: Mutex<Vec<&'static str>>,
    faults: Mutex<BTreeMap<usize, Fault>>,
    standing: Mutex<Vec<(&'static str, Fault)>>,
    meanwhile: Mutex<Vec<(&'static str, Meanwhile)>>,
    yields: AtomicBool,
}

impl Gate {
    /// Spoils the `call`-th call from now on, counted from 1.
    pub(crate) fn spoil(&self, call: usize, fault: Fault) {
        let made = self.calls.lock().unwrap().len();
        self.faults.lock().unwrap().insert(made + call, fault);
    }

    /// Spoils every call of an operation until [`Gate::heal`].
    pub(crate) fn spoil_all(&self, operation: &'static str, fault: Fault) {
        self.standing.lock().unwrap().push((operation, fault));
    }

    pub(crate) fn heal(&self) {
        self.faults.lock().unwrap().clear();
        self.standing.lock().unwrap().clear();
    }

    /// Lets something happen just before the next call of an operation takes effect.
    pub(crate) fn meanwhile(&self, operation: &'static str, act: impl FnOnce() + Send + 'static) {
        self.meanwhile.lock().unwrap().push((operation, Box::new(act)));
    }

    /// Lets every call give others their turn, before its effect and after it.
    pub(crate) fn yield_at_each_call(&self) {
        self.yields.store(true, Ordering::Relaxed);
    }

    /// The operations called since the last look, in order.
    pub(crate) fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn fault(&self, call: usize, operation: &'static str) -> Option<Fault> {
        let standing = self.standing.lock().unwrap();
        let standing = standing.iter().find(|(of, _)| *of == operation).map(|(_, fault)| *fault);
        self.faults.lock().unwrap().remove(&call).or(standing)
    }

    async fn pass<T>(
        &self,
        port: &'static str,
        operation: &'static str,
        effect: impl Future<Output = Result<T, PortError>>,
    ) -> Result<T, PortError> {
        let call = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(operation);
            calls.len()
        };
        let fault = self.fault(call, operation);
        let yields = self.yields.load(Ordering::Relaxed);
        if yields {
            yield_once().await;
        }
        match fault {
            Some(Fault::Before(kind)) => return Err(PortError::new(port, operation, kind)),
            Some(Fault::HangBefore) => pending().await,
            Some(Fault::After(_) | Fault::HangAfter) | None => {}
        }
        let act = {
            let mut meanwhile = self.meanwhile.lock().unwrap();
            let at = meanwhile.iter().position(|(of, _)| *of == operation);
            at.map(|at| meanwhile.remove(at).1)
        };
        if let Some(act) = act {
            act();
        }
        let outcome = effect.await;
        if yields {
            yield_once().await;
        }
        match fault {
            Some(Fault::After(kind)) => Err(PortError::new(port, operation, kind)),
            Some(Fault::HangAfter) => pending().await,
            _ => outcome,
        }
    }
}

async fn yield_once() {
    let mut yielded = false;
    poll_fn(
        |_| if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}

/// A port behind a gate.
pub(crate) struct Gated<P> {
    inner: Arc<P>,
    gate: Arc<Gate>,
}

#[async_trait]
impl Entries for Gated<MemoryLedger> {
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError> {
        self.gate.pass("ledger", "load", self.inner.load(key)).await
    }

    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError> {
        self.gate.pass("ledger", "write", self.inner.write(entry, expected)).await
    }
}

#[async_trait]
impl Pairs for Gated<MemoryLedger> {
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError> {
        self.gate.pass("ledger", "write_both", self.inner.write_both(rows)).await
    }
}

#[async_trait]
impl Due for Gated<MemoryLedger> {
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        self.gate.pass("ledger", "list_due", self.inner.list_due(now, after, limit)).await
    }

    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        let effect = self.inner.list_due_intents(now, after, limit);
        self.gate.pass("ledger", "list_due_intents", effect).await
    }
}

#[async_trait]
impl Intents for Gated<MemoryLedger> {
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError> {
        self.gate.pass("ledger", "load_intent", self.inner.load_intent(id)).await
    }

    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError> {
        self.gate.pass("ledger", "write_intent", self.inner.write_intent(intent, expected)).await
    }

    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError> {
        self.inner.has_unresolved_post(kind, until).await
    }
}

#[async_trait]
impl Control for Gated<MemoryLedger> {
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
        self.gate.pass("ledger", "load_control", self.inner.load_control(name)).await
    }

    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
        self.gate.pass("ledger", "write_control", self.inner.write_control(row)).await
    }
}

#[async_trait]
impl Inspection for Gated<MemoryLedger> {
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        self.inner.list_entries(filter, after, limit).await
    }

    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.inner.count_entries().await
    }

    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.inner.count_intents().await
    }

    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        self.inner.list_intents(run, after, limit).await
    }
}

#[async_trait]
impl Queue for Gated<MemoryQueue> {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        self.gate.pass("queue", "send", self.inner.send(task, delay)).await
    }
}

/// Signing secrets as an operator lays them down.
#[derive(Default)]
pub(crate) struct ScriptedSecrets {
    pub(crate) gate: Gate,
    secrets: Mutex<Vec<Secret>>,
    is_one_unread: AtomicBool,
}

impl ScriptedSecrets {
    pub(crate) fn holding(secrets: &[&str]) -> Self {
        let held = Self::default();
        held.hold(secrets);
        held
    }

    pub(crate) fn hold(&self, secrets: &[&str]) {
        self.hold_all(secrets.iter().map(|text| Secret::new(text).unwrap()).collect());
    }

    pub(crate) fn hold_all(&self, secrets: Vec<Secret>) {
        *self.secrets.lock().unwrap() = secrets;
    }

    /// Whether one more is there and cannot be read.
    pub(crate) fn lack_one(&self, is_one_unread: bool) {
        self.is_one_unread.store(is_one_unread, Ordering::Relaxed);
    }

    /// How often the secrets were read since the last look.
    pub(crate) fn take_loads(&self) -> usize {
        self.gate.take_calls().len()
    }
}

#[async_trait]
impl SecretSource for ScriptedSecrets {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        let unread = || PortError::new("secrets", "load", ErrorKind::Denied);
        let read = async {
            let secrets = self.secrets.lock().unwrap().clone();
            let is_one_unread = self.is_one_unread.load(Ordering::Relaxed);
            Ok(LoadedSecrets { secrets, unread: is_one_unread.then(unread) })
        };
        self.gate.pass("secrets", "load", read).await
    }
}

/// A clock whose sleepers wait until somebody moves it.
pub(crate) struct WaitingClock(Mutex<Timestamp>);

impl WaitingClock {
    pub(crate) fn advance(&self, duration: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = after(*now, duration);
    }

    pub(crate) fn set(&self, at: Timestamp) {
        *self.0.lock().unwrap() = at;
    }
}

impl Default for WaitingClock {
    fn default() -> Self {
        Self(Mutex::new("2026-11-30T12:00:00Z".parse().unwrap()))
    }
}

#[async_trait]
impl Clock for WaitingClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    async fn sleep(&self, duration: Duration) {
        let until = after(self.now(), duration);
        poll_fn(|_| if self.now() >= until { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

/// How far the clock moves whenever everybody waits.
const STEP: Duration = Duration::from_millis(50);
/// Longest wait of a test, by its own clock: 60 s.
const STEPS_MAX: u32 = 1_200;

/// Runs to the end; whenever nothing goes on, time does.
pub(crate) fn drive<T>(clock: &WaitingClock, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..STEPS_MAX {
        if let Poll::Ready(value) = work.as_mut().poll(&mut context) {
            return value;
        }
        clock.advance(STEP);
    }
    panic!("nothing happened for a minute");
}

/// Polls all in turns that `seed` decides, while time stands still.
pub(crate) fn interleave<T>(
    seed: u64,
    works: impl IntoIterator<Item = impl Future<Output = T>>,
) -> Vec<T> {
    use crate::ports::Random;

    let random = SeededRandom::new(seed);
    let mut context = Context::from_waker(Waker::noop());
    let mut running: Vec<_> = works.into_iter().map(Box::pin).enumerate().collect();
    let mut done: BTreeMap<usize, T> = BTreeMap::new();
    for _ in 0..1_000_000 {
        let Ok(length @ 1..) = u64::try_from(running.len()) else { break };
        let at = usize::try_from(random.next_u64() % length).unwrap();
        if let Poll::Ready(value) = running[at].1.as_mut().poll(&mut context) {
            done.insert(running.swap_remove(at).0, value);
        }
    }
    assert!(running.is_empty(), "{} of the works hang", running.len());
    done.into_values().collect()
}

/// A receiver, and everything around it.
pub(crate) struct Bench {
    pub(crate) clock: Arc<WaitingClock>,
    pub(crate) ledger: Arc<MemoryLedger>,
    pub(crate) queue: Arc<MemoryQueue>,
    pub(crate) jobs: ScriptedJobs,
    pub(crate) gate: Arc<Gate>,
    pub(crate) secrets: Arc<ScriptedSecrets>,
    pub(crate) limits: Limits,
    pub(crate) scheme: Scheme,
    pub(crate) keyring: Keyring,
    pub(crate) pauses: Pauses,
    format: EnvelopeFormat,
    random: SeededRandom,
    results: MemoryResults,
    looks: LookRate,
    gated_ledger: Gated<MemoryLedger>,
    gated_queue: Gated<MemoryQueue>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let clock = Arc::new(WaitingClock::default());
        let ledger = Arc::new(MemoryLedger::new());
        let queue = Arc::new(MemoryQueue::new(clock.clone()));
        let gate = Arc::new(Gate::default());
        let secrets = Arc::new(ScriptedSecrets::holding(&[SECRET]));
        let scheme = Preset::Geonode.scheme().unwrap();
        Self {
            keyring: Keyring::new(secrets.clone(), scheme.clone(), &limits),
            gated_ledger: Gated { inner: ledger.clone(), gate: gate.clone() },
            gated_queue: Gated { inner: queue.clone(), gate: gate.clone() },
            jobs: ScriptedJobs::new(clock.clone()),
            pauses: Pauses::default(),
            format: EnvelopeFormat::default(),
            random: SeededRandom::new(7),
            results: MemoryResults::new(),
            looks: LookRate::default(),
            clock,
            ledger,
            queue,
            gate,
            secrets,
            limits,
            scheme,
        }
    }

    /// The ports of the steps, behind the gate.
    pub(crate) fn ports(&self) -> Ports<'_> {
        Ports {
            ledger: &self.gated_ledger,
            queue: &self.gated_queue,
            jobs: &self.jobs,
            results: &self.results,
            clock: &*self.clock,
            random: &self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }

    pub(crate) fn announcing(&self) -> AnnouncePorts<'_> {
        self.ports().announcing()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The headers of a body signed with this secret.
    pub(crate) fn signed(&self, secret: &str, body: &[u8]) -> Vec<(String, Vec<u8>)> {
        let secret = Secret::new(secret).unwrap();
        let headers = sign(&self.scheme, &secret, body, "id", self.now()).unwrap();
        headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect()
    }

    pub(crate) async fn receive(&self, headers: &[(String, Vec<u8>)], body: &[u8]) -> Reception {
        let ports = ReceivePorts {
            announcing: self.announcing(),
            keyring: &self.keyring,
            format: &self.format,
        };
        receive(ports, &headers.to_vec(), body).await
    }

    /// Delivers a body with these headers, to the end.
    pub(crate) fn send(&self, headers: &[(String, Vec<u8>)], body: &[u8]) -> Reception {
        drive(&self.clock, self.receive(headers, body))
    }

    /// Delivers a body, correctly signed, to the end.
    pub(crate) fn deliver(&self, body: impl AsRef<[u8]>) -> Reception {
        let body = body.as_ref();
        self.send(&self.signed(SECRET, body), body)
    }

    /// The status that a body gets, correctly signed.
    pub(crate) fn status(&self, body: impl AsRef<[u8]>) -> u16 {
        self.deliver(body).status()
    }

    /// What announcing a job finds.
    pub(crate) fn announce(&self, key: &JobKey) -> Result<AnnounceOutcome, PortError> {
        drive(&self.clock, announce(self.announcing(), key, Cause::Replay, None))
    }

    pub(crate) fn sweep(&self, budget: u32) -> Result<Swept, PortError> {
        drive(&self.clock, sweep(self.ports(), budget))
    }

    pub(crate) fn row(&self, key: &JobKey) -> Option<Entry> {
        self.ledger.entry(key)
    }

    /// How long something takes by the bench's clock.
    pub(crate) fn timed<T>(&self, act: impl FnOnce() -> T) -> (T, Duration) {
        let began_at = self.now();
        let value = act();
        (value, between(began_at, self.now()))
    }
}

pub(crate) fn extract(id: &str) -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse(id).unwrap())
}
