//! What to do about trouble with AWS.

use std::error::Error;

use domain::ports::{ErrorKind, PortError};
use settings::{Aws, Settings};

use super::stack::{DESCRIBE, STACK};
use super::vault::{GOING, KEEP, SECRETS};
use super::{LOAD_API_KEY, named};
use crate::error::CliError;
use crate::exit::Exit;

/// Codes of credentials that were good once.
const EXPIRED: [&str; 4] =
    ["ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"];
/// Codes of credentials that AWS does not know, or whose signature is wrong.
const UNKNOWN: [&str; 14] = [
    "AuthFailure",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidSignatureException",
    "InvalidToken",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotAuthorized",
    "OptInRequired",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
    "UnrecognizedClientException",
];
/// Codes of a table, queue, bucket or secret that is not there, or not for long.
const ABSENT: [&str; 7] = [
    "AWS.SimpleQueueService.NonExistentQueue",
    GOING,
    "InvalidAddress",
    "NoSuchBucket",
    "PermanentRedirect",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
];

/// The actions that each call needs: port, operations, actions. docs/table.md and docs/iam.json
/// tell them by the place that they are on.
const ACTIONS: [(&str, &[&str], &str); 20] = [
    ("ledger", &["load", "load_intent", "load_control"], "dynamodb:GetItem on the table"),
    (
        "ledger",
        &["write", "write_both", "write_intent", "write_control"],
        "dynamodb:PutItem on the table",
    ),
    (
        "ledger",
        &["list_due", "list_due_intents"],
        "dynamodb:Query on the table's index/due and dynamodb:BatchGetItem on the table",
    ),
    ("ledger", &["has_unresolved_post"], "dynamodb:Query on the table's index/due"),
    (
        "ledger",
        &["list_entries"],
        "dynamodb:Scan and dynamodb:BatchGetItem on the table and dynamodb:Query on its \
         index/listing",
    ),
    (
        "ledger",
        &["list_intents"],
        "dynamodb:Query on the table's index/listing and dynamodb:BatchGetItem on the table",
    ),
    ("ledger", &["count_entries", "count_intents"], "dynamodb:Scan on the table"),
    ("queue", &["send"], "sqs:SendMessage on the queue"),
    ("queue", &["receive"], "sqs:ReceiveMessage on the queue"),
    ("queue", &["depth"], "sqs:GetQueueAttributes on the queue and its dead-letter queue"),
    ("queue", &["acknowledge"], "sqs:DeleteMessage on the queue"),
    ("dead_letters", &["take"], "sqs:ReceiveMessage on the dead-letter queue"),
    ("dead_letters", &["remove"], "sqs:DeleteMessage on the dead-letter queue"),
    ("dead_letters", &["put_back"], "sqs:ChangeMessageVisibility on the dead-letter queue"),
    ("results", &["put"], "s3:PutObject and s3:GetObject on the bucket's objects"),
    (
        "results",
        &["read", "list"],
        "s3:GetObject on the bucket's objects and s3:ListBucket on the bucket",
    ),
    (
        SECRETS,
        &["load", LOAD_API_KEY],
        "secretsmanager:GetSecretValue on the secret, and kms:Decrypt on a key of its own",
    ),
    (
        SECRETS,
        &[KEEP],
        "secretsmanager:PutSecretValue on the secret, and kms:GenerateDataKey on a key of its own",
    ),
    (
        "vault",
        &["slots", "read", "begin_rotation"],
        "secretsmanager:DescribeSecret and secretsmanager:GetSecretValue and \
         secretsmanager:RotateSecret on the secret, and kms:Decrypt on a key of its own",
    ),
    (STACK, &[DESCRIBE], "cloudformation:DescribeStacks on the stack"),
];

/// The error with what to do about it, where it is one of AWS or of the API key.
pub(in crate::backend) fn advised(mut error: CliError, settings: &Settings) -> CliError {
    let Some(aws) = named(settings) else { return error };
    let port = error.source().and_then(|source| source.downcast_ref::<PortError>());
    let (exit, hint) = match port {
        Some(port) => match advice(port, aws) {
            Some(advice) => advice,
            None => return error,
        },
        // The platform refuses the API key.
        None if error.exit == Exit::Denied && error.source().is_none() => {
            (Exit::Denied, format!("check the API key in {}", key_place(settings)))
        }
        None => return error,
    };
    error.exit = exit;
    error.hint(hint)
}

