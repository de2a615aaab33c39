//! The bounds of the pipeline: every tunable of `domain::limits::Limits`.

use super::receiver::DELIVERY_TIMEOUT;
use super::{
    API, DAY, Default, EVERY, HOUR, MS, RECOVER, SECOND, SERVE, SUBMIT, SWEEP, Setting, WORK, YEAR,
    count, duration,
};
use crate::form::Form;
use crate::role::ReadBy;
use crate::role::Role::{Receiver, Rotator, Scheduler, Worker};

pub(super) const LIMITS: &[Setting] = &[
    Setting {
        name: "limits.enqueue_grace",
        form: duration(SECOND, HOUR),
        default: Default::Value("1m"),
        meaning: "How long a sent task may take to reach a worker before the sweep sends it again.",
        if_wrong: "Too short: needless second tasks. Too long: a lost task waits.",
        read_by: EVERY.and(&[Receiver, Worker, Scheduler]),
    },
    Setting {
        name: "limits.sweep_spacing",
        form: duration(SECOND, DAY),
        default: Default::Value("5m"),
        meaning: "First pause between two sweeps of one entry; it doubles each time. \
                  At most `limits.sweep_spacing_cap`.",
        if_wrong: "Too short: an entry in trouble uses its sweeps up quickly.",
        read_by: ReadBy::verbs("`serve`, `sweep`, `audit`, `explain`").and(&[Scheduler]),
    },
    Setting {
        name: "limits.sweep_spacing_cap",
        form: duration(SECOND, DAY.saturating_mul(7)),
        default: Default::Value("2h"),
        meaning: "Longest pause between two sweeps of one entry.",
        if_wrong: "Too long: an entry in trouble waits after the trouble has ended.",
        read_by: SWEEP.and(&[Scheduler]),
    },
    Setting {
        name: "limits.sweeps_max",
        form: count(1, 1_000),
        default: Default::Value("12"),
        meaning: "Sweeps without a look at the job before an entry is given up.",
        if_wrong: "Too few: jobs are given up during an outage. Too many: a poisonous entry \
                   costs work.",
        read_by: SWEEP.and(&[Scheduler]),
    },
    Setting {
        name: "limits.announce_grace",
        form: duration(SECOND, DAY),
        default: Default::Value("10m"),
        meaning: "How long a submitted job may stay unannounced before somebody looks at it. \
                  Shorter than `limits.max_age`.",
        if_wrong: "Too short: calls for jobs that are not finished. Too long: a job whose \
                   delivery was lost is stored late.",
        read_by: EVERY.and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.missing_looks_max",
        form: count(1, 1_000),
        default: Default::Value("5"),
        meaning: "Answers of 404 before a job counts as gone.",
        if_wrong: "Too few: a job that the platform shows late is given up.",
        read_by: WORK.and(&[Worker]),
    },
    Setting {
        name: "limits.missing_pause",
        form: duration(MS.saturating_mul(100), DAY),
        default: Default::Value("3m"),
        meaning: "Pause between two looks at a job that answers 404.",
        if_wrong: "Too short: a job that the platform shows late is given up.",
        read_by: WORK.and(&[Worker]),
    },
    Setting {
        name: "limits.settle_grace",
        form: duration(SECOND, DAY.saturating_mul(7)),
        default: Default::Value("30m"),
        meaning: "How long a finished batch or crawl may keep tokens reserved before it is \
                  stored as it is.",
        if_wrong: "Too short: pages that were still being written are missing.",
        read_by: WORK.and(&[Worker]),
    },
    Setting {
        name: "limits.max_age",
        form: duration(SECOND.saturating_mul(10), YEAR),
        default: Default::Value("48h"),
        meaning: "How old an unfinished job may become before it is given up. \
                  At most `limits.retention`.",
        if_wrong: "Too short: long crawls are given up. Too long: hung jobs cost looks.",
        read_by: WORK.and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.resubmits_max",
        form: count(0, 100),
        default: Default::Value("3"),
        meaning: "Times that a lineage is submitted again: a failed extract, and failed items \
                  where `policies.resubmit_failed_items` is on.",
        if_wrong: "Each one is paid when it succeeds.",
        read_by: WORK.and(&[Worker]),
    },
    Setting {
        name: "limits.backoff_base",
        form: duration(MS, HOUR),
        default: Default::Value("1s"),
        meaning: "Base of the back-off after trouble; the pause is random and its bound doubles. \
                  At most `limits.backoff_cap`.",
        if_wrong: "Too short: a platform in trouble is asked too often.",
        read_by: API.and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.backoff_cap",
        form: duration(MS, DAY),
        default: Default::Value("15m"),
        meaning: "Longest pause of the back-off.",
        if_wrong: "Too long: work goes on late after an outage.",
        read_by: API.and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.retry_after_clamp",
        form: duration(SECOND, DAY),
        default: Default::Value("1h"),
        meaning: "Longest `Retry-After` that is believed.",
        if_wrong: "Too short: the platform is asked before it wants to be. Too long: one absurd \
                   answer stops everything.",
        read_by: API.and(&[Worker, Scheduler, Rotator]),
    },
    Setting {
        name: "limits.post_begin",
        form: duration(SECOND, HOUR),
        default: Default::Value("1m"),
        meaning: "Longest time from writing an intent to beginning its POST.",
        if_wrong: "Too short: submissions begin anew under load. Too long: a lost answer is \
                   looked for later.",
        read_by: RECOVER.and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.post_timeout",
        form: duration(MS.saturating_mul(100), HOUR),
        default: Default::Value("30s"),
        meaning: "Time-out of a POST.",
        if_wrong: "Too short: accepted jobs count as unanswered, and are looked for.",
        read_by: RECOVER.and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.call_timeout",
        form: duration(MS.saturating_mul(100), HOUR),
        default: Default::Value("30s"),
        meaning: "Time-out of any other call of the API.",
        if_wrong: "Too short: large results are never read.",
        read_by: API.and(&[Worker, Scheduler, Rotator]),
    },
    Setting {
        name: "limits.page_timeout",
        form: duration(MS.saturating_mul(100), HOUR),
        default: Default::Value("1m"),
        meaning: "Time-out of a call that reads a page of results.",
        if_wrong: "Too short: large pages are read again in smaller ones.",
        read_by: ReadBy::verbs("`serve`, `poll`, `extract`, `sweep`").and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.adoption_margin",
        form: duration(SECOND, HOUR),
        default: Default::Value("2m"),
        meaning: "How long job lists may lag behind accepted jobs. \
                  Shorter than `limits.ambiguous_after`.",
        if_wrong: "Too short: a job whose answer was lost is paid twice.",
        read_by: ReadBy::verbs("`submit`, `poll`, `extract`, `serve`, `sweep`, `audit`, `doctor`")
            .and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.ambiguous_after",
        form: duration(SECOND.saturating_mul(10), DAY.saturating_mul(7)),
        default: Default::Value("6h"),
        meaning: "How long an unanswered POST is looked for before it is reported as ambiguous.",
        if_wrong: "Too short: jobs are reported that would have been found.",
        read_by: RECOVER.and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.posts_max",
        form: count(1, 100),
        default: Default::Value("5"),
        meaning: "POSTs made for one decision, each after the earlier ones were proved not \
                  accepted.",
        if_wrong: "Too few: a submission is given up during an outage.",
        read_by: SUBMIT.and(&[Worker]),
    },
    Setting {
        name: "limits.account_pause",
        form: duration(MS.saturating_mul(100), DAY),
        default: Default::Value("1m"),
        meaning: "How long the account is left alone after it was refused as a whole, when the \
                  platform names no time. After it one call probes whether the account is in order; \
                  all others wait for what it finds.",
        if_wrong: "Too short: refused calls. Too long: work goes on late.",
        read_by: API.and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.run_claim",
        form: duration(SECOND, DAY),
        default: Default::Value("5m"),
        meaning: "How long a batch or crawl is held by one worker that makes no progress. \
                  Longer than `limits.page_timeout`.",
        if_wrong: "Too short: two workers read the same pages. Too long: a crash delays it.",
        read_by: WORK.and(&[Worker]),
    },
    Setting {
        name: "limits.retention",
        // Longer than twice the largest `signing.tolerance`: a signed delivery is accepted from so
        // long before its timestamp until so long after it, and its job must be known meanwhile.
        form: duration(DAY.saturating_mul(3), YEAR.saturating_mul(10)),
        default: Default::Value("90d"),
        meaning: "How long the ledger keeps the row of a job that has ended: longer than a \
                  delivery with a signed timestamp can be repeated.",
        if_wrong: "Too short: a job that is announced again after that is stored again.",
        read_by: EVERY.and(&[Worker, Scheduler]),
    },
    Setting {
        name: "limits.receive_deadline",
        form: duration(MS.saturating_mul(100), DELIVERY_TIMEOUT.saturating_sub(MS)),
        default: Default::Value("2500ms"),
        meaning: "Time that the receiver gives itself for one delivery; then it answers 503. The \
                  platform waits 10 s.",
        if_wrong: "Too short: deliveries are repeated under load.",
        read_by: SERVE.and(&[Receiver]),
    },
    Setting {
        name: "limits.secret_cooldown",
        form: duration(MS.saturating_mul(100), HOUR),
        default: Default::Value("10s"),
        meaning: "Pause between two reads of the signing secrets, and of the API key's file. \
                  At most `limits.secret_max_age`. A rotation lets a new webhook sign when all \
                  receivers may have read again.",
        if_wrong: "Too long: the first deliveries under a new secret are answered 401. Too \
                   short: strangers can make the secrets be read often.",
        read_by: API.and(&[Receiver, Worker, Scheduler, Rotator]),
    },
    Setting {
        name: "limits.secret_max_age",
        form: duration(SECOND, DAY),
        default: Default::Value("5m"),
        meaning: "Age at which the signing secrets are read again.",
        if_wrong: "Too long: a removed secret is accepted for that long.",
        read_by: SERVE.and(&[Receiver]),
    },
    Setting {
        name: "limits.previous_grace",
        form: duration(SECOND, DAY),
        default: Default::Value("15m"),
        meaning: "How long a signing secret is accepted after another one took its place.",
        if_wrong: "Too short: deliveries that were under way, and those that the platform repeats, are \
                   answered 401, and found in its delivery log. Too long: so is a secret that \
                   somebody else has come to know.",
        read_by: ReadBy::verbs("`rotate`, `doctor`").and(&[Receiver]),
    },
    Setting {
        name: "limits.spend_per_day",
        form: Form::OptionalCount { min: 1, max: 1_000_000_000_000 },
        default: Default::Value("none"),
        meaning: "Most tokens spent on submissions a day (UTC), retries included; `none` is \
                  without limit. A batch counts its URLs, a crawl its limit.",
        if_wrong: "Too few: submissions and retries wait for the next day. None: a mistake can spend the \
                   whole account.",
        read_by: SUBMIT.and(&[Worker]),
    },
];
