//! The simulated platform in this process, prepared.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::job::JobKey;
use domain::ports::{Clock, Jobs};
use domain::request::JobRequest;
use domain::testing::ManualClock;
use simulator::{ApiFaults, Config, Faults};
use testkit::conformance::{
    CallOf, Fate, JobsCaps, JobsPlatform, JobsSubject, Trouble, api_faults, job_faults,
};
use testkit::platform::PlatformJobs;

struct Simulated {
    clock: Arc<ManualClock>,
    platform: Arc<PlatformJobs>,
    jobs: Arc<dyn Jobs>,
    faults: Mutex<Faults>,
}

/// The simulated platform behind a wrapper.
pub(crate) fn subject(wrap: impl FnOnce(Arc<dyn Jobs>) -> Arc<dyn Jobs>) -> JobsSubject {
    let clock = Arc::new(ManualClock::default());
    let platform = Arc::new(PlatformJobs::new(Config::default(), clock.clone()).unwrap());
    let jobs = wrap(platform.clone());
    let caps = JobsCaps {
        fates: Fate::ALL.to_vec(),
        troubles: vec![
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
        slack: Duration::ZERO,
    };
    JobsSubject::new(Box::new(Simulated { clock, platform, jobs, faults: Mutex::default() }), caps)
}

impl Simulated {
    fn set_faults(&self, change: impl FnOnce(&mut Faults)) {
        let mut faults = self.faults.lock().unwrap();
        change(&mut faults);
        self.platform.set_faults(faults.clone());
    }
}

impl JobsPlatform for Simulated {
    fn jobs(&self) -> &dyn Jobs {
        self.jobs.as_ref()
    }

    fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
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
    }

    fn heal(&self) {
        self.set_faults(|faults| faults.api = ApiFaults::default());
    }

    fn limited(&self) -> Option<Arc<dyn Jobs>> {
        None
    }

    fn answer_of(&self, _key: &JobKey) -> Option<String> {
        None
    }
}
