//! A process: one operation over faulty ports, which may be killed at a call.

use std::fmt::{Debug, Write as _};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::StateName;
use domain::job::JobKey;
use domain::poll::{Asked, bulk_poll};
use domain::ports::{Clock, EntryFilter, Jobs as _, PortError, TaskSource as _};
use domain::receive::{ReceivePorts, Reception, receive};
use domain::reconcile::{Found, Manner, Reconciled, Rules, reconcile};
use domain::redrive::{Decided, PayAgain, redrive};
use domain::replay::{self, Logged, Replayed, replay};
use domain::submit::submit;
use domain::sweep::{recover_due, sweep};
use domain::time::{Timestamp, after};
use domain::work::{Look, Worked, work};
use simulator::AttemptOutcome;

use super::scenario::Operation;
use super::world::{Host, World};

/// The clock by which the calls of one process hang: where hanging kills, the process ends there.
pub(super) struct Fate {
    clock: Arc<dyn Clock>,
    kills: bool,
    is_over: AtomicBool,
}

impl Fate {
    pub(super) fn new(clock: Arc<dyn Clock>, kills: bool) -> Arc<Self> {
        Arc::new(Self { clock, kills, is_over: AtomicBool::new(false) })
    }

    /// The fate of the next process in the place of this one.
    pub(super) fn next(&self) -> &Self {
        self.is_over.store(false, Ordering::Relaxed);
        self
    }

