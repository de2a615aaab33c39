//! What a run of `gleaner doctor` found.

use serde_json::Value;
use tokio::process::Command;

use crate::bench::{Ran, ended};

/// A run, read.
pub(crate) struct Diagnosis {
    pub(crate) ran: Ran,
    findings: Vec<Value>,
}

/// Runs it and reads what it found.
pub(crate) async fn diagnose(mut command: Command) -> Diagnosis {
    let ran = ended(command.spawn().unwrap()).await;
    assert!(!ran.err.contains("panicked"), "{ran:#?}");
    let findings = ran.of_type("check");
    let counted = &ran.of_type("doctor")[0];
    for (name, outcome) in
        [("ok", "ok"), ("warnings", "warning"), ("failed", "failed"), ("skipped", "skipped")]
    {
        let count = findings.iter().filter(|finding| finding["outcome"] == outcome).count();
        assert_eq!(counted[name], count, "{ran:#?}");
    }
    // The exit code says whether something failed.
    assert_eq!(ran.code, i32::from(counted["failed"] != 0), "{ran:#?}");
    // Whatever is wrong is told with what to do about it.
    for finding in &findings {
        let is_wrong = finding["outcome"] == "failed" || finding["outcome"] == "warning";
        assert!(!is_wrong || finding["advice"].is_string(), "{finding}");
    }
    Diagnosis { ran, findings }
}

impl Diagnosis {
    /// The findings of a check, as `outcome: what was found`.
    pub(crate) fn of(&self, check: &str) -> Vec<String> {
        let of_check = self.findings.iter().filter(|finding| finding["check"] == check);
        let told = |finding: &Value| {
            let text = |name: &str| finding[name].as_str().unwrap().to_owned();
            format!("{}: {}", text("outcome"), text("found"))
        };
        of_check.map(told).collect()
    }

    /// Requires that a check found this, among other things.
    #[track_caller]
    pub(crate) fn expect(&self, check: &str, outcome: &str, found: &str) -> &Self {
        let findings = self.of(check);
        let is_it = |finding: &&String| {
            finding.starts_with(&format!("{outcome}: ")) && finding.contains(found)
        };
        assert!(findings.iter().any(|finding| is_it(&finding)), "{check}: {findings:#?}");
        self
    }

    /// All that is not in order.
    pub(crate) fn complaints(&self) -> Vec<&Value> {
        let is_wrong =
            |finding: &&Value| finding["outcome"] == "failed" || finding["outcome"] == "warning";
        self.findings.iter().filter(is_wrong).collect()
    }
}
