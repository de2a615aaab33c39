//! A strict Amazon SQS on loopback: one standard queue with a dead-letter queue behind it.
//!
//! It speaks the service's JSON protocol, refuses what SQS refuses, and answers 501 to whatever
//! this crate does not ask for, so that a new kind of request cannot pass unnoticed. Time is that
//! of the clock it is given. Signatures are looked at, not verified.

mod answer;
mod call;
mod messages;
mod server;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_client::{Patience, SdkConfig};
use domain::ports::Clock;
use domain::time::Timestamp;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

use answer::{Answer, Refusal};
use messages::Messages;

/// The fake's region.
pub const REGION: &str = "eu-central-1";
/// How often a message is received before SQS moves it to the dead-letter queue.
pub const RECEIVES_MAX: u32 = 5;

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqsTrouble {
    /// Nothing.
    Pass,
    /// The answer is an error, and nothing is done.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// The service's code.
        code: &'static str,
    },
    /// The connection is closed, and nothing is done.
    Reset,
    /// All is done, and the connection is closed without an answer.
    LoseAnswer,
    /// Nothing is done, and no answer ever comes.
    Hang,
    /// Nothing goes wrong, but only once [`FakeSqs::go_on`] is called.
    Wait,
    /// One message of a batch is refused, the others are sent.
    FailEntry {
        /// Its place in the request.
        index: usize,
        /// The code that it is refused with.
        code: &'static str,
        /// Whether SQS calls it the sender's fault.
        sender_fault: bool,
    },
    /// One message of a batch is sent, and the answer does not mention it.
    ForgetEntry {
        /// Its place in the request.
        index: usize,
    },
    /// Messages are received, and stay visible: they will be received twice.
    DeliverTwice,
}

/// A message as a consumer gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqsMessage {
    /// The message's own id.
    pub id: String,
    /// The id of this receipt.
    pub receipt: String,
    /// How often it was received, this time counted.
    pub receives: u32,
    /// When it was sent to the queue of tasks.
    pub sent_at: Timestamp,
    /// The body.
    pub body: String,
}

/// A running SQS; stopped when dropped.
pub struct FakeSqs {
    endpoint: String,
    config: SdkConfig,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// What the connections share.
struct Shared {
    url: String,
    dead_letter_url: String,
    clock: Arc<dyn Clock>,
    /// Requests that wait pass it one by one.
    gate: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queues: Queues,
    planned: VecDeque<SqsTrouble>,
    seen: Vec<String>,
}

/// The queue of tasks, and the dead-letter queue behind it.
#[derive(Default)]
struct Queues {
    tasks: Messages,
    dead_letters: Messages,
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Tasks,
    DeadLetters,
}

impl Queues {
    fn of(&mut self, which: Which) -> &mut Messages {
        match which {
            Which::Tasks => &mut self.tasks,
            Which::DeadLetters => &mut self.dead_letters,
        }
    }

