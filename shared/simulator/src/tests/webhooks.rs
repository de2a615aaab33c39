//! Webhook subscriptions.

use serde_json::{Value, json};

use super::Stage;
use crate::WEBHOOKS_MAX;

#[test]
fn a_secret_is_shown_at_creation_and_rotation_alone() {
    let mut stage = Stage::calm();
    let created = stage.webhook("extract_completed");
    let secret = created["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"));
    let target = format!("/v1/webhooks/{}", created["id"].as_str().unwrap());
    let mut expected = created.clone();
    expected.as_object_mut().unwrap().remove("secret");
    assert_eq!(stage.read(&target), expected);
    assert_eq!(stage.read("/v1/webhooks")["items"], json!([expected]));
    let rotated = stage.call("POST", &format!("{target}/rotate-secret"), b"");
    assert_eq!(rotated.status, 200);
    let rotated = rotated.body.unwrap();
    assert_eq!(rotated.as_object().unwrap().len(), 1);
    assert_ne!(rotated["secret"], secret);
    assert!(!format!("{:?}", stage.platform).contains(&secret));
}

#[test]
fn an_update_changes_what_it_names_and_nothing_else() {
    let mut stage = Stage::calm();
    let id = stage.webhook("extract_completed")["id"].as_str().unwrap().to_owned();
    let target = format!("/v1/webhooks/{id}");
    stage.pass(5);
    for (change, name) in [
        (json!({ "url": "https://b.example/hook" }), "url"),
        (json!({ "description": "new" }), "description"),
        (json!({ "is_active": false }), "is_active"),
        (json!({ "event_type": "crawl_completed" }), "event_type"),
        (json!({ "url": null, "event_type": null, "is_active": null }), ""),
    ] {
        let before = stage.read(&target);
        let answer = stage.call("PATCH", &target, change.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        let mut expected = before;
        if !name.is_empty() {
            expected[name] = change[name].clone();
        }
        expected["updated_at"] = json!(stage.now);
        assert_eq!(answer.body.unwrap(), expected);
    }
    for wrong in [json!({ "url": "nope" }), json!({ "event_type": "x" }), json!({ "is_active": 1 })]
    {
        assert_eq!(stage.call("PATCH", &target, wrong.to_string().as_bytes()).status, 422);
    }
}

#[test]
fn an_account_has_at_most_ten_webhooks() {
    let mut stage = Stage::calm();
    let first = stage.webhook("extract_completed");
    for _ in 1..WEBHOOKS_MAX {
        stage.webhook("extract_completed");
    }
    let body = json!({ "url": "http://127.0.0.1:9/hook", "event_type": "batch_completed" });
    assert_eq!(stage.post("/v1/webhooks", &body).status, 422);
    let target = format!("/v1/webhooks/{}", first["id"].as_str().unwrap());
    let deleted = stage.call("DELETE", &target, b"");
    assert_eq!((deleted.status, deleted.body), (204, None));
    assert_eq!(stage.get(&target).status, 404);
    assert_eq!(stage.post("/v1/webhooks", &body).status, 201);
}

#[test]
fn the_list_is_paged() {
    let mut stage = Stage::calm();
    for _ in 0..7 {
        stage.webhook("extract_completed");
    }
    let pages: Vec<usize> = (1..=4)
        .map(|page| {
            let list = stage.read(&format!("/v1/webhooks?page={page}&page_size=3"));
            assert_eq!(list["page_count"], 3);
            list["items"].as_array().map_or(0, Vec::len)
        })
        .collect();
    assert_eq!(pages, [3, 3, 1, 0]);
    assert_eq!(stage.get("/v1/webhooks?page_size=101").status, 422);
    assert_eq!(stage.read("/v1/webhooks")["page_size"], Value::from(100));
}
