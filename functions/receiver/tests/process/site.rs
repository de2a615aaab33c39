//! Everything around the process: its variables, the services, and what it writes.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use aws_client::Patience;
use domain::ports::Clock;
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::signature::sign::sign;
use queue_sqs::testing::FakeSqs;
use secrets_aws::testing::FakeSecretsManager;
use serde_json::{Value, json};
use system::SystemClock;
use testkit::lambda::{Outcome, RuntimeApi};
use tokio::time::timeout;

use super::table::FakeTable;

pub(crate) const REGION: &str = "eu-central-1";
pub(crate) const TABLE: &str = "gleaner-table";
/// The signing secret, and the name of the secret that holds it.
pub(crate) const SECRET: &str = "marker-signing-secret";
pub(crate) const SECRET_ID: &str = "gleaner/webhook";
/// Longest wait for anything; on a busy machine a start takes some tenths of a second.
const WITHIN: Duration = Duration::from_secs(30);

/// The runtime API, the services, and the variables of a function that uses them.
pub(crate) struct Site {
    pub(crate) api: RuntimeApi,
    pub(crate) secrets: FakeSecretsManager,
    pub(crate) queue: FakeSqs,
    pub(crate) table: FakeTable,
    pub(crate) variables: BTreeMap<String, String>,
}

impl Site {
    pub(crate) async fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let api = RuntimeApi::start().await.unwrap();
        let secrets = FakeSecretsManager::start(Arc::clone(&clock)).await.unwrap();
        secrets.put(SECRET_ID, SECRET).unwrap();
        let queue = FakeSqs::start(clock, Patience::RECEIVER).await.unwrap();
        let table = FakeTable::start().await;
        let of_lambda = api.variables().map(|(name, value)| (name, value.to_owned()));
        let of_ours = [
            ("AWS_ENDPOINT_URL_DYNAMODB", table.endpoint.as_str()),
            ("AWS_ENDPOINT_URL_SQS", queue.endpoint()),
            ("GLEANER_STACK", "gleaner-test"),
            ("GLEANER_TABLE", TABLE),
            ("GLEANER_QUEUE_URL", queue.queue_url()),
            ("GLEANER_WEBHOOK_SECRET_IDS", SECRET_ID),
        ];
        let of_ours = of_ours.map(|(name, value)| (name, value.to_owned()));
        let all = secrets.variables().into_iter().chain(of_lambda).chain(of_ours);
        let variables = all.map(|(name, value)| (name.to_owned(), value)).collect();
        Self { api, secrets, queue, table, variables }
    }

    /// Starts the function.
    pub(crate) fn start(&self) -> Process {
        Process::start(&self.variables)
    }

    /// What the function makes of an event.
    pub(crate) async fn invoke(&self, event: &Value) -> Outcome {
        timeout(WITHIN, self.api.invoke(event.to_string())).await.expect("the function answers")
    }

    /// The status of the answer to an event.
    pub(crate) async fn status(&self, event: &Value) -> u64 {
        match self.invoke(event).await {
            Outcome::Answered(answer) => {
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                answer["statusCode"].as_u64().unwrap()
            }
            Outcome::Failed(why) => panic!("{why:?}"),
        }
    }

    /// The ids of the jobs whose tasks are in the queue.
    pub(crate) fn sent(&self) -> Vec<String> {
        let id = |body: String| {
            let body: Value = serde_json::from_str(&body).unwrap();
            body["job_id"].as_str().unwrap().to_owned()
        };
        self.queue.bodies().into_iter().map(id).collect()
    }
}

/// The function's process, killed when dropped.
pub(crate) struct Process {
    child: Child,
    lines: Option<JoinHandle<Vec<String>>>,
}

impl Process {
    /// With these variables alone.
    pub(crate) fn start(variables: &BTreeMap<String, String>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_receiver"))
            .env_clear()
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Read all the time, since a process waits for its reader where there is much.
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let lines = std::thread::spawn(move || {
            let read = |from: Box<dyn Read>| BufReader::new(from).lines().map_while(Result::ok);
            let mut lines: Vec<_> = read(Box::new(out)).collect();
            lines.extend(read(Box::new(err)));
            lines
        });
        Self { child, lines: Some(lines) }
    }

    /// Whether it runs still.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it; what it wrote.
    pub(crate) fn end(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.take().unwrap().join().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself: nothing is left to be done then.
        if self.child.kill().is_ok() {
            let _ended = self.child.wait();
        }
    }
}

/// The documents of metrics among what was written.
pub(crate) fn documents(lines: &[String]) -> Vec<Value> {
    let documents = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    documents.filter(|document| document.get("_aws").is_some()).collect()
}

/// An event of an HTTP API: the genuine delivery about a job.
pub(crate) fn delivery(job_id: &str) -> Value {
    let body = json!({
        "event": "extract_completed",
        "delivery_id": format!("delivery-{job_id}"),
        "data": { "job_id": job_id, "status": "completed" },
    });
    let body = body.to_string();
    let scheme = Preset::Geonode.scheme().unwrap();
    let secret = Secret::new(SECRET).unwrap();
    let headers = sign(&scheme, &secret, body.as_bytes(), "", SystemClock.now()).unwrap();
    let headers: BTreeMap<String, String> = headers.into_iter().collect();
    http_api(&json!(headers), &body, false)
}

/// An event of an HTTP API with these headers and this body.
pub(crate) fn http_api(headers: &Value, body: &str, is_base64: bool) -> Value {
    let text = include_str!("../../../../events/receiver/http-api.json");
    let mut event: Value = serde_json::from_str(text).unwrap();
    event["headers"] = headers.clone();
    event["body"] = body.into();
    event["isBase64Encoded"] = is_base64.into();
    event
}
