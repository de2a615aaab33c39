//! What a server says when it has started.

use std::fmt;

use domain::ports::Clock as _;
use embedded::secrets::{SecretsFile, StoredSecret};
use serde::Serialize;
use settings::Settings;

use crate::backend::secret_places;
use system::SystemClock;

/// Where a server listens, and what it accepts.
#[derive(Serialize)]
pub(super) struct Started {
    version: u32,
    r#type: &'static str,
    /// Where it listens; `None` if it only polls.
    listening: Option<String>,
    /// Where metrics are read; `None` if nowhere.
    metrics: Option<String>,
    /// What is to be registered at the platform, if it is known.
    register: Option<String>,
    /// The webhooks whose secrets are in the secrets file.
    webhooks: Vec<Accepted>,
    /// Where the secrets are.
    #[serde(skip)]
    places: String,
}

/// A webhook whose deliveries are accepted.
#[derive(Serialize)]
struct Accepted {
    id: String,
    event: Option<String>,
    url: Option<String>,
}

impl Started {
    /// What the settings say of a server that listens there.
    pub(super) fn of(
        settings: &Settings,
        listening: Option<String>,
        metrics: Option<String>,
    ) -> Self {
        let webhooks = if listening.is_some() { webhooks(settings) } else { Vec::new() };
        Self {
            version: 1,
            r#type: "server",
            listening,
            metrics,
            register: settings.public_url.clone(),
            webhooks,
            places: secret_places(settings),
        }
    }
}

/// The webhooks of the secrets file. One that holds a bare secret names none.
fn webhooks(settings: &Settings) -> Vec<Accepted> {
    let now = SystemClock.now();
    let stored = SecretsFile::new(&settings.secrets_file()).list().unwrap_or_default();
    let mut webhooks: Vec<Accepted> = Vec::new();
    for StoredSecret { secret, url, event_type, .. } in
        stored.into_iter().filter(|stored| stored.is_valid(now))
    {
        let Some(id) = secret.webhook_id() else { continue };
        // Several secrets of one webhook are a rotation.
        if !webhooks.iter().any(|webhook| webhook.id == id) {
            webhooks.push(Accepted { id: id.to_owned(), event: event_type, url });
        }
    }
    webhooks
}

impl fmt::Display for Started {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = |out: &mut fmt::Formatter<'_>| match &self.metrics {
            Some(metrics) => write!(out, "\nmetrics on {metrics}"),
            None => Ok(()),
        };
        let Some(listening) = &self.listening else {
            out.write_str("polling; webhooks are not received")?;
            return metrics(out);
        };
        write!(out, "listening on {listening}")?;
        metrics(out)?;
        out.write_str("\n")?;
        if let [first, others @ ..] = self.webhooks.as_slice() {
            let plural = if others.is_empty() { "" } else { "s" };
            let event =
                |webhook: &Accepted| webhook.event.clone().unwrap_or_else(|| webhook.id.clone());
            write!(out, "accepting {} webhook{plural}: {}", self.webhooks.len(), event(first))?;
            return others.iter().try_for_each(|webhook| write!(out, ", {}", event(webhook)));
        }
        writeln!(out, "accepting what is signed with the secret in {}", self.places)?;
        match &self.register {
            Some(register) => write!(out, "to be registered as {register}"),
            None => write!(
                out,
                "set public_url to the URL under which the platform reaches this, and register \
                 that with `gleaner webhooks create`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Accepted, Started};

    fn started(listening: bool, events: &[&str], register: Option<&str>) -> String {
        let accepted = |event: &&str| Accepted {
            id: "w1".to_owned(),
            event: Some((*event).to_owned()),
            url: None,
        };
        Started {
            version: 1,
            r#type: "server",
            listening: listening.then(|| "http://127.0.0.1:8787/webhook".to_owned()),
            metrics: None,
            register: register.map(str::to_owned),
            webhooks: events.iter().map(accepted).collect(),
            places: "GLEANER_WEBHOOK_SECRET".to_owned(),
        }
        .to_string()
    }

    #[test]
    fn it_says_what_is_accepted_and_what_is_left_to_do() {
        let url = Some("https://hooks.example.org/webhook");
        assert_eq!(started(false, &[], url), "polling; webhooks are not received");
        let one = started(true, &["batch_completed"], None);
        assert!(one.ends_with("\naccepting 1 webhook: batch_completed"), "{one}");
        let two = started(true, &["batch_completed", "crawl_completed"], url);
        assert!(two.ends_with("accepting 2 webhooks: batch_completed, crawl_completed"), "{two}");
        let typed = started(true, &[], url);
        assert!(typed.contains("the secret in GLEANER_WEBHOOK_SECRET\nto be registered as https"));
        assert!(started(true, &[], None).contains("set public_url"));
    }
}
