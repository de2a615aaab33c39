//! A strict AWS Secrets Manager on loopback: reading a value, putting one, moving a stage, telling
//! of versions, and beginning a rotation, which nobody carries on.
//!
//! It refuses what Secrets Manager refuses, in its words and codes, and answers 501 to whatever
//! else is asked, so that a new kind of call cannot pass unnoticed. Credentials are looked at, the
//! signature itself is not verified. Stricter than AWS: an ARN must be whole.

mod call;
mod server;
mod store;
mod versions;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_client::{Patience, SdkConfig};
use domain::ports::Clock;
use domain::signature::secret::Stage;
use domain::time::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::version::label;
use call::{ACCESS_KEY, Answer, REGION, SESSION_TOKEN};
pub use store::Refusal;
use store::Store;
pub use versions::Value;

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretsTrouble {
    /// Nothing.
    Pass,
    /// The answer is an error, and nothing is done.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// The code.
        code: &'static str,
    },
    /// The connection is closed, and nothing is done.
    Reset,
    /// All is done, and the connection is closed without an answer.
    LoseAnswer,
    /// All is done, and half of the answer's body arrives.
    CutAnswer,
    /// Nothing is done, and no answer ever comes.
    Hang,
}

impl SecretsTrouble {
    /// The wish for fewer calls.
    pub const THROTTLED: Self = Self::Refuse { status: 400, code: "ThrottlingException" };
    /// The service's own failure.
    pub const INTERNAL: Self = Self::Refuse { status: 500, code: "InternalServiceError" };
    /// Credentials that ran out.
    pub const EXPIRED: Self = Self::Refuse { status: 400, code: "ExpiredTokenException" };
}

/// A running Secrets Manager, empty at first; stopped when dropped.
#[derive(Debug)]
pub struct FakeSecretsManager {
    endpoint: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// What the connections share.
struct Shared {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    store: Store,
    planned: VecDeque<SecretsTrouble>,
    always: Option<SecretsTrouble>,
    /// Calls until a rotation ends, the secret's name and the version.
    promotion: Option<(usize, String, String)>,
    seen: Vec<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeSecretsManager {
    /// Starts one whose versions are dated by a clock.
    ///
    /// # Errors
    /// When there is no port for it.
    pub async fn start(clock: Arc<dyn Clock>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared { state: Mutex::default(), clock });
        let task = tokio::spawn(server::accept(listener, Arc::clone(&shared)));
        Ok(Self { endpoint, shared, task })
    }

    /// Its URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The variables of a function that calls it.
    pub fn variables(&self) -> BTreeMap<&'static str, String> {
        [
            ("AWS_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", "marker-secret-access-key"),
            ("AWS_SESSION_TOKEN", SESSION_TOKEN),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", &self.endpoint),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into()
    }

    /// The configuration of a function that calls it.
    ///
    /// # Errors
    /// Never; what the environment lacks would be a fault of this crate.
    pub fn config(&self, patience: Patience) -> Result<SdkConfig, aws_client::EnvironmentError> {
        let variables = self.variables();
        aws_client::from_environment(&|name| variables.get(name).cloned(), patience)
    }

    /// Makes a secret without a value, as a stack does; gives its ARN. One that is there is
    /// replaced.
    pub fn create(&self, name: &str) -> String {
        self.shared.lock().store.create(name)
    }

    /// Puts a new current value, as the console does; gives the version's id. The secret is made
    /// if it is not there.
    ///
    /// # Errors
    /// As Secrets Manager refuses it.
    pub fn put(&self, name: &str, value: impl Into<Value>) -> Result<String, Refusal> {
        self.put_staged(name, value, &[Stage::Current])
    }

    /// Puts a new version with these stages.
    ///
    /// # Errors
    /// As Secrets Manager refuses it.
    pub fn put_staged(
        &self,
        name: &str,
        value: impl Into<Value>,
        stages: &[Stage],
    ) -> Result<String, Refusal> {
        let stages: Vec<_> = stages.iter().map(|stage| label(*stage).to_owned()).collect();
        let now = self.now();
        self.shared.lock().store.put_new(name, value.into(), &stages, now)
    }

    /// Gives a version a stage, as the end of a rotation does, whoever has it.
    ///
    /// # Errors
    /// When there is no such secret or version.
    pub fn move_stage(&self, name: &str, stage: Stage, version: &str) -> Result<(), Refusal> {
        self.shared.lock().store.move_from_anywhere(name, label(stage), version)
    }

    /// Ends a rotation after so many further calls: the version becomes the current one and is no
    /// longer pending.
    pub fn promote_after(&self, calls: usize, name: &str, version: &str) {
        self.shared.lock().promotion = Some((calls, name.to_owned(), version.to_owned()));
    }

