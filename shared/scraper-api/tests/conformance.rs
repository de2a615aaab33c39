//! The conformance suite of the platform's API, run over HTTP against the simulator.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::job::JobKey;
use domain::ports::{Clock, Jobs};
use domain::request::JobRequest;
use domain::testing::ManualClock;
use domain::time::Timestamp;
use scraper_api::{ApiKey, Config, ScraperApi};
use simulator::{ApiFaults, Call, Faults, Running, SystemClock};
use testkit::conformance::{
    CallOf, Fate, JobsCaps, JobsPlatform, JobsSubject, Trouble, api_faults, job_faults,
};
use tokio::net::TcpListener;

const KEY: &str = "simulated-key";

/// Real time, by which calls over a socket take theirs.
struct RealClock;

#[async_trait]
impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        simulator::Clock::now(&SystemClock)
    }

    async fn sleep(&self, duration: Duration) {
        simulator::Clock::sleep(&SystemClock, duration).await;
    }
}

/// The platform's clock: jobs go on when a test moves it, and connections wait in real time.
struct PlatformClock(Arc<ManualClock>);

#[async_trait]
impl simulator::Clock for PlatformClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep(&self, duration: Duration) {
        simulator::Clock::sleep(&SystemClock, duration).await;
    }
}

struct Simulated {
    clock: Arc<ManualClock>,
    running: Running,
    api: ScraperApi,
}

fn client(running: &Running, clock: Arc<ManualClock>, body_bytes_max: usize) -> ScraperApi {
    let mut config = Config::new(&running.base_url(), ApiKey::parse(KEY).unwrap()).unwrap();
    config.body_bytes_max = body_bytes_max;
    ScraperApi::new(config, clock).unwrap()
}

/// A simulator of its own; it ends with the test's runtime.
async fn subject() -> JobsSubject {
    let clock = Arc::new(ManualClock::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = simulator::Config { api_key: KEY.to_owned(), ..simulator::Config::default() };
    let platform_clock = Arc::new(PlatformClock(clock.clone()));
    let running = simulator::start(listener, config, platform_clock).unwrap();
    let api = client(&running, clock.clone(), 64 * 1024 * 1024);
    let caps = JobsCaps {
        fates: Fate::ALL.to_vec(),
        troubles: vec![
            Trouble::Denied,
            Trouble::PaymentRequired,
            Trouble::Throttled,
            Trouble::ThrottledFor,
            Trouble::Unavailable,
            Trouble::BadGateway,
            Trouble::Cut,
            Trouble::LostAnswer,
            Trouble::Hang,
            Trouble::Slow,
        ],
        parent_ids_are_uuids: true,
        // Generous, for a busy machine; a hang of the simulator takes a minute.
        slack: Duration::from_secs(10),
    };
    JobsSubject::new(Box::new(Simulated { clock, running, api }), caps)
}

impl Simulated {
    fn set_faults(&self, change: impl FnOnce(&mut Faults)) {
        self.running.with_platform(|platform, _now| {
            let mut faults = platform.faults().clone();
            change(&mut faults);
            platform.set_faults(faults);
        });
    }
}

impl JobsPlatform for Simulated {
    fn jobs(&self) -> &dyn Jobs {
        &self.api
    }

    fn clock(&self) -> &dyn Clock {
        &RealClock
    }

    fn decide(&self, fate: Fate) {
        self.set_faults(|faults| faults.jobs = job_faults(fate));
    }

    fn finish(&self, _key: &JobKey, _request: &JobRequest, _fate: Fate) {
        self.clock.advance(Duration::from_hours(24));
    }

    fn pass(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    fn trouble(&self, _call: &CallOf, trouble: Trouble) {
        self.set_faults(|faults| faults.api = api_faults(trouble));
        if trouble == Trouble::Denied {
            self.api.set_key(ApiKey::parse("another-key").unwrap());
        }
    }

    fn heal(&self) {
        self.set_faults(|faults| faults.api = ApiFaults::default());
        self.api.set_key(ApiKey::parse(KEY).unwrap());
    }

    fn limited(&self) -> Option<Arc<dyn Jobs>> {
        Some(Arc::new(client(&self.running, self.clock.clone(), 100_000)))
    }

    fn answer_of(&self, key: &JobKey) -> Option<String> {
        let path = format!("/v1/{}/{}", key.kind, key.job_id);
        let call = Call { method: "GET", path: &path, query: "", api_key: Some(KEY), body: b"" };
        let answer = self.running.with_platform(|platform, now| platform.call(&call, now));
        String::from_utf8(answer.bytes().to_vec()).ok()
    }
}

testkit::jobs_conformance! { name: scraper_api_over_http, make: subject().await }
