use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use domain::job::{JobId, JobKey, Kind};
use domain::ports::{Clock, Jobs};
use domain::request::JobRequest;

/// How a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// With a result; all parts of a batch or crawl with theirs.
    Completed,
    /// Without one, and another try may help.
    FailedRetryable,
    /// Without one, and no other try will help.
    FailedFinal,
    /// Cancelled by the platform. Extract jobs only.
    Cancelled,
    /// Never.
    Unfinished,
    /// It cannot be read, although the list names it.
    Vanished,
}

impl Fate {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Completed,
        Self::FailedRetryable,
        Self::FailedFinal,
        Self::Cancelled,
        Self::Unfinished,
        Self::Vanished,
    ];
}

/// What a call meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// 401.
    Denied,
    /// 402. Submissions only.
    PaymentRequired,
    /// 429 without a wait.
    Throttled,
    /// 429 with a wait.
    ThrottledFor,
    /// 503.
    Unavailable,
    /// 502: whether a POST had its effect is not said.
    BadGateway,
    /// A 2xx answer that is not what the contract says.
    Unreadable,
    /// The effect, and then no answer. Submissions only.
    LostAnswer,
    /// The effect, and then nothing for longer than any deadline.
    Hang,
    /// An answer that breaks off. Reading calls only.
    Cut,
    /// An answer whose head comes at once and whose body takes half a second and more. Reading
    /// calls only.
    Slow,
}

/// Which call meets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOf {
    /// [`Jobs::extract`].
    Extract(JobId),
    /// [`Jobs::parent`].
    Parent(JobKey),
    /// [`Jobs::submit`].
    Submit,
    /// [`Jobs::list`].
    List(Kind),
    /// [`Jobs::probe`].
    Probe,
}

/// A platform that can be prepared, with its port.
pub trait JobsPlatform {
    /// The port.
    fn jobs(&self) -> &dyn Jobs;

    /// The clock by which calls take their time.
    fn clock(&self) -> &dyn Clock;

    /// Lets jobs that are accepted from now on end like this.
    fn decide(&self, fate: Fate);

    /// Lets a job that was accepted come to its end, and everything that was accepted be listed.
    fn finish(&self, key: &JobKey, request: &JobRequest, fate: Fate);

    /// Lets time pass.
    fn pass(&self, duration: Duration);

    /// Lets the next call of this sort meet this trouble, at least in one of 200 cases; the others
    /// may meet any other trouble.
    fn trouble(&self, call: &CallOf, trouble: Trouble);

    /// Ends all trouble.
    fn heal(&self);

    /// The port with a limit on the bytes of an answer that one part of a batch stays below and
    /// forty parts exceed, if it can have one.
    fn limited(&self) -> Option<Arc<dyn Jobs>>;

    /// What the platform's answer about a job looks like on the wire, if that can be known.
    fn answer_of(&self, key: &JobKey) -> Option<String>;
}

/// What platforms may differ in.
#[derive(Debug, Clone)]
pub struct JobsCaps {
    /// Which fates jobs can have.
    pub fates: Vec<Fate>,
    /// Which trouble calls can meet.
    pub troubles: Vec<Trouble>,
    /// Whether ids of batches and crawls must be UUIDs: others are then refused, not missing.
    pub parent_ids_are_uuids: bool,
    /// How long a call with a deadline may take beyond it.
    pub slack: Duration,
}

/// A platform's API to be tried.
pub struct JobsSubject {
    pub(super) platform: Box<dyn JobsPlatform>,
    pub(super) caps: JobsCaps,
    kept: Vec<Box<dyn Any>>,
}

impl JobsSubject {
    /// A platform without jobs.
    pub fn new(platform: Box<dyn JobsPlatform>, caps: JobsCaps) -> Self {
        Self { platform, caps, kept: Vec::new() }
    }

    /// Keeps something, such as a server, as long as the API is tried.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.kept.push(Box::new(keep));
        self
    }

    pub(super) fn jobs(&self) -> &dyn Jobs {
        self.platform.jobs()
    }

    pub(super) fn can_meet(&self, trouble: Trouble) -> bool {
        self.caps.troubles.contains(&trouble)
    }
}
