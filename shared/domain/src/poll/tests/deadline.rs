//! Nothing begins at the deadline or lasts beyond it, in any branch: single and bulk polling, by a
//! clock that many sleep by, through weather of every sort.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::limits::Limits;
use crate::looks::LookRate;
use crate::pause::Pauses;
use crate::ports::{Due as _, Listed, TaskSource as _};
use crate::testing::{EventClock, MemoryLedger, MemoryQueue, MemoryResults, extract_answer};

/// What becomes of one call.
#[derive(Debug, Clone)]
enum Weather {
    /// The platform answers as the job stands.
    Fair,
    /// It answers so.
    Says(JobStatus),
    /// It refuses, or its answer is of no use.
    Fails(ApiError),
    /// It does not answer while the caller waits.
    Hangs,
    /// The list has a hole, repeats a page, or ends early; anything else is fair.
    Lies(u32),
}

/// The platform: jobs that end at their time, and a script of the weather, call by call; the last
/// of it stays.
struct Platform {
    clock: Arc<EventClock>,
    script: Mutex<VecDeque<(Weather, Duration)>>,
    jobs: Vec<(JobKey, Timestamp)>,
    /// When each call began, and how long it was given.
    log: Mutex<Vec<(Timestamp, Duration)>>,
}

impl Platform {
    async fn pass(&self, within: Duration) -> Result<Weather, ApiError> {
        self.log.lock().unwrap().push((self.clock.now(), within));
        let (weather, takes) = {
            let mut script = self.script.lock().unwrap();
            let next = script.front().cloned().unwrap();
            if script.len() > 1 {
                script.pop_front();
            }
            next
        };
        let takes = if matches!(weather, Weather::Hangs) { within } else { takes };
        self.clock.sleep(takes.min(within)).await;
        if takes >= within {
            return Err(error(ApiErrorKind::Unavailable, None));
        }
        match weather {
            Weather::Fails(error) => Err(error),
            weather => Ok(weather),
        }
    }

    fn status(&self, weather: Weather, job_id: &JobId) -> Result<JobStatus, ApiError> {
        let job = self.jobs.iter().find(|(key, _)| key.job_id == *job_id);
        let (_, ends) = job.ok_or_else(|| error(ApiErrorKind::Missing, Some(404)))?;
        Ok(match weather {
            Weather::Says(status) => status,
            _ if *ends <= self.clock.now() => JobStatus::Completed,
            _ => JobStatus::Processing,
        })
    }
}

#[async_trait]
impl Jobs for Platform {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        let weather = self.pass(within).await?;
        let status = self.status(weather, job_id)?;
        let failed = status == JobStatus::Failed;
        let error = failed.then(|| JobError::new("TIMEOUT", "", true));
        Ok(ExtractJob { error, ..extract_answer(job_id, status) })
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        let weather = self.pass(within).await?;
        let status = self.status(weather, &key.job_id)?;
        let first = 3 * (page.page - 1);
        Ok(parent_answer(key, status, if first < 9 { items(first..first + 3) } else { vec![] }))
    }

    async fn submit(&self, _: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.pass(within).await.map_err(SubmitError::Unanswered)?;
        Ok(id("another"))
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        let weather = self.pass(within).await?;
        let (skip, page) = match weather {
            Weather::Lies(lie) => (usize::try_from(lie % 3).unwrap(), 1 + lie % 2),
            _ => (0, query.page),
        };
        let is_capped = matches!(weather, Weather::Lies(_));
        let jobs = self.jobs.iter().filter(|(key, _)| page == 1 && key.kind == kind).skip(skip);
        let jobs = jobs.map(|(key, _)| Listed {
            job_id: key.job_id.clone(),
            status: self.status(weather.clone(), &key.job_id).unwrap(),
            created_at: None,
            url: None,
            accepted_urls: None,
            formats: None,
            render_js: None,
        });
        Ok(ListPage { jobs: jobs.collect(), unreadable: 0, page_count: None, is_capped })
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.pass(within).await.map(drop)
    }
}

