//! That a function did what it was to do, and nothing else.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::aws::Seen;

/// Checks that the secret was read, and that one row and one message came for each of these jobs;
/// without jobs, that nothing was asked.
pub(super) fn check(seen: &[Seen], jobs: &[String]) -> Result<()> {
    let (mut reads, mut rows, mut messages) = (0, Vec::new(), Vec::new());
    for (target, body) in seen {
        let body: Value = serde_json::from_slice(body)?;
        match target.as_str() {
            "secretsmanager.GetSecretValue" => reads += 1,
            "DynamoDB_20120810.PutItem" => rows.push(row(&body).context("no row of a job")?),
            "AmazonSQS.SendMessage" => messages.push(message(&body).context("no task of a job")?),
            // To open a connection.
            "DynamoDB_20120810.GetItem" | "AmazonSQS.GetQueueAttributes" if !jobs.is_empty() => {}
            other => bail!("nobody asks for {other}"),
        }
    }
    ensure!((reads > 0) != jobs.is_empty(), "the secret was read {reads} times");
    let wanted: BTreeSet<_> = jobs.iter().map(String::as_str).collect();
    for (what, found) in [("rows", rows), ("messages", messages)] {
        let ids: BTreeSet<_> = found.iter().map(String::as_str).collect();
        ensure!(
            ids == wanted && found.len() == jobs.len(),
            "{} deliveries were accepted, and there are {} {what} of {} jobs",
            jobs.len(),
            found.len(),
            ids.len()
        );
    }
    Ok(())
}

/// The job of a row that is written only where none is.
fn row(body: &Value) -> Option<String> {
    let condition = body.get("ConditionExpression")?.as_str()?;
    let key = body.pointer("/Item/pk/S")?.as_str()?.strip_prefix("job#")?;
    condition.starts_with("attribute_not_exists").then(|| key.to_owned())
}

/// The job of a task.
fn message(body: &Value) -> Option<String> {
    let task: Value = serde_json::from_str(body.get("MessageBody")?.as_str()?).ok()?;
    Some(task.get("job_id")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(target: &str, body: &str) -> Seen {
        (target.to_owned(), body.to_owned().into())
    }

    fn all() -> Vec<Seen> {
        let row =
            r#"{"Item":{"pk":{"S":"job#a"}},"ConditionExpression":"attribute_not_exists(pk)"}"#;
        vec![
            seen("secretsmanager.GetSecretValue", "{}"),
            seen("DynamoDB_20120810.PutItem", row),
            seen("AmazonSQS.SendMessage", r#"{"MessageBody":"{\"job_id\":\"a\"}"}"#),
        ]
    }

    #[test]
    fn who_does_nothing_or_too_much_does_not_count() {
        let jobs = ["a".to_owned()];
        check(&all(), &jobs).unwrap();
        check(&[], &[]).unwrap();
        for left in 0..3 {
            let mut some = all();
            some.remove(left);
            assert!(check(&some, &jobs).is_err(), "without {left}");
        }
        for twice in 1..3 {
            let mut more = all();
            more.push(more[twice].clone());
            assert!(check(&more, &jobs).is_err(), "{twice} twice");
        }
        assert!(check(&all(), &["b".to_owned()]).is_err());
        assert!(check(&all(), &[]).is_err());
        let put = seen("DynamoDB_20120810.PutItem", r#"{"Item":{"pk":{"S":"job#a"}}}"#);
        let unconditional = [all()[0].clone(), put, all()[2].clone()];
        assert!(check(&unconditional, &jobs).is_err());
    }
}
