//! The receiver from outside: whether it answers, and whether it refuses what nobody signed.

use std::time::Duration;

use http::StatusCode;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::finding::{Finding, Outcome};

/// The name of the check.
pub(super) const RECEIVER: &str = "receiver";

/// Longest time of one request.
const WITHIN: Duration = Duration::from_secs(10);
/// Where a receiver says that it runs.
const HEALTH_PATH: &str = "/healthz";
/// An unsigned body that names no job: nothing could come of it even if it were taken.
const UNSIGNED: &str = r#"{"gleaner":"doctor"}"#;

/// Whether something may be posted to the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Posting {
    /// It is known to be ours, or somebody asked for it.
    Allowed,
    /// Whose it is is not known.
    Unasked,
}

/// Whether the receiver's own word about itself can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// As far as is known.
    Asked,
    /// The HTTP API of a stack leads deliveries to the receiver and nothing else.
    NotRouted,
}

/// Asks the receiver at this URL.
pub(super) async fn probe(url: &str, posting: Posting, word: Health) -> Vec<Finding> {
    let Ok(url) = Url::parse(url) else {
        let found = "`public_url` is no URL";
        return vec![Finding::failed(RECEIVER, found, "set it right")];
    };
    let client = tls::client()
        .redirect(Policy::none())
        .timeout(WITHIN)
        .connect_timeout(WITHIN)
        .user_agent(concat!("gleaner/", env!("CARGO_PKG_VERSION"), " doctor"))
        .build();
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            let found = format!("no client can be set up: {error}");
            let advice = "check the system's root certificates";
            return vec![Finding::failed(RECEIVER, found, advice)];
        }
    };
    let mut findings = Vec::new();
    if word == Health::Asked {
        let health = health(&client, &url).await;
        let is_reached = health.outcome != Outcome::Failed;
        findings.push(health);
        if !is_reached {
            return findings;
        }
    }
    findings.push(match posting {
        Posting::Allowed => post(&client, &url).await,
        Posting::Unasked => Finding::skipped(
            RECEIVER,
            "whether it refuses an unsigned delivery was not tried, because nothing tells that \
             this URL is yours; --probe-receiver tries it",
        ),
    });
    findings
}

async fn health(client: &Client, url: &Url) -> Finding {
    let mut path = url.clone();
    path.set_path(HEALTH_PATH);
    let answer = client.get(path.clone()).send().await;
    match answer.map(|answer| answer.status()) {
        Ok(StatusCode::OK) => Finding::ok(RECEIVER, format!("{path} answers 200")),
        Ok(status) => Finding::warning(
            RECEIVER,
            format!("{path} answers {}, and a receiver of gleaner answers 200", status.as_u16()),
            "if a proxy hands on the path of deliveries alone, this is as it must be",
        ),
        Err(error) => Finding::failed(RECEIVER, unreachable(&path, &error), REACH),
    }
}

async fn post(client: &Client, url: &Url) -> Finding {
    let request = client.post(url.clone()).header("content-type", "application/json");
    let status = match request.body(UNSIGNED).send().await {
        Ok(answer) => answer.status(),
        Err(error) => return Finding::failed(RECEIVER, unreachable(url, &error), REACH),
    };
    let found = format!("an unsigned delivery to {url} is answered {}", status.as_u16());
    match status.as_u16() {
        401 => Finding::ok(RECEIVER, found),
        200..=299 => Finding::failed(
            RECEIVER,
            format!("{found}: whatever answers there takes what anybody sends"),
            "see that `public_url` leads to gleaner's receiver and to nothing else",
        ),
        300..=399 => Finding::failed(
            RECEIVER,
            format!("{found}, a redirect, which senders do not follow"),
            "set `public_url` to where it leads, and move the webhooks there",
        ),
        403 => Finding::failed(
            RECEIVER,
            format!("{found}: something in between turns deliveries away"),
            "let the platform's requests through the proxy or firewall before the receiver",
        ),
        404 | 405 => Finding::failed(
            RECEIVER,
            format!("{found}: nothing receives at this path"),
            "`webhook_path` and the path of `public_url` must be one, unless a proxy changes it",
        ),
        500.. => Finding::failed(
            RECEIVER,
            format!("{found}: the receiver has no usable secret, or does not run"),
            "look at the check `secrets` and at the receiver's log",
        ),
        _ => Finding::failed(
            RECEIVER,
            format!("{found}, and a receiver of gleaner answers 401"),
            "see that `public_url` leads to gleaner's receiver and to nothing else",
        ),
    }
}

/// What to do about a receiver that does not answer.
const REACH: &str = "start `gleaner serve`, and see that proxy, name and certificate before it are \
                     in order; until then jobs are found by polling, only later";

fn unreachable(url: &Url, error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "does not answer in time".to_owned()
    } else {
        // The causes say what it was; the error itself repeats the URL.
        let mut last: &dyn std::error::Error = error;
        while let Some(cause) = last.source() {
            last = cause;
        }
        format!("cannot be reached: {last}")
    };
    format!("{url} {what}")
}
