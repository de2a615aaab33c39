//! What a stack gives to the settings: its outputs, in place of what nobody set.

use std::collections::BTreeMap;

use settings::{Aws, Backend, InForce, Origin, Settings};

use super::stack::Stack;
use crate::error::CliError;
use crate::exit::Exit;

/// Outputs of the template without which there is no bundle, and the settings that they give.
const NEEDED: [(&str, &str); 3] =
    [("Table", "table"), ("QueueUrl", "queue_url"), ("Bucket", "bucket")];

/// The outputs of a stack of our template.
#[derive(Debug)]
pub(super) struct Outputs(BTreeMap<String, String>);

impl Outputs {
    /// The outputs of a stack of this name.
    ///
    /// # Errors
    /// When it is not ours, or not there yet.
    pub(super) fn of(name: &str, stack: Stack) -> Result<Self, CliError> {
        let Stack { status, outputs } = stack;
        let missing: Vec<_> = NEEDED
            .iter()
            .map(|(output, _)| *output)
            .filter(|it| !outputs.contains_key(*it))
            .collect();
        if missing.is_empty() {
            return Ok(Self(outputs));
        }
        let text = if outputs.is_empty() {
            format!("the stack `{name}` has no outputs; its status is {status}")
        } else {
            format!("the stack `{name}` lacks the outputs {}", missing.join(", "))
        };
        let hint = if status.ends_with("_IN_PROGRESS") {
            "wait until its deployment has ended, and run the same command again"
        } else if outputs.is_empty() {
            "deploy it again: see its events in the console for what went wrong"
        } else {
            "name a stack that was deployed from Gleaner's template.yaml, or set `table`, \
             `queue_url` and `bucket` in place of `stack`"
        };
        Err(CliError::new(Exit::Configuration, text).hint(hint))
    }

    /// Gives to the settings what nobody set, and says which those are.
    pub(super) fn fill(mut self, settings: &mut Settings) -> Vec<&'static str> {
        let mut given = Vec::new();
        let mut take = |setting: &'static str, output: &str| {
            let value = self.0.remove(output).filter(|value| !value.is_empty())?;
            let shown = settings.in_force.iter_mut().find(|it| it.name == setting)?;
            if shown.origin != Origin::Default {
                return None;
            }
            *shown = InForce { value: Some(value.clone()), ..shown.clone() };
            given.push(setting);
            Some(value)
        };
        let [table, queue_url, bucket] = NEEDED.map(|(output, setting)| take(setting, output));
        let dead_letter_queue_url = take("dead_letter_queue_url", "DeadLetterQueueUrl");
        let results_prefix = take("results_prefix", "ResultsPrefix");
        let webhook_secret_ids = take("webhook_secret_ids", "WebhookSecretIds");
        let api_key_secret_id = take("api_key_secret_id", "ApiKeySecretId");
        let api_url = take("api_url", "ApiUrl");
        let public_url = take("public_url", "WebhookUrl");
        if let Some(url) = api_url {
            settings.api_url = url;
        }
        settings.public_url = settings.public_url.take().or(public_url);
        if let Backend::Aws(aws) = &mut settings.backend {
            *aws = Aws {
                table: aws.table.take().or(table),
                queue_url: aws.queue_url.take().or(queue_url),
                dead_letter_queue_url: aws.dead_letter_queue_url.take().or(dead_letter_queue_url),
                bucket: aws.bucket.take().or(bucket),
                results_prefix: aws.results_prefix.take().or(results_prefix),
                webhook_secret_ids: aws.webhook_secret_ids.take().or_else(|| {
                    webhook_secret_ids.map(|ids| ids.split(',').map(str::to_owned).collect())
                }),
                api_key_secret_id: aws.api_key_secret_id.take().or(api_key_secret_id),
                ..aws.clone()
            };
        }
        given
    }
}