/// Everything that polling needs, by one clock.
struct World {
    clock: Arc<EventClock>,
    jobs: Platform,
    ledger: MemoryLedger,
    queue: MemoryQueue,
    results: MemoryResults,
    random: SeededRandom,
    limits: Limits,
    pauses: Pauses,
    looks: LookRate,
}

/// How a world is made.
#[derive(Debug, Clone)]
struct Plan {
    script: Vec<(Weather, Duration)>,
    /// How long each job takes, whether it is a batch, and how the ledger knows it.
    jobs: Vec<(Duration, bool, Known)>,
    longest: Duration,
    base: Duration,
    cap: Duration,
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Not,
    Expected,
    /// Submitted by us, so that a failure is paid for anew.
    Linked,
}

impl World {
    fn new(plan: &Plan) -> Self {
        let clock = Arc::new(EventClock::default());
        let now = clock.now();
        let limits = Limits::default();
        let ledger = MemoryLedger::new();
        let mut jobs = Vec::new();
        for (number, (takes, is_batch, known)) in plan.jobs.iter().enumerate() {
            let name = format!("j{number}");
            let key = if *is_batch { batch(&name) } else { extract(&name) };
            let link = (*known == Known::Linked).then(|| link_of(&key, "s"));
            if *known != Known::Not {
                ledger.place(&Entry::expected(key.clone(), link, Cause::Submit, now, &limits));
            }
            jobs.push((key, after(now, *takes)));
        }
        let script = Mutex::new(plan.script.clone().into());
        Self {
            jobs: Platform { clock: clock.clone(), script, jobs, log: Mutex::default() },
            queue: MemoryQueue::new(clock.clone()),
            random: SeededRandom::new(plan.seed),
            results: MemoryResults::new(),
            pauses: Pauses::default(),
            looks: LookRate::default(),
            ledger,
            limits,
            clock,
        }
    }

    fn ports(&self) -> Ports<'_> {
        Ports {
            ledger: &self.ledger,
            queue: &self.queue,
            jobs: &self.jobs,
            results: &self.results,
            clock: self.clock.as_ref(),
            random: &self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }

    fn patience(&self, plan: &Plan) -> Patience {
        let deadline = after(self.clock.now(), plan.longest);
        Patience { deadline, base: plan.base, cap: plan.cap }
    }

    /// What must hold when a wait has ended, however it did.
    fn check(&self, deadline: Timestamp, plan: &Plan) -> Result<(), TestCaseError> {
        prop_assert!(self.clock.now() <= deadline, "it ended late");
        prop_assert!(self.clock.last_end() <= deadline, "a sleep was to pass the deadline");
        let log = self.jobs.log.lock().unwrap();
        for (begun, within) in log.iter() {
            prop_assert!(*begun < deadline, "a call began late");
            prop_assert!(after(*begun, *within) <= deadline, "a call was to pass the deadline");
        }
        // Between two looks there is the shortest pause; a look at a job takes a call for each of
        // its pages, one for the key, and one that pays.
        let looks = u32::try_from(plan.longest.as_millis() / PAUSE_MIN.as_millis()).unwrap() + 2;
        let calls = looks * 8 * u32::try_from(plan.jobs.len() + 1).unwrap();
        prop_assert!(log.len() <= usize::try_from(calls).unwrap(), "{} calls", log.len());
        Ok(())
    }
}

/// Works the tasks one after the other.
struct Workers<'a>(&'a World);