/// Where the API key is, as a person reads it.
fn key_place(settings: &Settings) -> String {
    let id = named(settings).and_then(|aws| aws.api_key_secret_id.as_deref());
    match (&settings.api_key_file, &settings.api_key, id) {
        (Some(file), ..) => format!("the file `{}`", file.display()),
        (None, Some(_), _) => "GLEANER_API_KEY".to_owned(),
        (None, None, Some(id)) => format!("the secret `{id}` of AWS Secrets Manager"),
        (None, None, None) => {
            "the secret of AWS Secrets Manager that the stack's output `ApiKeySecretId` names"
                .to_owned()
        }
    }
}

/// How the process ends, and what to do; `None` where what is said everywhere fits here, too.
fn advice(error: &PortError, aws: &Aws) -> Option<(Exit, String)> {
    let code = code(error);
    let is = |codes: &[&str]| code.as_deref().is_some_and(|code| codes.contains(&code));
    let (exit, hint) = match error.kind {
        ErrorKind::Throttled => {
            (Exit::TryAgain, "AWS makes us wait; wait a little and run it again".to_owned())
        }
        ErrorKind::Unavailable => (
            Exit::TryAgain,
            "AWS gave no usable answer: check the network and the region, and run it again"
                .to_owned(),
        ),
        ErrorKind::Corrupt | ErrorKind::Invalid => return None,
        ErrorKind::Denied if is(&EXPIRED) => (
            Exit::Denied,
            "the AWS credentials have expired: sign in again with `aws sso login`, or set new ones"
                .to_owned(),
        ),
        ErrorKind::Denied if is(&UNKNOWN) => (
            Exit::Denied,
            "AWS does not take these credentials: `aws sts get-caller-identity` shows whose they \
             are; a clock that is wrong has the same effect"
                .to_owned(),
        ),
        ErrorKind::Denied if is(&ABSENT) => (Exit::Configuration, absent(error, aws)),
        ErrorKind::Denied => (Exit::Denied, missing_action(error)),
    };
    Some((exit, hint))
}

/// What to do about something that is not there.
fn absent(error: &PortError, aws: &Aws) -> String {
    let setting = match error.port {
        "ledger" => "the table (setting `table`)",
        "queue" => "the queue (setting `queue_url`)",
        "dead_letters" => "the dead-letter queue (setting `dead_letter_queue_url`)",
        "results" => "the bucket (setting `bucket`)",
        _ if error.operation == LOAD_API_KEY => {
            return "put the API key into the secret, as docs/aws.md tells, or name another one \
                    in the setting `api_key_secret_id`"
                .to_owned();
        }
        _ => "the secret (setting `webhook_secret_ids`)",
    };
    let whence = match &aws.stack {
        Some(stack) => format!("the stack `{stack}` may have been removed, or"),
        None => "check its name, or whether".to_owned(),
    };
    format!("{setting} is not there: {whence} region and account are others")
}

/// What somebody with more rights has to do.
fn missing_action(error: &PortError) -> String {
    let list = "docs/iam.json lists all that the command line needs";
    let actions = ACTIONS
        .iter()
        .find(|(port, operations, _)| *port == error.port && operations.contains(&error.operation));
    match actions {
        Some((.., actions)) => format!("these credentials need {actions}; {list}"),
        None => format!("these credentials may not do this; {list}"),
    }
}

/// The code that AWS answered with. What is kept of an answer is its text alone: see the errors of
/// `aws-client` and of the results.
fn code(error: &PortError) -> Option<String> {
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        let said = text.strip_prefix("AWS answered ").or_else(|| text.strip_prefix("S3 answered "));
        if let Some((_, code)) = said.and_then(|said| said.split_once(" with ")) {
            let end = code.find([':', ' ']).unwrap_or(code.len());
            return code.get(..end).map(str::to_owned);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests;
