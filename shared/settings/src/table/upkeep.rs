//! What is looked after now and then, and how often.

use super::{DAY, Default, HOUR, MINUTE, SECOND, Setting, YEAR, duration};
use crate::form::Form;
use crate::role::ReadBy;
use crate::role::Role::Scheduler;

const RECONCILE: ReadBy = ReadBy::verbs("`serve`, `reconcile`");
const AUDIT: ReadBy = ReadBy::verbs("`serve`, `reconcile`, `audit`");
const REPLAY: ReadBy = ReadBy::verbs("`serve`, `replay`, `doctor`");
const AUDIT_AND_DOCTOR: ReadBy = ReadBy::verbs("`serve`, `reconcile`, `audit`, `doctor`");

pub(super) const UPKEEP: &[Setting] = &[
    Setting {
        name: "webhooks",
        form: Form::Word(&[
            "on",
            "off",
            "extract,batch,crawl",
            "extract,batch",
            "extract,crawl",
            "batch,crawl",
            "extract",
            "batch",
            "crawl",
        ]),
        default: Default::Value("on"),
        meaning: "Whether webhooks of the platform lead here: for all three kinds of job, or for \
                  those that are named. With `off` nobody looks at delivery logs and \
                  subscriptions, and all jobs are found by the platform's job lists: a way to \
                  start without a public address.",
        if_wrong: "On without webhooks: jobs are found later, and missing subscriptions are \
                   reported. Off with webhooks: what they missed is found all the same.",
        read_by: AUDIT_AND_DOCTOR.and(&[Scheduler]),
    },
    Setting {
        name: "reconcile.every",
        form: duration(SECOND, DAY),
        default: Default::None(
            "5m, or 30s where `webhooks` is `off`; each run of the scheduler on AWS",
        ),
        meaning: "Pause between two comparisons of the platform's job lists with the ledger.",
        if_wrong: "Too long: a job that no webhook told of is found late. Too short: calls of job \
                   lists.",
        read_by: AUDIT_AND_DOCTOR.and(&[Scheduler]),
    },
    Setting {
        name: "reconcile.threshold",
        form: duration(SECOND, DAY),
        default: Default::Value("10m"),
        meaning: "How long a job is left to its webhook before job lists and delivery logs speak \
                  for it; nothing where `webhooks` is `off`.",
        if_wrong: "Too short: jobs are announced that a webhook would have announced a moment \
                   later, which does no harm. Too long: they are found late.",
        read_by: AUDIT.and(&[Scheduler]),
    },
    Setting {
        name: "reconcile.overlap",
        form: duration(MINUTE, DAY),
        default: Default::Value("15m"),
        meaning: "How far before the newest job that was seen the next comparison begins: longer \
                  than the platform's lists lag behind its jobs.",
        if_wrong: "Too short: a job that is listed late is missed, unless it was submitted from \
                   here. Too long: the same jobs are compared again.",
        read_by: RECONCILE.and(&[Scheduler]),
    },
    Setting {
        name: "reconcile.history",
        form: duration(HOUR, YEAR.saturating_mul(10)),
        default: Default::Value("90d"),
        meaning: "How far back the first comparison goes, at most nine tenths of \
                  `limits.retention`. All jobs since then that the platform lists are fetched and \
                  stored, also those that were not submitted from here.",
        if_wrong: "Too long: a new ledger begins with work for old jobs. Too short: older ones are \
                   never stored.",
        read_by: RECONCILE.and(&[Scheduler]),
    },
    Setting {
        name: "replay.every",
        form: duration(SECOND, DAY),
        default: Default::None("5m; each run of the scheduler on AWS"),
        meaning: "Pause between two looks at the delivery logs of the webhooks, and at the \
                  subscriptions.",
        if_wrong: "Too long: a refused delivery is made up for late. Too short: calls of delivery \
                   logs.",
        read_by: REPLAY.and(&[Scheduler]),
    },
];
