//! From sources to settings.

use std::net::{Ipv4Addr, SocketAddr};

use domain::envelope::EnvelopeFormat;
use domain::envelope::pointer::{Pointer, PointerList};
use domain::limits::{Limits, Policies};
use domain::rotate::Strategy;
use domain::signature::dimension::{BodyForm, HeaderName};
use domain::signature::preset::Preset;
use domain::signature::scheme::{PresetConfig, Scheme, SchemeConfig};
use domain::signature::secret::Secret;
use serde::Deserialize as _;

use crate::form::Form;
use crate::problem::{Problem, Problems};
use crate::reader::Reader;
use crate::relations;
use crate::settings::{Aws, Backend, Pacing, Receiver, Settings};
use crate::source::Sources;
use crate::upkeep::{self, Unset};

/// Reads and checks all settings.
///
/// # Errors
/// All problems together.
pub fn resolve(sources: &Sources<'_>) -> Result<Settings, Problems> {
    let mut reader = Reader::new(sources);
    let read = &mut reader;
    let scheme = scheme_in_force(read)?;
    let envelope = envelope(read);
    let public_url = read.url("public_url");
    let mut settings = Settings {
        data_dir: read.path("data_dir").unwrap_or_default(),
        api_url: read.url("api_url").unwrap_or_default(),
        api_key: read.secret("api_key", |_| true),
        api_key_file: read.path("api_key_file"),
        api_answer_bytes: read.bytes("api_answer_bytes"),
        api_connect_timeout: read.duration("api_connect_timeout"),
        pacing: Pacing {
            start: read.count("pace.start"),
            ceiling: read.count("pace.ceiling"),
            spacing: read.duration("pace.spacing"),
        },
        listen: read
            .read("listen", |_, raw| raw.address())
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        webhook_path: read.read("webhook_path", |_, raw| raw.http_path()).unwrap_or_default(),
        public_url: public_url.clone(),
        rotation_strategy: strategy(read),
        metrics_listen: read.read("metrics_listen", |_, raw| raw.address()),
        workers: read.count("workers"),
        task_hold: read.duration("task_hold"),
        tick: read.duration("tick"),
        upkeep: upkeep::rules(read, public_url, Unset::NowAndThen),
        receiver: Receiver {
            connections: usize::try_from(read.count("receiver.connections")).unwrap_or_default(),
            body_bytes: read.bytes("receiver.body_bytes"),
            bodies_bytes: read.bytes("receiver.bodies_bytes"),
            head_timeout: read.duration("receiver.head_timeout"),
            body_timeout: read.duration("receiver.body_timeout"),
        },
        scheme,
        envelope: envelope.unwrap_or_default(),
        secrets_file_given: read.path("secrets_file"),
        secret_values: ["webhook_secret", "webhook_secret_previous"]
            .into_iter()
            .filter_map(|name| {
                let is_usable = |text: &str| Secret::parse_stored(text).is_ok();
                Some((name, read.secret(name, is_usable)?))
            })
            .collect(),
        limits: limits(read),
        backend: backend(read),
        in_force: Vec::new(),
    };
    relations::check(read, &settings);
    settings.in_force = reader.finish()?;
    Ok(settings)
}

fn backend(read: &mut Reader) -> Backend {
    let is_aws = read.word("backend").as_deref() == Some("aws");
    let aws = Aws {
        stack: read.name("stack"),
        region: read.name("region"),
        table: read.name("table"),
        queue_url: read.read("queue_url", |_, raw| raw.queue_url()),
        dead_letter_queue_url: read.read("dead_letter_queue_url", |_, raw| raw.queue_url()),
        bucket: read.name("bucket"),
        results_prefix: read.read("results_prefix", |_, raw| raw.key_prefix()),
        webhook_secret_ids: read.read("webhook_secret_ids", |_, raw| raw.secret_ids()),
        api_key_secret_id: read.read("api_key_secret_id", |_, raw| raw.secret_id()),
    };
    if is_aws { Backend::Aws(aws) } else { Backend::Embedded }
}

/// How a signing secret is replaced.
pub(crate) fn strategy(read: &mut Reader) -> Strategy {
    let word = read.word("rotation_strategy");
    word.and_then(|word| word.parse().ok()).unwrap_or_default()
}