    /// Runs a process to its end, or to where it is killed.
    pub(super) async fn run<T>(&self, process: impl Future<Output = T>) -> Option<T> {
        let mut process = pin!(process);
        poll_fn(|context| match process.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if self.is_over.load(Ordering::Relaxed) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

#[async_trait]
impl Clock for Fate {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn sleep(&self, duration: Duration) {
        if self.kills {
            self.is_over.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
        }
        self.clock.sleep(duration).await;
    }
}

/// Tasks are held for so long by whoever takes them.
const HOLD: Duration = Duration::from_mins(6);
/// Rows that a sweep moves on.
const BUDGET: u32 = 1_000;
/// Dead rows that an operator tries again at a time.
const REDRIVES_MAX: u32 = 3;

/// What a process came to.
#[derive(Debug, Default)]
pub(super) struct ToldBy {
    /// For the trace.
    pub(super) text: String,
    /// Jobs whose delivery was answered 2xx.
    pub(super) acknowledged: Vec<JobKey>,
    /// Whether a delivery was refused whose secret every receiver must know.
    pub(super) refused: bool,
}

impl ToldBy {
    fn of(text: impl Debug) -> Self {
        Self { text: format!("{text:?}"), ..Self::default() }
    }
}

/// One operation of one process.
pub(super) struct Process<'a> {
    pub(super) world: &'a World,
    pub(super) host: &'a Host,
}

impl Process<'_> {
    pub(super) async fn run(self, operation: Operation) -> ToldBy {
        let Self { world, host } = self;
        let ports = host.ports(world);
        let fate = &host.fate;
        match operation {
            Operation::Submit(number) => {
                let submission = world.submission(number);
                ToldBy::of(fate.run(submit(ports, &submission)).await)
            }
            Operation::SubmitElsewhere(number) => {
                let within = world.limits.post_timeout;
                ToldBy::of(world.platform.submit(&world.elsewhere(number), within).await.is_ok())
            }
            Operation::Deliver { reversed } => self.deliver(reversed).await,
            Operation::Work(count) => ToldBy::of(fate.run(self.work(count)).await),
            Operation::WorkAgain(count) => ToldBy::of(fate.run(self.work_again(count)).await),
            Operation::Recover => ToldBy::of(fate.run(recover_due(ports, BUDGET)).await),
            Operation::BulkPoll => ToldBy::of(fate.run(bulk_poll(ports, Asked::Due)).await),
            Operation::Sweep => ToldBy::of(fate.run(sweep(ports, BUDGET)).await),
            Operation::Reconcile => ToldBy::of(fate.run(self.reconcile()).await),
            Operation::Replay => ToldBy::of(fate.run(self.replay()).await),
            Operation::Redrive => ToldBy::of(fate.run(self.redrive()).await),
            Operation::BeginRotation(kind, strategy) => {
                ToldBy::of(self.begin_rotation(kind, strategy).await)
            }
            Operation::RotationStep { kind, again } => {
                ToldBy::of(fate.run(self.rotation_step(kind, again)).await)
            }
            Operation::RotateWhole(kind, strategy) => {
                ToldBy::of(fate.run(Box::pin(self.rotate_whole(kind, strategy))).await)
            }
            Operation::Retire => ToldBy::of(fate.run(self.retire()).await),
            Operation::Ensure => ToldBy::of(fate.run(self.ensure()).await),
            Operation::Tick => ToldBy::of(fate.run(Box::pin(self.tick())).await),
            Operation::Meddle(kind) => ToldBy::of(self.meddle(kind).await),
            Operation::Trouble(trouble, lasts) => {
                world.account.be_in(trouble, lasts);
                ToldBy::default()
            }
            Operation::LoseTasks => {
                world.queue.lose_all();
                ToldBy::default()
            }
            Operation::Pass(duration) => {
                world.clock.sleep(duration).await;
                ToldBy::default()
            }
        }
    }

    /// Each delivery is received by a process of its own, as functions are; the plan is theirs
    /// together.
    async fn deliver(self, reversed: bool) -> ToldBy {
        let Self { world, host } = self;
        let mut due = world.platform.due_deliveries();
        if reversed {
            due.reverse();
        }
        let mut told = ToldBy::default();
        // Some receivers have just started, and some have known the secrets for a while.
        let keyring = world.receivers.get(host.number % 3).unwrap_or(&host.keyring);
        for delivery in &due {
            let ports = ReceivePorts {
                announcing: host.ports(world).announcing(),
                keyring,
                format: &world.format,
            };
            let fate = host.fate.next();
            let reception = fate.run(receive(ports, &delivery.headers, &delivery.body)).await;
            let outcome = match &reception {
                Some(reception) => AttemptOutcome::Answered(reception.status()),
                None => AttemptOutcome::Unanswered,
            };
            world.platform.report(delivery, outcome);
            write!(told.text, "{outcome:?} ").unwrap_or_default();
            match reception {
                Some(Reception::Accepted { key, .. }) => told.acknowledged.push(key),
                Some(Reception::Rejected { .. }) if world.should_be_known(delivery).await => {
                    told.refused = true;
                }
                _ => {}
            }
        }
        told
    }

    async fn work(&self, count: u32) -> Vec<Result<Worked, PortError>> {
        let Ok(held) = self.host.tasks.receive(count, HOLD).await else { return Vec::new() };
        let mut worked = Vec::new();
        for held in held {
            let outcome = work(self.host.ports(self.world), &held.task).await;
            if outcome.is_ok() {
                // A task that is not acknowledged comes again.
                drop(self.host.tasks.acknowledge(&held).await);
            }
            worked.push(outcome);
        }
        worked
    }

    async fn work_again(&self, count: u32) -> Vec<Result<Worked, PortError>> {
        let mut worked = Vec::new();
        for task in self.world.queue.tasks().iter().take(usize::try_from(count).unwrap_or(0)) {
            worked.push(work(self.host.ports(self.world), task).await);
        }
        worked
    }

    /// As a run of the scheduler does, which ends after some minutes.
    fn manner(&self) -> Manner {
        let until = after(self.world.clock.now(), Duration::from_mins(4));
        Manner { look: Look::Until(until), is_dry: false }
    }

    async fn replay(&self) -> (Result<(), PortError>, Replayed) {
        let (ports, webhooks) = (self.host.ports(self.world), &self.host.webhooks);
        let rules = replay::Rules::default();
        let mut report = Replayed::default();
        let mut hear = |_: &Logged| {};
        let done = replay(ports, webhooks, &rules, self.manner(), &mut report, &mut hear).await;
        (done, report)
    }

    async fn reconcile(&self) -> (Result<(), PortError>, Reconciled) {
        let manner = self.manner();
        let mut report = Reconciled::default();
        let ports = self.host.ports(self.world);
        let mut hear = |_: &Found| {};
        let done = reconcile(ports, &Rules::default(), manner, &mut report, &mut hear).await;
        (done, report)
    }

    async fn redrive(&self) -> Vec<Result<Decided, PortError>> {
        let ports = self.host.ports(self.world);
        let filter = EntryFilter { state: Some(StateName::Dead), ..EntryFilter::default() };
        let Ok(dead) = ports.ledger.list_entries(&filter, None, REDRIVES_MAX).await else {
            return Vec::new();
        };
        let mut decided = Vec::new();
        for entry in dead.items {
            decided.push(redrive(ports.announcing(), entry, PayAgain::Never, None).await);
        }
        decided
    }
}