    /// Labels a version that has no value yet as pending, as the beginning of a rotation does.
    ///
    /// # Errors
    /// When there is no such secret.
    pub fn begin_rotation(&self, name: &str) -> Result<String, Refusal> {
        let now = self.now();
        self.shared.lock().store.begin_rotation(name, now)
    }

    /// Begins a rotation as `RotateSecret` does: labels a version without a value as pending.
    ///
    /// # Errors
    /// When no rotation is configured, or another one is under way.
    pub fn begin_rotation_of(&self, name: &str, version: &str) -> Result<(), Refusal> {
        let now = self.now();
        self.shared.lock().store.begin(name, version, now)
    }

    /// Holds a value that nobody can put, such as an empty one, as the current one.
    pub fn hold(&self, name: &str, value: impl Into<Value>) {
        let now = self.now();
        self.shared.lock().store.hold(name, value.into(), now);
    }

    /// Lets a function rotate a secret, or no longer.
    pub fn let_rotate(&self, name: &str, is_rotated: bool) {
        self.shared.lock().store.let_rotate(name, is_rotated);
    }

    /// The versions of a secret that have labels, with these.
    pub fn labels(&self, name: &str) -> BTreeMap<String, Vec<String>> {
        self.shared.lock().store.labels(name)
    }

    /// Marks a secret for deletion.
    pub fn delete(&self, name: &str) {
        self.shared.lock().store.mark_deleted(name);
    }

    /// Forgets a secret, or all of them.
    pub fn forget(&self, name: Option<&str>) {
        self.shared.lock().store.forget(name);
    }

    /// Takes from the caller the right to read a secret, or gives it back.
    pub fn forbid(&self, name: &str, is_forbidden: bool) {
        self.shared.lock().store.forbid(name, is_forbidden);
    }

    /// Takes the key away that encrypts a version.
    pub fn break_key(&self, name: &str, version: &str) {
        self.shared.lock().store.break_key(name, version);
    }

    /// Plans trouble for the next calls, one after the other, after what was planned before.
    pub fn plan(&self, next: impl IntoIterator<Item = SecretsTrouble>) {
        self.shared.lock().planned.extend(next);
    }

    /// Trouble for each call for which nothing is planned; `None` for none.
    pub fn always(&self, trouble: Option<SecretsTrouble>) {
        self.shared.lock().always = trouble;
    }

    /// The calls so far, such as `GetSecretValue gleaner/extract AWSPENDING`.
    pub fn seen(&self) -> Vec<String> {
        self.shared.lock().seen.clone()
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }
}

impl Drop for FakeSecretsManager {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What becomes of a call.
enum Fate {
    Answer(Answer),
    Cut(Answer),
    Close,
    Hang,
}

impl State {
    /// Ends the rotation that is to end now.
    fn promote(&mut self) {
        let due = self.promotion.take_if(|(calls, ..)| {
            let is_due = *calls == 0;
            *calls = calls.saturating_sub(1);
            is_due
        });
        if let Some((_, name, version)) = due {
            // A secret that was forgotten meanwhile has no rotation that could end.
            let _ = self.store.move_from_anywhere(&name, label(Stage::Current), &version);
            self.store.drop_stage(&name, label(Stage::Pending));
        }
    }

    /// Does what a call asks, or what was planned for it.
    fn handle(&mut self, parts: &http::request::Parts, body: &[u8], now: Timestamp) -> Fate {
        self.promote();
        let call = call::read(parts, body);
        self.seen.push(match &call {
            Ok(call) => call.to_string(),
            Err(answer) => format!("refused with {}", answer.status),
        });
        let trouble = self.planned.pop_front().or(self.always).unwrap_or(SecretsTrouble::Pass);
        match trouble {
            SecretsTrouble::Refuse { status, code } => {
                return Fate::Answer(Answer::error(status, code, "It was planned."));
            }
            SecretsTrouble::Reset => return Fate::Close,
            SecretsTrouble::Hang => return Fate::Hang,
            SecretsTrouble::Pass | SecretsTrouble::LoseAnswer | SecretsTrouble::CutAnswer => {}
        }
        let answer = call.map_or_else(
            |refused| refused,
            |call| match self.store.run(call, now) {
                Ok(body) => Answer { status: 200, body: body.to_string() },
                Err(refusal) => Answer::error(400, refusal.code, &refusal.message),
            },
        );
        match trouble {
            SecretsTrouble::LoseAnswer => Fate::Close,
            SecretsTrouble::CutAnswer => Fate::Cut(answer),
            _ => Fate::Answer(answer),
        }
    }
}

#[cfg(test)]
mod tests;
