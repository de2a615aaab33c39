//! The settings: what is set, and what cannot work together.

use reqwest::Url;
use settings::{Backend, InForce, Origin, Settings};

use super::finding::Finding;
use crate::backend::{is_exposed, is_here};

/// The name of the check.
pub(super) const SETTINGS: &str = "settings";

/// Settings that nothing reads where the backend is on AWS.
const EMBEDDED_ONLY: [&str; 4] =
    ["data_dir", "secrets_file", "webhook_secret", "webhook_secret_previous"];

/// Says what is set, and what will not do what it was set for.
pub(super) fn judge(settings: &Settings) -> Vec<Finding> {
    let is_set = |it: &&InForce| it.origin != Origin::Default;
    let set: Vec<_> = settings.in_force.iter().filter(is_set).map(|it| it.name).collect();
    let found = match set.as_slice() {
        [] => "all have their defaults".to_owned(),
        set => format!("set are {}; the others have their defaults", set.join(", ")),
    };
    let mut findings = vec![Finding::ok(SETTINGS, found)];
    findings.extend(exposed("api_url", &settings.api_url, "reads the API key"));
    if let Some(url) = &settings.public_url {
        findings.extend(exposed("public_url", url, "reads the pages that deliveries carry"));
        findings.extend(judge_public_url(settings, url));
    }
    match settings.backend {
        Backend::Embedded => findings.extend(previous_alone(settings)),
        Backend::Aws(_) => findings.extend(unread(&set)),
    }
    findings
}

fn exposed(name: &str, url: &str, what: &str) -> Option<Finding> {
    is_exposed(url).then(|| {
        Finding::warning(
            SETTINGS,
            format!("`{name}` is plain http: whoever is in between {what}"),
            "use https",
        )
    })
}

fn judge_public_url(settings: &Settings, url: &str) -> Option<Finding> {
    if is_here(url) && !is_here(&settings.api_url) {
        return Some(Finding::failed(
            SETTINGS,
            format!("`public_url` is {url}, which leads the platform to itself and not here"),
            "set it to the URL under which the platform reaches the receiver",
        ));
    }
    let path = Url::parse(url).ok()?.path().to_owned();
    let is_embedded = settings.backend == Backend::Embedded;
    (is_embedded && path != settings.webhook_path).then(|| {
        Finding::warning(
            SETTINGS,
            format!(
                "the path of `public_url` is {path}, and `webhook_path` is {}",
                settings.webhook_path
            ),
            "make them one, unless the proxy before the receiver changes the path",
        )
    })
}

fn previous_alone(settings: &Settings) -> Option<Finding> {
    let names: Vec<_> = settings.secret_values.iter().map(|(name, _)| *name).collect();
    (names == ["webhook_secret_previous"]).then(|| {
        Finding::warning(
            SETTINGS,
            "`webhook_secret_previous` is set and `webhook_secret` is not",
            "set the one that deliveries are signed with now, too",
        )
    })
}

/// What is set in vain.
fn unread(set: &[&str]) -> Option<Finding> {
    let vain: Vec<_> = EMBEDDED_ONLY
        .iter()
        .filter(|name| set.contains(name))
        .map(|it| format!("`{it}`"))
        .collect();
    (!vain.is_empty()).then(|| {
        Finding::warning(
            SETTINGS,
            format!("{} set in vain: nothing reads it with the backend on AWS", vain.join(", ")),
            "leave it out; on AWS signing secrets are in Secrets Manager, see docs/secrets.md",
        )
    })
}

#[cfg(test)]
mod tests;
