use std::collections::BTreeMap;

use settings::{Sources, resolve};

use super::super::finding::Outcome;
use super::*;

/// The complaints about settings that are given as variables.
fn complaints(variables: &[(&str, &str)]) -> Vec<Finding> {
    let given: BTreeMap<String, String> = variables
        .iter()
        .map(|(name, value)| (format!("GLEANER_{name}"), (*value).to_owned()))
        .collect();
    let read = |name: &str| given.get(name).cloned();
    let sources = Sources {
        flags: Vec::new(),
        environment: &read,
        variables: given.keys().cloned().collect(),
        file: None,
    };
    let mut findings = judge(&resolve(&sources).unwrap());
    findings.retain(|finding| finding.outcome != Outcome::Ok);
    findings
}

const AWS: [(&str, &str); 2] = [("BACKEND", "aws"), ("STACK", "gleaner")];

#[test]
fn what_works_together_raises_no_complaint() {
    assert_eq!(complaints(&[]), []);
    assert_eq!(complaints(&[("PUBLIC_URL", "https://hooks.example.org/webhook")]), []);
    let here = [("API_URL", "http://127.0.0.1:1"), ("PUBLIC_URL", "http://127.0.0.1:2/webhook")];
    assert_eq!(complaints(&here), []);
    assert_eq!(complaints(&AWS), []);
}

#[test]
fn what_cannot_work_together_is_told() {
    for (variables, outcome, said) in [
        (&[("API_URL", "http://api.example.org")][..], Outcome::Warning, "`api_url` is plain http"),
        (
            &[("PUBLIC_URL", "http://hooks.example.org/webhook")],
            Outcome::Warning,
            "`public_url` is plain http",
        ),
        (
            &[("PUBLIC_URL", "http://localhost:8787/webhook")],
            Outcome::Failed,
            "leads the platform to itself",
        ),
        (
            &[("PUBLIC_URL", "https://hooks.example.org/other")],
            Outcome::Warning,
            "the path of `public_url` is /other, and `webhook_path` is /webhook",
        ),
        (&[("WEBHOOK_SECRET_PREVIOUS", "s")], Outcome::Warning, "and `webhook_secret` is not"),
        (
            &[AWS[0], AWS[1], ("WEBHOOK_SECRET", "s")],
            Outcome::Warning,
            "`webhook_secret` set in vain",
        ),
    ] {
        let complaints = complaints(variables);
        let [finding] = complaints.as_slice() else { panic!("{variables:?}: {complaints:?}") };
        assert_eq!(finding.outcome, outcome, "{finding:?}");
        assert!(finding.found.contains(said), "{finding:?}");
        assert!(finding.advice.is_some(), "{finding:?}");
    }
}