pub(crate) fn limits(read: &mut Reader) -> Limits {
    Limits {
        enqueue_grace: read.duration("limits.enqueue_grace"),
        sweep_spacing: read.duration("limits.sweep_spacing"),
        sweep_spacing_cap: read.duration("limits.sweep_spacing_cap"),
        sweeps_max: read.count("limits.sweeps_max"),
        announce_grace: read.duration("limits.announce_grace"),
        missing_looks_max: read.count("limits.missing_looks_max"),
        missing_pause: read.duration("limits.missing_pause"),
        settle_grace: read.duration("limits.settle_grace"),
        max_age: read.duration("limits.max_age"),
        resubmits_max: read.count("limits.resubmits_max"),
        backoff_base: read.duration("limits.backoff_base"),
        backoff_cap: read.duration("limits.backoff_cap"),
        retry_after_clamp: read.duration("limits.retry_after_clamp"),
        post_begin: read.duration("limits.post_begin"),
        post_timeout: read.duration("limits.post_timeout"),
        call_timeout: read.duration("limits.call_timeout"),
        page_timeout: read.duration("limits.page_timeout"),
        adoption_margin: read.duration("limits.adoption_margin"),
        ambiguous_after: read.duration("limits.ambiguous_after"),
        posts_max: read.count("limits.posts_max"),
        account_pause: read.duration("limits.account_pause"),
        run_claim: read.duration("limits.run_claim"),
        retention: read.duration("limits.retention"),
        receive_deadline: read.duration("limits.receive_deadline"),
        secret_cooldown: read.duration("limits.secret_cooldown"),
        secret_max_age: read.duration("limits.secret_max_age"),
        previous_grace: read.duration("limits.previous_grace"),
        spend_per_day: read.optional_count("limits.spend_per_day"),
        policies: Policies {
            resubmit_unlinked: is_on(read, "policies.resubmit_unlinked"),
            resubmit_failed_items: is_on(read, "policies.resubmit_failed_items"),
        },
    }
}

fn is_on(read: &mut Reader, name: &'static str) -> bool {
    read.word(name).as_deref() == Some("on")
}

/// The signature scheme, or the default in place of a wrong one, so that the rest is checked as
/// well.
pub(crate) fn scheme_in_force(read: &mut Reader) -> Result<Scheme, Problems> {
    match scheme(read) {
        Some(scheme) => Ok(scheme),
        None => Preset::Geonode.scheme().map_err(|error| {
            let name = "signing.preset".to_owned();
            Problems(vec![Problem { name, origin: None, text: error.to_string() }])
        }),
    }
}

/// The signature scheme; `None` when something about it is wrong.
fn scheme(read: &mut Reader) -> Option<Scheme> {
    let preset = read.word("signing.preset");
    let headers = read.read("signing.headers", |_, raw| {
        let names = raw.list()?;
        names.iter().map(|name| HeaderName::parse(name).ok()).collect::<Option<Vec<_>>>()
    });
    let body = read.word("signing.body").map(|word| match word.as_str() {
        "inflated" => BodyForm::Inflated,
        _ => BodyForm::AsReceived,
    });
    let tolerance = read.read("signing.tolerance", |form, raw| match form {
        Form::Duration { min, max } => {
            raw.duration(min, max).filter(|tolerance| tolerance.subsec_nanos() == 0)
        }
        _ => None,
    });
    let custom = read.read("signing.scheme", |_, raw| SchemeConfig::deserialize(raw.toml()?).ok());
    let origin = read.origin("signing.scheme");
    if origin.is_some() {
        let others = ["signing.preset", "signing.headers", "signing.body", "signing.tolerance"];
        for name in others {
            if let Some(other) = read.origin(name) {
                let text = "`signing.scheme` is set, which says all of this; remove one of them";
                read.problem(name, Some(other), text.to_owned());
            }
        }
        let built = Scheme::try_from(custom?);
        return built
            .map_err(|error| read.problem("signing.scheme", origin, error.to_string()))
            .ok();
    }
    let tolerance_secs = tolerance.map(|tolerance| u32::try_from(tolerance.as_secs()));
    let config = SchemeConfig::Preset(PresetConfig {
        name: Preset::ALL.into_iter().find(|known| Some(known.name()) == preset.as_deref())?,
        headers,
        body,
        tolerance_secs: tolerance_secs.and_then(Result::ok),
    });
    Scheme::try_from(config)
        .map_err(|error| {
            let text = format!("the preset does not go with the other `signing` settings: {error}");
            let origin = read.origin("signing.preset");
            read.problem("signing.preset", origin, text);
        })
        .ok()
}

/// Where the ids are; `None` when something about it is wrong.
pub(crate) fn envelope(read: &mut Reader) -> Option<EnvelopeFormat> {
    let mut pointers = |name| {
        read.read(name, |_, raw| {
            let texts = raw.list()?;
            let pointers = texts.iter().map(|text| Pointer::parse(text).ok());
            PointerList::new(pointers.collect::<Option<_>>()?).ok()
        })
    };
    let job_id = pointers("envelope.job_id");
    let event = pointers("envelope.event");
    let delivery_id = pointers("envelope.delivery_id");
    let webhook_id = pointers("envelope.webhook_id");
    let events = read.read("envelope.events", |_, raw| raw.events());
    Some(EnvelopeFormat {
        job_id: job_id?,
        event: event?,
        delivery_id: delivery_id?,
        webhook_id: webhook_id?,
        events: events?,
    })
}
