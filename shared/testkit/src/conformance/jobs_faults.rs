use simulator::{ApiFaults, JobFaults};

use super::jobs_subject::{Fate, Trouble};

/// The simulator's faults by which every job ends like this.
pub fn job_faults(fate: Fate) -> JobFaults {
    let mut faults = JobFaults::default();
    match fate {
        Fate::Completed => {}
        Fate::FailedRetryable => faults.fail_retryable = 1.0,
        Fate::FailedFinal => faults.fail_final = 1.0,
        Fate::Cancelled => faults.cancelled = 1.0,
        Fate::Unfinished => faults.never_settle = 1.0,
        Fate::Vanished => faults.vanished = 1.0,
    }
    faults
}

/// The simulator's faults by which every call meets this trouble, or one of its like; none for
/// trouble that it cannot make.
pub fn api_faults(trouble: Trouble) -> ApiFaults {
    let mut faults = ApiFaults::default();
    match trouble {
        Trouble::PaymentRequired => faults.payment_required = 1.0,
        Trouble::Throttled | Trouble::ThrottledFor | Trouble::Unavailable | Trouble::BadGateway => {
            faults.errors = 1.0;
        }
        Trouble::LostAnswer => faults.lost_answers = 1.0,
        Trouble::Hang => faults.hangs = 1.0,
        Trouble::Cut => faults.cut_bodies = 1.0,
        Trouble::Slow => faults.slow_bodies = 1.0,
        Trouble::Denied | Trouble::Unreadable => {}
    }
    faults
}
