//! `gleaner webhooks` with answers of every kind.

use serde_json::json;
use simulator::Config;

use crate::bench::Folder;
use crate::disk::{assert_kept, holders, mode};
use crate::markers::{KEY, OLD_SECRET, QUERY, SECRET};
use crate::scripted::{Reply, Scripted};
use crate::watched::{Account, expect, run};

const ID: &str = "11111111-2222-4333-8444-555555555555";
const URL: &str = "https://hooks.example.org/webhook";

/// A platform with one webhook that gives this secret and answers later calls so.
async fn platform(secret: serde_json::Value, later: (u16, String)) -> Scripted {
    Scripted::start(move |_, line| {
        let (method, _) = line.split_once(' ').unwrap();
        let hook = json!({
            "id": ID, "url": URL, "event_type": "extract_completed", "is_active": true,
            "description": "gleaner", "created_at": "2026-11-30T00:00:00Z",
        });
        let mut created = hook.clone();
        created["secret"] = secret.clone();
        match method {
            "post" => Reply::Answer(201, "", created.to_string()),
            "get" => {
                let list = json!({"items": [], "page": 1, "page_size": 100, "page_count": 0});
                Reply::Answer(200, "", list.to_string())
            }
            _ => Reply::Answer(later.0, "", later.1.clone()),
        }
    })
    .await
}

fn create() -> [&'static str; 6] {
    ["webhooks", "create", "--url", URL, "--event", "extract"]
}

/// OB-01: a secret is printed only when it was asked for, and kept in one file.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_a_new_secret_goes_to_its_file_alone() {
    let refusal = (400, format!(r#"{{"code":"NO","message":"{KEY}"}}"#));
    let platform = platform(json!(SECRET), refusal).await;
    let folder = Folder::new(&platform.url);
    let ran = run(&folder, &create(), &[]).await;
    assert_eq!(ran[0].code, 0, "{ran:?}");
    assert_kept(folder.path(), &[SECRET, KEY]);
    for args in [
        &["webhooks", "list"][..],
        &["webhooks", "update", ID, "--active", "false"],
        &["webhooks", "delete", ID],
        &["settings"],
    ] {
        run(&folder, args, &[]).await;
    }
    let other = Folder::new(&platform.url);
    let args = [&create()[..], &["--show-secret"]].concat();
    let shown = run(&other, &args, &[SECRET]).await;
    assert!(shown[0].out.contains(SECRET), "it was asked for: {shown:?}");
    assert_kept(other.path(), &[SECRET, KEY]);
}

/// OB-01: a platform that repeats a secret of ours in its refusal.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_refusals_that_repeat_a_secret_are_told_without_it() {
    for body in [
        format!(r#"{{"code":"{SECRET}","message":"{SECRET} and {KEY}"}}"#),
        format!(
            r#"{{"detail":[{{"loc":["body","{SECRET}"],"msg":"{SECRET}","input":"{SECRET}"}}]}}"#
        ),
        format!(r#"{{"detail":"{SECRET}","secret":"{SECRET}"}}"#),
    ] {
        for status in [400, 401, 403, 404, 422] {
            let platform = platform(json!(SECRET), (status, body.clone())).await;
            let folder = Folder::new(&platform.url);
            run(&folder, &create(), &[]).await;
            for args in
                [&["webhooks", "update", ID, "--active", "false"][..], &["webhooks", "delete", ID]]
            {
                run(&folder, args, &[]).await;
            }
        }
    }
}

/// OB-01: secrets that cannot be used or kept, and answers that make no sense.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_a_secret_that_cannot_be_kept_is_not_shown() {
    let ok = (204, String::new());
    for secret in [
        json!([SECRET]),
        json!({ SECRET: SECRET }),
        json!(format!("{SECRET}\n{SECRET}")),
        json!(format!("{SECRET}\u{0}")),
        json!(SECRET.repeat(400)),
    ] {
        let platform = platform(secret, ok.clone()).await;
        let folder = Folder::new(&platform.url);
        run(&folder, &create(), &[]).await;
    }
    for later in [ok, (400, format!(r#"{{"message":"{KEY}"}}"#))] {
        let platform = platform(json!(SECRET), later).await;
        let folder = Folder::new(&platform.url);
        let args = [&create()[..], &["--show-secret", "--set", "secrets_file=none/own.json"]];
        expect(&folder, &args.concat(), &[], 71).await;
        assert_eq!(holders(folder.path(), &[SECRET, KEY]), Vec::<String>::new());
    }
}

/// OB-01: the whole life of webhooks on the simulated platform, and with a key that it refuses.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_a_webhooks_life_is_silent() {
    let account = Account::new(Config::default()).await;
    let folder = &account.folder;
    let hooked = format!("http://127.0.0.1:9/webhook?token={QUERY}");
    // The rows tell where deliveries go.
    let created = expect(folder, &["webhooks", "create", "--url", &hooked], &[QUERY], 0).await;
    let listed = expect(folder, &["webhooks", "list"], &[QUERY], 0).await;
    let file = folder.path().join("gleaner-data/secrets.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let secrets: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = secrets["secrets"].as_array().unwrap();
    let own: Vec<&str> = rows.iter().map(|row| row["secret"].as_str().unwrap()).collect();
    assert_eq!(own.len(), 3);
    for ran in created.iter().chain(&listed) {
        let all = format!("{}{}", ran.out, ran.err);
        assert!(!own.iter().any(|secret| all.contains(secret)), "{all}");
    }
    assert_kept(folder.path(), &[&own[..], &[KEY]].concat());
    let id = rows[0]["webhook_id"].as_str().unwrap();
    let moved = ["webhooks", "update", id, "--url", "http://127.0.0.1:9/other"];
    expect(folder, &moved, &[], 0).await;
    assert_kept(folder.path(), &[&own[..], &[KEY]].concat());
    expect(folder, &["webhooks", "delete", id], &[], 0).await;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(holders(folder.path(), &own[..1]), Vec::<String>::new(), "it is gone everywhere");
    let wrong = [("GLEANER_API_KEY", OLD_SECRET)];
    let ran = crate::watched::run_with(folder, &wrong, &["webhooks", "list"], &[]).await;
    assert!(ran.iter().all(|ran| ran.code == 77), "{ran:?}");
    account.platform.stop.stop().await;
}
