//! Sends the webhook attempts that have become due.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::deliveries::{Attempt, AttemptOutcome};
use crate::error::SimulatorError;
use crate::server::{Shared, stopped};

/// How often the platform is asked for due attempts, in real time.
const TICK: Duration = Duration::from_millis(20);

/// Longest wait for a connection to a receiver.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes the sender's client: no redirects, no proxy, so that the receiver alone decides.
pub(crate) fn client() -> Result<reqwest::Client, SimulatorError> {
    tls::client()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .no_proxy()
        .http1_title_case_headers()
        .build()
        .map_err(SimulatorError::Sender)
}

/// Sends until told to stop. Attempts under way are then dropped unreported.
pub(crate) async fn send_due(
    shared: Arc<Shared>,
    client: reqwest::Client,
    mut stop: watch::Receiver<bool>,
) {
    let concurrency = shared.with_platform(|platform| platform.config.webhooks.concurrency.max(1));
    let mut backlog: VecDeque<Attempt> = VecDeque::new();
    let mut flying = JoinSet::new();
    loop {
        let now = shared.now();
        backlog.extend(shared.with_platform(|platform| platform.advance(now)));
        while flying.len() < concurrency
            && let Some(attempt) = backlog.pop_front()
        {
            flying.spawn(send(Arc::clone(&shared), client.clone(), attempt));
        }
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            Some(_) = flying.join_next(), if !flying.is_empty() => {}
            () = shared.clock.sleep(TICK) => {}
        }
    }
    flying.shutdown().await;
}

async fn send(shared: Arc<Shared>, client: reqwest::Client, attempt: Attempt) {
    let now = shared.now();
    let (request, timeout) = shared.with_platform(|platform| {
        (platform.render_attempt(attempt.id, now), platform.attempt_timeout())
    });
    let Some(request) = request else { return };
    let mut post = client.post(request.url).timeout(timeout).body(request.body);
    for (name, value) in request.headers {
        post = post.header(name, value);
    }
    let outcome = match post.send().await {
        Ok(response) => AttemptOutcome::Answered(response.status().as_u16()),
        Err(error) => {
            // The error's text would hold the receiver's URL, which may hold a token.
            tracing::debug!(is_timeout = error.is_timeout(), "webhook attempt got no answer");
            AttemptOutcome::Unanswered
        }
    };
    let now = shared.now();
    shared.with_platform(|platform| platform.report_attempt(attempt.id, now, outcome));
}
