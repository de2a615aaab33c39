//! Where things are, and how the platform is reached.

use std::time::Duration;

use super::{
    API, Default, EVERY, GIB, HOUR, MIB, MINUTE, MS, SECOND, SERVE, SUBMIT, Setting, bytes, count,
    duration,
};
use crate::form::Form;
use crate::role::ReadBy;
use crate::role::Role::{Rotator, Scheduler, Worker};

pub(super) const GENERAL: &[Setting] = &[
    Setting {
        name: "data_dir",
        form: Form::Path,
        default: Default::Value("./gleaner-data"),
        meaning: "Folder that holds `ledger.db`, `results/` and `secrets.json`. It must be on a \
                  local disk, and it is made for its owner alone.",
        if_wrong: "Another folder is another ledger: what the old one owes is not seen, and jobs \
                   may be paid again.",
        read_by: EVERY,
    },
    Setting {
        name: "api_url",
        form: Form::Url,
        default: Default::Value("https://scraper.geonode.io"),
        meaning: "Base URL of the platform's API; a path in it is kept as a prefix.",
        if_wrong: "The API key goes to whoever answers there. Use `https` off this machine.",
        read_by: API.and(&[Worker, Scheduler, Rotator]),
    },
    Setting {
        name: "api_key",
        form: Form::Secret,
        default: Default::None("none; one of `api_key` and `api_key_file` is needed"),
        meaning: "The account's API key.",
        if_wrong: "Every call is refused, and nothing is paid.",
        read_by: API,
    },
    Setting {
        name: "api_key_file",
        form: Form::Path,
        default: Default::None("none"),
        meaning: "File that holds the API key and that nobody but its owner may read. It goes \
                  before `api_key`, and is read again when the platform refuses the key.",
        if_wrong: "A start-up error.",
        read_by: API,
    },
    Setting {
        name: "api_answer_bytes",
        form: bytes(MIB, GIB),
        default: Default::Value("64MiB"),
        meaning: "Largest answer of the API that is read, after decompression.",
        if_wrong: "Too small: large results are given up as too large. Too large: memory, two to \
                   three times as much, though for one answer at a time.",
        read_by: API.and(&[Worker, Scheduler, Rotator]),
    },
    Setting {
        name: "api_connect_timeout",
        form: duration(Duration::from_millis(100), MINUTE),
        default: Default::Value("5s"),
        meaning: "Longest wait for a connection to the API, TLS included. \
                  At most `limits.call_timeout`.",
        if_wrong: "Too short: calls fail on a slow network, and are tried again.",
        read_by: API.and(&[Worker, Scheduler, Rotator]),
    },
    Setting {
        name: "pace.start",
        form: count(1, 1_000),
        default: Default::Value("4"),
        meaning: "Submissions in flight to begin with; the pace adapts to what is refused. \
                  At most `pace.ceiling`.",
        if_wrong: "Too many: the platform refuses some with 429, which costs time and no tokens.",
        read_by: SUBMIT,
    },
    Setting {
        name: "pace.ceiling",
        form: count(1, 1_000),
        default: Default::Value("16"),
        meaning: "Most submissions in flight as long as the account's concurrency is not known.",
        if_wrong: "Too few: submitting takes longer. Too many: refusals with 429.",
        read_by: SUBMIT,
    },
    Setting {
        name: "pace.spacing",
        form: duration(MS, MINUTE),
        default: Default::Value("250ms"),
        meaning: "Pause between two submissions when one may be in flight; with n, its n-th part.",
        if_wrong: "Too long: submitting takes longer. Too short: refusals with 429.",
        read_by: SUBMIT,
    },
    Setting {
        name: "workers",
        form: count(1, 1_000),
        default: Default::Value("32"),
        meaning: "Tasks that are worked at once.",
        if_wrong: "Too few: results wait. Too many: memory, and calls refused with 429.",
        read_by: SERVE,
    },
    Setting {
        name: "task_hold",
        form: duration(SECOND, HOUR.saturating_mul(12)),
        default: Default::Value("5m"),
        meaning: "How long a task is hidden from other workers while it is worked. \
                  Longer than `limits.call_timeout`, `limits.page_timeout` and `limits.post_timeout`.",
        if_wrong: "Too short: two workers fetch the same job, and one result is dropped. Too \
                   long: a task whose worker crashed waits.",
        read_by: SERVE,
    },
    Setting {
        name: "tick",
        form: duration(MS.saturating_mul(100), HOUR),
        default: Default::Value("15s"),
        meaning: "Pause between two ticks, each a bulk poll of what is overdue and a sweep.",
        if_wrong: "Too long: what a lost delivery or a crash left behind waits. Too short: calls \
                   of job lists.",
        read_by: SERVE,
    },
    Setting {
        name: "tick_rows",
        form: count(1, 100_000),
        default: Default::Value("1000"),
        meaning: "Most rows of the ledger that one tick sweeps.",
        if_wrong: "Too few: a backlog takes more ticks.",
        read_by: ReadBy::verbs("`serve`, `sweep`").and(&[Scheduler]),
    },
];