#[async_trait]
impl Crew for Workers<'_> {
    async fn work(&self, deadline: Timestamp) -> Result<ControlFlow<()>, PortError> {
        loop {
            let taken = self.0.queue.receive(10, HOUR).await?;
            if taken.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            for held in taken {
                look(self.0.ports(), &held.task, Look::ScheduledUntil(deadline)).await?;
                self.0.queue.acknowledge(&held).await?;
            }
        }
    }

    async fn wait(&self, longest: Duration) -> Result<(), PortError> {
        self.0.clock.sleep(longest).await;
        Ok(())
    }

    async fn is_done(&self) -> Result<bool, PortError> {
        let open = self.0.ledger.list_due(Timestamp::MAX, None, 1).await?;
        Ok(open.items.is_empty())
    }

    fn hear(&self, _: News<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn failures() -> impl Strategy<Value = ApiError> {
    use ApiErrorKind as K;
    let kinds = [
        (K::Throttled, Some(429), None),
        (K::Throttled, Some(429), Some(true)),
        (K::Throttled, Some(429), Some(false)),
        (K::PaymentRequired, Some(402), None),
        (K::Denied, Some(401), None),
        (K::Denied, Some(403), None),
        (K::Missing, Some(404), None),
        (K::Missing, Some(410), None),
        (K::Refused, Some(400), None),
        (K::Refused, Some(422), None),
        (K::Unavailable, Some(500), None),
        (K::Unavailable, Some(502), None),
        (K::Unavailable, Some(503), None),
        (K::Unavailable, None, None),
        (K::Unreadable, Some(200), None),
        (K::TooLarge, Some(200), None),
    ];
    // As they are read: a date in the past is nothing, an absurd one is clamped; and what an
    // adapter that does not clamp would say.
    let waits = [Duration::ZERO, SECOND, 20 * SECOND, HOUR, Duration::MAX];
    let wait = prop::option::of(prop::sample::select(waits.to_vec()));
    (prop::sample::select(kinds.to_vec()), wait).prop_map(|((kind, status, retryable), wait)| {
        ApiError { retryable, retry_after: wait, ..error(kind, status) }
    })
}

fn weather() -> impl Strategy<Value = (Weather, Duration)> {
    let statuses = ["queued", "processing", "completed", "failed", "cancelled", "brand-new", ""];
    let sort = prop_oneof![
        3 => Just(Weather::Fair),
        2 => prop::sample::select(statuses.to_vec())
            .prop_map(|status| Weather::Says(JobStatus::from_api(status))),
        4 => failures().prop_map(Weather::Fails),
        1 => Just(Weather::Hangs),
        1 => (0_u32..6).prop_map(Weather::Lies),
    ];
    let takes = prop_oneof![3 => Just(0), 2 => 0_u64..2_000, 1 => 0_u64..90_000];
    (sort, takes.prop_map(Duration::from_millis))
}

fn millis(longest: u64) -> impl Strategy<Value = Duration> {
    prop_oneof![1 => Just(0), 9 => 0..longest].prop_map(Duration::from_millis)
}

fn plans(jobs: usize) -> impl Strategy<Value = Plan> {
    let known = prop::sample::select(vec![Known::Not, Known::Expected, Known::Linked]);
    let job = (millis(120_000), prop::bool::weighted(0.3), known);
    (
        prop::collection::vec(weather(), 1..20),
        prop::collection::vec(job, 1..=jobs),
        millis(180_000),
        prop_oneof![millis(5_000), Just(Duration::MAX)],
        prop_oneof![millis(60_000), Just(Duration::MAX)],
        any::<u64>(),
    )
        .prop_map(|(script, jobs, longest, base, cap, seed)| Plan {
            script,
            jobs,
            longest,
            base,
            cap,
            seed,
        })
}

/// Whether a wait may end before its deadline for this.
fn is_told(error: &ApiError, world: &World) -> bool {
    let last = matches!(
        error.kind,
        ApiErrorKind::Denied | ApiErrorKind::PaymentRequired | ApiErrorKind::Refused
    );
    let failures = usize::try_from(FAILURES_MAX).unwrap();
    last || error.retryable == Some(false) || world.jobs.log.lock().unwrap().len() >= failures
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// CL-01, CL-02, CL-03: single polling, with and without somebody who ends the call.
    #[test]
    fn single_polling_keeps_to_its_deadline(plan in plans(1), stops in prop::option::of(millis(100_000))) {
        let world = World::new(&plan);
        let patience = world.patience(&plan);
        let key = &world.jobs.jobs[0].0;
        let stop = async {
            match stops {
                Some(at) => world.clock.sleep(at.min(plan.longest)).await,
                None => std::future::pending().await,
            }
        };
        let polled = world.clock.run(poll_until(world.ports(), key, patience, stop)).unwrap().unwrap();
        world.check(patience.deadline, &plan)?;
        let is_late = world.clock.now() == patience.deadline;
        let row = world.ledger.entry(key);
        let is_settled = row.as_ref().is_some_and(|row| row.state.is_terminal());
        match &polled {
            Polled::Settled(entry) => prop_assert_eq!(row.as_ref(), Some(&**entry)),
            Polled::Timeout(_) => prop_assert!(is_late && !is_settled, "{:?}", polled),
            Polled::Stopped(_) => prop_assert!(stops.is_some() && !is_settled),
            Polled::Failed(error) => prop_assert!(is_told(error, &world), "{:?}", error),
            Polled::Unknown(error) => prop_assert!(error.kind == ApiErrorKind::Missing && row.is_none()),
            Polled::UnknownStatus(status) => prop_assert!(matches!(status, JobStatus::Unknown(_))),
        }
    }

    /// CL-01, CL-02, CL-03: bulk polling of everything open.
    #[test]
    fn bulk_polling_keeps_to_its_deadline(plan in plans(5), once: bool) {
        let world = World::new(&plan);
        let patience = world.patience(&plan);
        let crew = Workers(&world);
        let rounds = poll_open(world.ports(), &crew, patience, 100, once);
        let ended = world.clock.run(rounds).unwrap().unwrap();
        world.check(patience.deadline, &plan)?;
        let open = world.ledger.entries().iter().filter(|row| !row.state.is_terminal()).count();
        match ended {
            RoundsEnded::Done => prop_assert_eq!(open, 0),
            RoundsEnded::Once => prop_assert!(once && open > 0),
            RoundsEnded::Late => {
                prop_assert!(world.clock.now() == patience.deadline && open > 0);
            }
        }
    }

    /// CL-07: whatever the weather was, it ends, and then everything open is settled: waiting does
    /// not stop looking, and no pause grows without bound.
    #[test]
    fn bulk_polling_settles_everything_in_the_end(plan in plans(5)) {
        let hour_long = Plan { longest: 60 * HOUR, base: SECOND, cap: 30 * SECOND, ..plan };
        let mut script = hour_long.script.clone();
        script.push((Weather::Fair, Duration::ZERO));
        let plan = Plan { script, ..hour_long };
        let world = World::new(&plan);
        let patience = world.patience(&plan);
        let crew = Workers(&world);
        let rounds = poll_open(world.ports(), &crew, patience, 100, false);
        let ended = world.clock.run(rounds).unwrap().unwrap();
        prop_assert_eq!(ended, RoundsEnded::Done);
    }
}

/// CL-02: a call that hangs while somebody ends the wait is given its moment, and no more than the
/// deadline leaves.
#[test]
fn the_moment_after_a_stop_ends_with_the_deadline() {
    let plan = Plan {
        script: vec![(Weather::Hangs, Duration::ZERO)],
        jobs: vec![(SECOND, false, Known::Expected)],
        longest: 7 * SECOND,
        base: SECOND,
        cap: 30 * SECOND,
        seed: 1,
    };
    let world = World::new(&plan);
    let patience = world.patience(&plan);
    let key = &world.jobs.jobs[0].0;
    let stop = world.clock.sleep(5 * SECOND);
    world.clock.run(poll_until(world.ports(), key, patience, stop)).unwrap().unwrap();
    world.check(patience.deadline, &plan).unwrap();
}
