//! What is used of AWS: by the functions, and by the command line with `backend = "aws"`.

use super::{Default, Setting};
use crate::form::{Form, Marks};
use crate::role::ReadBy;
use crate::role::Role::{Receiver, Rotator, Scheduler, Worker};

/// Verbs that work with the ledger, with the backend on AWS.
const EVERY_ON_AWS: ReadBy = ReadBy::verbs("every verb with `backend` = `aws`");
const API_ON_AWS: ReadBy =
    ReadBy::verbs("every verb that asks the platform, with `backend` = `aws`");
const STACK_GIVES_IT: Default = Default::None("none; with `stack`, the stack's output");

pub(super) const AWS: &[Setting] = &[
    Setting {
        name: "backend",
        form: Form::Word(&["embedded", "aws"]),
        default: Default::Value("embedded"),
        meaning: "Where the ledger, the queue and the results are: in the data folder, or on AWS. \
                  `aws` needs `stack`, or `table`, `queue_url` and `bucket`.",
        if_wrong: "Another ledger: what the right one owes is not seen, and jobs may be paid again.",
        read_by: ReadBy::verbs("every verb but `demo` and `simulate`"),
    },
    Setting {
        name: "stack",
        form: Form::Name { of: "a CloudFormation stack", min: 1, max: 128, marks: Marks::Stack },
        default: Default::None("none"),
        meaning: "Name of the CloudFormation stack. The command line takes what is not set here \
                  from its outputs; the functions' metrics have it as their dimension `stack`.",
        if_wrong: "The command line works with another stack; alarms look at metrics that nobody \
                   counts.",
        read_by: EVERY_ON_AWS.and_required_by(&[Receiver, Worker, Scheduler, Rotator]),
    },
    Setting {
        name: "region",
        form: Form::Name { of: "an AWS region", min: 4, max: 32, marks: Marks::Region },
        default: Default::None("none; the profile's, or `AWS_REGION`"),
        meaning: "AWS region of the stack. The functions have theirs from Lambda.",
        if_wrong: "The stack is not found.",
        read_by: EVERY_ON_AWS,
    },
    Setting {
        name: "table",
        form: Form::Name { of: "a DynamoDB table", min: 3, max: 255, marks: Marks::Table },
        default: STACK_GIVES_IT,
        meaning: "Name of the DynamoDB table that is the ledger.",
        if_wrong: "Another ledger: what the right one owes is not seen, and jobs may be paid again.",
        read_by: EVERY_ON_AWS.and_required_by(&[Receiver, Worker, Scheduler, Rotator]),
    },
    Setting {
        name: "queue_url",
        form: Form::QueueUrl,
        default: STACK_GIVES_IT,
        meaning: "URL of the SQS queue of tasks, which must be a standard queue.",
        if_wrong: "Tasks go where nobody works them, and each job waits for the sweep in vain.",
        read_by: EVERY_ON_AWS.and_required_by(&[Receiver, Worker, Scheduler]),
    },
    Setting {
        name: "dead_letter_queue_url",
        form: Form::QueueUrl,
        default: STACK_GIVES_IT,
        meaning: "URL of the SQS queue where tasks end that no worker could take.",
        if_wrong: "`dead` shows other messages, and may send strangers' tasks to the workers.",
        read_by: ReadBy::verbs("`dead` with `backend` = `aws`"),
    },
    Setting {
        name: "bucket",
        form: Form::Name { of: "an S3 bucket", min: 3, max: 63, marks: Marks::Bucket },
        default: STACK_GIVES_IT,
        meaning: "Name of the S3 bucket of the results.",
        if_wrong: "Results lie where nobody looks for them.",
        read_by: EVERY_ON_AWS.and_required_by(&[Worker]),
    },
    Setting {
        name: "results_prefix",
        form: Form::KeyPrefix,
        default: Default::None("none; results begin at `kind=`"),
        meaning: "What the keys of all results begin with, before a `/`.",
        if_wrong: "A result that lies under another prefix is stored again.",
        read_by: EVERY_ON_AWS.and(&[Worker]),
    },
    Setting {
        name: "webhook_secret_ids",
        form: Form::SecretIds,
        default: STACK_GIVES_IT,
        meaning: "Secrets of AWS Secrets Manager that hold the signing secrets, one or more each.",
        if_wrong: "Without a readable secret every delivery is answered 503; with a wrong one, 401.",
        read_by: ReadBy::verbs("`webhooks` and `rotate` with `backend` = `aws`")
            .and_required_by(&[Receiver, Rotator]),
    },
    Setting {
        name: "api_key_secret_id",
        form: Form::SecretId,
        default: Default::None(
            "none; with `stack`, the stack's output, unless `api_key` or `api_key_file` is set",
        ),
        meaning: "Secret of AWS Secrets Manager that holds the account's API key. It is read again \
                  when the platform refuses the key.",
        if_wrong: "Every call is refused, and nothing is paid.",
        read_by: API_ON_AWS.and_required_by(&[Worker, Scheduler, Rotator]),
    },
];
