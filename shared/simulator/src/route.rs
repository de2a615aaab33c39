//! Which endpoint a path means.

use crate::job::Kind;

/// An endpoint with the ids in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint<'a> {
    Health,
    Submit(Kind),
    List(Kind),
    Get(Kind, &'a str),
    Cancel(Kind, &'a str),
    Statistics,
    Concurrency,
    CreateWebhook,
    ListWebhooks,
    GetWebhook(&'a str),
    UpdateWebhook(&'a str),
    DeleteWebhook(&'a str),
    RotateSecret(&'a str),
    Deliveries(&'a str),
    Books,
    Counters,
    GetFaults,
    SetFaults,
    ChangeFaults,
}

/// Why a path means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unrouted {
    NoPath,
    NoMethod,
}

impl<'a> Endpoint<'a> {
    /// Finds the endpoint of a method and a path.
    pub(crate) fn find(method: &str, path: &'a str) -> Result<Self, Unrouted> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let found = match (method, segments.as_slice()) {
            ("GET", ["health"]) => Self::Health,
            ("GET", ["v1", "statistics"]) => Self::Statistics,
            ("GET", ["v1", "usage", "concurrency"]) => Self::Concurrency,
            ("POST", ["v1", "webhooks"]) => Self::CreateWebhook,
            ("GET", ["v1", "webhooks"]) => Self::ListWebhooks,
            ("GET", ["v1", "webhooks", id]) => Self::GetWebhook(id),
            ("PATCH", ["v1", "webhooks", id]) => Self::UpdateWebhook(id),
            ("DELETE", ["v1", "webhooks", id]) => Self::DeleteWebhook(id),
            ("POST", ["v1", "webhooks", id, "rotate-secret"]) => Self::RotateSecret(id),
            ("GET", ["v1", "webhooks", id, "deliveries"]) => Self::Deliveries(id),
            ("GET", ["sim", "books"]) => Self::Books,
            ("GET", ["sim", "counters"]) => Self::Counters,
            ("GET", ["sim", "faults"]) => Self::GetFaults,
            ("POST", ["sim", "faults"]) => Self::SetFaults,
            ("PATCH", ["sim", "faults"]) => Self::ChangeFaults,
            (_, ["v1", word, rest @ ..]) => match kind(word) {
                Some(kind) => return Self::of_kind(method, kind, rest),
                None => return Err(unrouted(&segments)),
            },
            _ => return Err(unrouted(&segments)),
        };
        Ok(found)
    }

    fn of_kind(method: &str, kind: Kind, rest: &[&'a str]) -> Result<Self, Unrouted> {
        match (method, rest) {
            ("POST", []) => Ok(Self::Submit(kind)),
            ("GET", ["jobs"]) => Ok(Self::List(kind)),
            ("GET", [id]) => Ok(Self::Get(kind, id)),
            // An extraction cannot be cancelled (contract 1.4).
            ("DELETE", [id]) if kind != Kind::Extract => Ok(Self::Cancel(kind, id)),
            (_, [] | [_]) => Err(Unrouted::NoMethod),
            _ => Err(Unrouted::NoPath),
        }
    }

    /// Names the endpoint for the counters.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Health => "GET /health",
            Self::Submit(Kind::Extract) => "POST /v1/extract",
            Self::Submit(Kind::Batch) => "POST /v1/batch",
            Self::Submit(Kind::Crawl) => "POST /v1/crawl",
            Self::List(Kind::Extract) => "GET /v1/extract/jobs",
            Self::List(Kind::Batch) => "GET /v1/batch/jobs",
            Self::List(Kind::Crawl) => "GET /v1/crawl/jobs",
            Self::Get(Kind::Extract, _) => "GET /v1/extract/{job_id}",
            Self::Get(Kind::Batch, _) => "GET /v1/batch/{job_id}",
            Self::Get(Kind::Crawl, _) => "GET /v1/crawl/{job_id}",
            Self::Cancel(Kind::Crawl, _) => "DELETE /v1/crawl/{job_id}",
            Self::Cancel(..) => "DELETE /v1/batch/{job_id}",
            Self::Statistics => "GET /v1/statistics",
            Self::Concurrency => "GET /v1/usage/concurrency",
            Self::CreateWebhook => "POST /v1/webhooks",
            Self::ListWebhooks => "GET /v1/webhooks",
            Self::GetWebhook(_) => "GET /v1/webhooks/{webhook_id}",
            Self::UpdateWebhook(_) => "PATCH /v1/webhooks/{webhook_id}",
            Self::DeleteWebhook(_) => "DELETE /v1/webhooks/{webhook_id}",
            Self::RotateSecret(_) => "POST /v1/webhooks/{webhook_id}/rotate-secret",
            Self::Deliveries(_) => "GET /v1/webhooks/{webhook_id}/deliveries",
            Self::Books => "GET /sim/books",
            Self::Counters => "GET /sim/counters",
            Self::GetFaults => "GET /sim/faults",
            Self::SetFaults => "POST /sim/faults",
            Self::ChangeFaults => "PATCH /sim/faults",
        }
    }

    /// Says whether the endpoint belongs to the simulator, not to the platform.
    pub(crate) fn is_backstage(self) -> bool {
        self.name().contains(" /sim/")
    }

    /// Says whether the endpoint only reads.
    pub(crate) fn is_read(self) -> bool {
        self.name().starts_with("GET ")
    }

    /// Says whether errors of the endpoint have no documented body (contract shape D).
    pub(crate) fn has_bare_errors(self) -> bool {
        matches!(
            self,
            Self::Submit(kind) | Self::List(kind) | Self::Get(kind, _) | Self::Cancel(kind, _)
                if kind != Kind::Extract
        )
    }

    /// The id in the path and its name, where the contract wants a UUID.
    pub(crate) fn uuid(self) -> Option<(&'static str, &'a str)> {
        match self {
            Self::Get(Kind::Batch | Kind::Crawl, id) | Self::Cancel(_, id) => Some(("job_id", id)),
            Self::GetWebhook(id)
            | Self::UpdateWebhook(id)
            | Self::DeleteWebhook(id)
            | Self::RotateSecret(id)
            | Self::Deliveries(id) => Some(("webhook_id", id)),
            _ => None,
        }
    }
}

fn kind(word: &str) -> Option<Kind> {
    [Kind::Extract, Kind::Batch, Kind::Crawl].into_iter().find(|kind| kind.name() == word)
}

fn unrouted(segments: &[&str]) -> Unrouted {
    match segments {
        ["health"]
        | ["v1", "statistics" | "webhooks"]
        | ["v1", "usage", "concurrency"]
        | ["v1", "webhooks", _]
        | ["v1", "webhooks", _, "rotate-secret" | "deliveries"]
        | ["sim", "books" | "counters" | "faults"] => Unrouted::NoMethod,
        _ => Unrouted::NoPath,
    }
}

/// Says whether a text is a UUID in its usual form.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
