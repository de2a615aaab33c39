//! The platform's API: the one that is scripted and the simulated one in this process do what the
//! port promises, also behind a fault wrapper without faults, and the suite notices flaws.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "what prepares a test fails by panicking, too"
)]

mod notices;
mod platform;
mod scripted;

use std::sync::Arc;

use domain::testing::ManualClock;
use testkit::faulty::{FaultPlan, FaultyJobs, Surroundings};

use self::scripted::Scripted;

testkit::jobs_conformance! { name: scripted_jobs, make: Scripted::subject(|jobs, _clock| jobs) }
testkit::jobs_conformance! { name: faulty_jobs, make: Scripted::subject(|jobs, clock: Arc<ManualClock>| {
    Arc::new(FaultyJobs::new(jobs, Surroundings::new(FaultPlan::none(), clock)))
}) }
testkit::jobs_conformance! { name: platform_jobs, make: platform::subject(|jobs| jobs) }
