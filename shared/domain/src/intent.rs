//! The record of a submission, written before its POST.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::entry::Link;
use crate::job::{JobError, JobId};
use crate::limits::Limits;
use crate::post::Post;
use crate::request::JobRequest;
use crate::time::{Timestamp, after};

/// One submission: what was asked for, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// Identity of the submission, see [`Intent::id_of`].
    pub id: String,
    /// Counts the writes of this row; starts at 1.
    pub version: u64,
    /// The run it belongs to.
    pub run: String,
    /// Its position in the run's input, counted from 0.
    pub position: u64,
    /// What is asked for.
    pub request: JobRequest,
    /// The user's own id for it.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// What became of it.
    pub state: IntentState,
    /// When recovery must look; present exactly while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When the row may be forgotten, in epoch seconds; present exactly while it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
}

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum IntentState {
    /// A POST may have been made; its answer is not known.
    Open {
        /// The POST.
        post: Post,
    },
    /// The POST was refused for now (throttled, unpaid, unavailable): it may be made again.
    Deferred {
        /// The POST that was refused.
        post: Post,
    },
    /// The platform accepted it.
    Accepted {
        /// As this job.
        job_id: JobId,
    },
    /// The platform refused it for good.
    Refused {
        /// What it said.
        error: JobError,
    },
    /// Whether it was accepted could not be decided; nobody pays again.
    Ambiguous,
}

impl IntentState {
    /// The state's name in tables and output.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Deferred { .. } => "deferred",
            Self::Accepted { .. } => "accepted",
            Self::Refused { .. } => "refused",
            Self::Ambiguous => "ambiguous",
        }
    }

    /// Whether a job may exist that nobody has linked yet.
    pub const fn is_open(&self) -> bool {
        self.open_post().is_some()
    }

    /// The POST that may have made a job that nobody has linked yet.
    pub const fn open_post(&self) -> Option<&Post> {
        match self {
            Self::Open { post } => Some(post),
            _ => None,
        }
    }
}

/// One line of input: what makes a submission itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The run's name.
    pub run: String,
    /// Position in the run's input, counted from 0.
    pub position: u64,
    /// What is asked for.
    pub request: JobRequest,
    /// The user's own id.
    pub reference: Option<String>,
}

impl Intent {
    /// Identity of a submission: SHA-256 over run name, position and request hash, hex.
    pub fn id_of(submission: &Submission) -> String {
        let mut hasher = Sha256::new();
        let length = u64::try_from(submission.run.len()).unwrap_or(u64::MAX);
        hasher.update(length.to_be_bytes());
        hasher.update(submission.run.as_bytes());
        hasher.update(submission.position.to_be_bytes());
        hasher.update(submission.request.hash().as_bytes());
        hex::encode(hasher.finalize())
    }

    /// The intent before its first POST.
    pub fn open(submission: &Submission, token: String, now: Timestamp, limits: &Limits) -> Self {
        let post = Post::first(token, now, limits);
        Self {
            id: Self::id_of(submission),
            version: 1,
            run: submission.run.clone(),
            position: submission.position,
            request: submission.request.clone(),
            reference: submission.reference.clone(),
            due_at: Some(post.recover_from(limits)),
            state: IntentState::Open { post },
            expires_at: None,
        }
    }

    /// The intent one version on, in another state.
    #[must_use]
    pub fn moved(&self, state: IntentState, now: Timestamp, limits: &Limits) -> Self {
        let due_at = match &state {
            IntentState::Open { post } => Some(post.recover_from(limits).max(now)),
            _ => None,
        };
        let expires_at = match &state {
            IntentState::Open { .. } | IntentState::Deferred { .. } => None,
            _ => Some(after(now, limits.retention).as_second()),
        };
        Self { version: self.version.saturating_add(1), state, due_at, expires_at, ..self.clone() }
    }

    /// The open intent, to be looked at again at `due_at`.
    #[must_use]
    pub fn put_off(&self, due_at: Timestamp) -> Self {
        Self { version: self.version.saturating_add(1), due_at: Some(due_at), ..self.clone() }
    }

    /// The link of the job that this submission became.
    pub fn link(&self, job_id: &JobId) -> Link {
        let request =
            matches!(self.request, JobRequest::Extract { .. }).then(|| self.request.clone());
        Link {
            submission: self.id.clone(),
            lineage: job_id.clone(),
            attempt: 0,
            base: 0,
            request,
            reference: self.reference.clone(),
        }
    }
}
