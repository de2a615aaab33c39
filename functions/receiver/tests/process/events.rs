//! Events that are none: each is one failed invocation, and the process takes the next one.

use serde_json::{Value, json};
use testkit::lambda::Outcome;

use super::site::{Site, delivery, documents, http_api};

/// What the function says of an event that it cannot take.
fn failure(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed(why) => {
            let why: Value = serde_json::from_slice(&why).unwrap();
            why["errorMessage"].as_str().unwrap().to_owned()
        }
        Outcome::Answered(answer) => panic!("answered: {answer:?}"),
    }
}

/// FD-02, FD-06: whatever arrives, one invocation fails, nothing is written, and a good delivery
/// that comes next to the same process is accepted.
#[test]
fn an_event_that_is_none_costs_one_invocation() {
    testkit::run(async {
        let site = Site::new().await;
        let mut process = site.start();
        let no_base64 = |text| http_api(&json!({ "x-webhook-signature": "0" }), text, true);
        let scheduled = json!({
            "version": "0",
            "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": "123456789012",
            "time": "2026-11-30T12:00:00Z",
            "region": "eu-central-1",
            "resources": ["arn:aws:events:eu-central-1:123456789012:rule/warm"],
            "detail": {},
        });
        let bad = [
            (no_base64("!!!not base64"), "panicked"),
            (no_base64("eyJhIjoxfQ"), "panicked"),
            (json!({}), "the receiver expects"),
            (json!({ "Records": [] }), "the receiver expects"),
            (scheduled, "the receiver expects"),
        ];
        for (number, (event, why)) in bad.iter().enumerate() {
            let said = failure(site.invoke(event).await);
            assert!(said.contains(why), "{event}: {said}");
            assert_eq!((site.table.keys().len(), site.sent().len()), (number, number), "{event}");
            let job = format!("job-{number}");
            assert_eq!(site.status(&delivery(&job)).await, 202, "after {event}");
            assert_eq!(site.sent().last(), Some(&job));
            assert!(site.table.keys().contains(&format!("job#{job}")));
        }
        // A delivery that comes again is accepted, and nothing is written or sent.
        assert_eq!(site.status(&delivery("job-0")).await, 202);
        assert_eq!(site.status(&http_api(&json!({}), "{}", false)).await, 401);
        assert_eq!((site.table.keys().len(), site.sent().len()), (bad.len(), bad.len()));
        assert!(process.is_alive());
        let written = process.end();
        // One document for each invocation that was answered, and the start is in the first.
        let documents = documents(&written);
        let of = |name: &str| documents.iter().filter_map(|it| it[name].as_u64()).sum::<u64>();
        assert_eq!(documents.len(), bad.len() + 2, "{written:?}");
        assert_eq!(documents[0]["starts"], 1);
        assert_eq!((of("starts"), of("deliveries_accepted")), (1, 5));
        assert_eq!((of("deliveries_repeated"), of("deliveries_rejected")), (1, 1));
        assert!(documents.iter().all(|document| document["stack"] == "gleaner-test"));
    });
}
