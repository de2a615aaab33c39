//! The receiver: where it listens, its bounds, signatures, secrets, and what is read of a body.

use std::time::Duration;

use super::{
    DAY, Default, GIB, KIB, MINUTE, MS, RECEIVE, SECOND, SERVE, Setting, bytes, count, duration,
};
use crate::form::Form;
use crate::role::ReadBy;
use crate::role::Role::{Receiver, Rotator, Scheduler};

pub(super) const RECEIVER: &[Setting] = &[
    Setting {
        name: "listen",
        form: Form::Address,
        default: Default::Value("127.0.0.1:8787"),
        meaning: "Address on which the receiver listens; port 0 takes a free one. It speaks plain \
                  HTTP: put a proxy with TLS before it.",
        if_wrong: "Deliveries do not arrive, and polling finds the jobs late.",
        read_by: RECEIVE,
    },
    Setting {
        name: "webhook_path",
        form: Form::HttpPath,
        default: Default::Value("/webhook"),
        meaning: "Path of the receiver, compared byte for byte: `/webhook/` and `//webhook` are \
                  other paths, and answered 404.",
        if_wrong: "Every delivery is answered 404.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "public_url",
        form: Form::Url,
        default: Default::None("none; `webhooks create` then needs `--url`"),
        meaning: "The URL under which the platform reaches the receiver, path included.",
        if_wrong: "Webhooks are registered that nobody receives, and polling finds the jobs late.",
        read_by: ReadBy::verbs("`serve`, `webhooks`, `replay`, `doctor`").and(&[Scheduler]),
    },
    Setting {
        name: "rotation_strategy",
        form: Form::Word(&["overlap", "in-place"]),
        default: Default::Value("overlap"),
        meaning: "How a signing secret is replaced: `overlap` registers a second webhook, which \
                  takes the place of the first without a refused delivery; `in-place` lets the \
                  platform replace the secret, for an account that has no room for another webhook.",
        if_wrong: "In place, deliveries may be refused for some seconds, and their jobs are found in \
                   the delivery log. Overlapping, an account with ten webhooks cannot rotate.",
        read_by: ReadBy::verbs("`rotate`").and(&[Rotator]),
    },
    Setting {
        name: "metrics_listen",
        form: Form::Address,
        default: Default::None("none; no metrics are served"),
        meaning: "Address on which `GET /metrics` answers with metrics as Prometheus reads them; \
                  port 0 takes a free one. It is never the receiver's address, which strangers \
                  reach. Whoever reaches this one reads counts, and neither ids nor secrets.",
        if_wrong: "On an address that strangers reach they learn how much is fetched, and when.",
        read_by: SERVE,
    },
    Setting {
        name: "receiver.connections",
        form: count(1, 100_000),
        default: Default::Value("1024"),
        meaning: "Connections that are served at once; further ones wait in the system's backlog.",
        if_wrong: "Too few: deliveries wait, and are repeated. Too many: file descriptors run out.",
        read_by: SERVE,
    },
    Setting {
        name: "receiver.body_bytes",
        form: bytes(KIB, GIB),
        default: Default::Value("32MiB"),
        meaning: "Largest body of a delivery; a larger one is answered 413. \
                  At most `receiver.bodies_bytes`.",
        if_wrong: "Too small: genuine deliveries are refused for good, and polling finds the jobs \
                   late.",
        read_by: SERVE,
    },
    Setting {
        name: "receiver.bodies_bytes",
        form: bytes(KIB, 64 * GIB),
        default: Default::Value("128MiB"),
        meaning: "Bytes of bodies that are held at once; a body that does not fit is answered \
                  503, and delivered again by the platform.",
        if_wrong: "Too small: repeated deliveries under load. Too large: memory.",
        read_by: SERVE,
    },
    Setting {
        name: "receiver.head_timeout",
        form: duration(MS.saturating_mul(100), MINUTE.saturating_mul(5)),
        default: Default::Value("10s"),
        meaning: "Longest time in which a request's head must arrive.",
        if_wrong: "Too long: slow strangers hold connections.",
        read_by: SERVE,
    },
    Setting {
        name: "receiver.body_timeout",
        form: duration(MS.saturating_mul(100), MINUTE.saturating_mul(5)),
        default: Default::Value("20s"),
        meaning: "Longest time in which a request's body must arrive; then it is answered 408.",
        if_wrong: "Too long: slow strangers hold memory.",
        read_by: SERVE,
    },
    Setting {
        name: "signing.preset",
        form: Form::Word(&[
            "geonode",
            "github",
            "stripe",
            "standard-webhooks",
            "body-hex",
            "static-header",
        ]),
        default: Default::Value("geonode"),
        meaning: "How deliveries are signed. `geonode` accepts any common encoding of an \
                  HMAC-SHA256 over the raw body; the others accept one form each.",
        if_wrong: "Every delivery is answered 401, and polling finds the jobs late.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "signing.headers",
        form: Form::List("header names, at most 8"),
        default: Default::None("the preset's own"),
        meaning: "Names of the headers that may carry the signature; case does not matter.",
        if_wrong: "Every delivery is answered 401.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "signing.body",
        form: Form::Word(&["as-received", "inflated"]),
        default: Default::None("the preset's own, which is `as-received`"),
        meaning: "Whether a compressed body is signed as it was received or as it was before.",
        if_wrong: "Compressed deliveries are answered 401.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "signing.tolerance",
        form: duration(SECOND, DAY),
        default: Default::None("the preset's own, 5m where it has a timestamp"),
        meaning: "How old or early a signed timestamp may be, in whole seconds; for presets with \
                  a timestamp only.",
        if_wrong: "Too short: deliveries are refused when clocks differ. Too long: old deliveries \
                   can be replayed, which the ledger then ignores.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "signing.scheme",
        form: Form::Scheme,
        default: Default::None("none; the preset counts"),
        meaning: "A signature scheme with every dimension spelled out, in place of a preset.",
        if_wrong: "A scheme that contradicts itself is a start-up error; one that does not fit \
                   the sender answers every delivery 401.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "webhook_secret",
        form: Form::Secret,
        default: Default::None("none; the secrets file counts"),
        meaning: "A signing secret, accepted beside those of the secrets file.",
        if_wrong: "Every delivery signed with another secret is answered 401. Empty is a start-up \
                   error, since anybody can sign with an empty key.",
        read_by: RECEIVE,
    },
    Setting {
        name: "webhook_secret_previous",
        form: Form::Secret,
        default: Default::None("none"),
        meaning: "The signing secret before that, accepted as long as it is set here.",
        if_wrong: "Whoever knows a retired secret that is still set here can sign deliveries.",
        read_by: RECEIVE,
    },
    Setting {
        name: "secrets_file",
        form: Form::Path,
        default: Default::None("`secrets.json` in the data folder"),
        meaning: "File of the signing secrets that `webhooks create` writes; nobody but its owner \
                  may read it. A file named here must exist when the receiver starts.",
        if_wrong: "Without any secret no receiver is started.",
        read_by: ReadBy::verbs("`serve`, `webhooks`, `rotate`, `doctor`"),
    },
    Setting {
        name: "envelope.job_id",
        form: Form::List("JSON pointers, 1 to 8"),
        default: Default::Value("/data/job_id,/job_id,/data/id"),
        meaning: "Where the job id may be in a body; the first that leads anywhere counts.",
        if_wrong: "Every delivery is answered 400, and polling finds the jobs late.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "envelope.event",
        form: Form::List("JSON pointers, 1 to 8"),
        default: Default::Value("/event,/event_type"),
        meaning: "Where the event type may be in a body.",
        if_wrong: "Every delivery is acknowledged and ignored, and polling finds the jobs late.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "envelope.delivery_id",
        form: Form::List("JSON pointers, 1 to 8"),
        default: Default::Value("/delivery_id,/id"),
        meaning: "Where the delivery id may be in a body; for logs alone.",
        if_wrong: "Logs lack the id.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "envelope.webhook_id",
        form: Form::List("JSON pointers, 1 to 8"),
        default: Default::Value("/webhook_id"),
        meaning: "Where the webhook id may be in a body; for logs alone.",
        if_wrong: "Logs lack the id.",
        read_by: RECEIVE.and(&[Receiver]),
    },
    Setting {
        name: "envelope.events",
        form: Form::Events,
        default: Default::Value(
            "extract_completed=extract,batch_completed=batch,crawl_completed=crawl",
        ),
        meaning: "The sender's event types, exact in case, and the kind of job that each \
                  completes. Other types are acknowledged and ignored.",
        if_wrong: "Deliveries of types that are missing here are ignored, and polling finds the \
                   jobs late.",
        read_by: RECEIVE.and(&[Receiver]),
    },
];

/// The platform gives a receiver this long.
pub(super) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