    /// Gives visible messages and hides them; a task that was received often enough is moved away.
    fn receive(
        &mut self,
        which: Which,
        limit: usize,
        hold: Duration,
        now: Timestamp,
    ) -> Vec<SqsMessage> {
        if which == Which::Tasks {
            self.tasks.bury(&mut self.dead_letters, now);
        }
        self.of(which).receive(limit, hold, now)
    }
}

impl Shared {
    fn new(url: String, clock: Arc<dyn Clock>) -> Self {
        let dead_letter_url = format!("{url}-dead");
        Self { url, dead_letter_url, clock, gate: Semaphore::new(0), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeSqs {
    /// Starts one with an empty queue. Clients of its configuration have this patience.
    ///
    /// # Errors
    /// When there is no port for it.
    pub async fn start(clock: Arc<dyn Clock>, patience: Patience) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let variables = |name: &str| {
            let value = match name {
                "AWS_REGION" => REGION,
                "AWS_ACCESS_KEY_ID" => "AKIDFAKE",
                "AWS_SECRET_ACCESS_KEY" => "marker-secret-key",
                "AWS_SESSION_TOKEN" => "marker-token",
                "AWS_ENDPOINT_URL_SQS" => endpoint.as_str(),
                _ => return None,
            };
            Some(value.to_owned())
        };
        let config =
            aws_client::from_environment(&variables, patience).map_err(io::Error::other)?;
        // Another host than the endpoint's, as where an emulator runs elsewhere.
        let url = format!("https://sqs.{REGION}.amazonaws.com/123456789012/gleaner-tasks");
        let shared = Arc::new(Shared::new(url, clock));
        let task = tokio::spawn(server::accept(listener, Arc::clone(&shared)));
        Ok(Self { endpoint, config, shared, task })
    }

    /// Its URL, for processes of their own.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The configuration of clients that talk to it.
    pub fn config(&self) -> &SdkConfig {
        &self.config
    }

    /// The queue's URL.
    pub fn queue_url(&self) -> &str {
        &self.shared.url
    }

    /// The URL of the dead-letter queue behind it.
    pub fn dead_letter_queue_url(&self) -> &str {
        &self.shared.dead_letter_url
    }

    /// Plans trouble for the next requests, one after the other, after what was planned before.
    pub fn plan(&self, next: impl IntoIterator<Item = SqsTrouble>) {
        self.shared.lock().planned.extend(next);
    }

    /// Lets one request go on that waits as planned.
    pub fn go_on(&self) {
        self.shared.gate.add_permits(1);
    }

    /// The requests so far by the names of their operations, those of a batch with its size.
    pub fn seen(&self) -> Vec<String> {
        self.shared.lock().seen.clone()
    }

    /// The bodies of the messages in the queue, visible or not, in the order of sending.
    pub fn bodies(&self) -> Vec<String> {
        self.shared.lock().queues.tasks.bodies()
    }

    /// The bodies of the messages in the dead-letter queue, in the order in which they came.
    pub fn dead_letters(&self) -> Vec<String> {
        self.shared.lock().queues.dead_letters.bodies()
    }

    /// Sends a message past the protocol.
    pub fn put_body(&self, body: &str) {
        let now = self.shared.clock.now();
        self.shared.lock().queues.tasks.send(body.to_owned(), Duration::ZERO, now);
    }

    /// Lays a message into the dead-letter queue past the protocol.
    pub fn put_dead_letter(&self, body: &str) {
        let now = self.shared.clock.now();
        self.shared.lock().queues.dead_letters.send(body.to_owned(), Duration::ZERO, now);
    }

    /// Receives messages past the protocol, as the service that hands them to a function does.
    pub fn take(&self, limit: usize, hold: Duration) -> Vec<SqsMessage> {
        let now = self.shared.clock.now();
        self.shared.lock().queues.receive(Which::Tasks, limit, hold, now)
    }

    /// Deletes a received message past the protocol, as that service does when it was worked.
    pub fn delete(&self, receipt: &str) {
        // A receipt that the queue never gave deletes nothing.
        let _ = self.shared.lock().queues.tasks.delete(receipt);
    }
}

impl Drop for FakeSqs {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What becomes of a request.
enum Fate {
    Answer(Answer),
    Close,
}

impl Shared {
    /// Does what a request asks, or what was planned for it.
    async fn handle(&self, parts: &http::request::Parts, body: &[u8]) -> Fate {
        let call = call::read(parts, body);
        let trouble = {
            let mut state = self.lock();
            state.seen.push(match &call {
                Ok(call) => call.to_string(),
                Err(_) => format!("{} {} (refused)", parts.method, parts.uri.path()),
            });
            state.planned.pop_front().unwrap_or(SqsTrouble::Pass)
        };
        match trouble {
            SqsTrouble::Refuse { status, code } => {
                return Fate::Answer(Answer::from(Refusal { status, ..Refusal::new(code) }));
            }
            SqsTrouble::Reset => return Fate::Close,
            SqsTrouble::Hang => std::future::pending().await,
            // The gate is never closed.
            SqsTrouble::Wait => {
                self.gate.acquire().await.into_iter().for_each(SemaphorePermit::forget);
            }
            _ => {}
        }
        let now = self.clock.now();
        let done: Result<Value, Refusal> = call
            .and_then(|call| call.in_queue(&self.url, &self.dead_letter_url))
            .and_then(|(call, which)| call.run((&mut self.lock().queues, which), trouble, now));
        match trouble {
            SqsTrouble::LoseAnswer => Fate::Close,
            _ => Fate::Answer(done.map_or_else(Answer::from, |value| Answer::ok(&value))),
        }
    }
}

#[cfg(test)]
mod tests;
