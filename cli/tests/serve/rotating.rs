//! `gleaner webhooks ensure` and `gleaner rotate` against the simulated platform.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use domain::signature::secret::Stage;
use embedded::secrets::{SecretsFile, StoredSecret};
use serde_json::Value;
use simulator::{Config, Running, SystemClock};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;

use super::process::{command, run};

const URL: &str = "http://127.0.0.1:9/webhook";
const EXTRACT: [&str; 5] = ["webhooks", "ensure", "--json", "--url", URL];

struct Account {
    dir: TempDir,
    platform: Running,
}

impl Account {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let platform =
            simulator::start(listener, Config::default(), Arc::new(SystemClock)).unwrap();
        Self { dir: TempDir::new().unwrap(), platform }
    }

    fn command(&self, args: &[&str]) -> tokio::process::Command {
        let mut command = command(self.dir.path(), args);
        command
            .env("GLEANER_API_URL", self.platform.base_url())
            .env("GLEANER_API_KEY", Config::default().api_key)
            .env("GLEANER_LIMITS_SECRET_COOLDOWN", "200ms");
        command
    }

    /// Runs the program to its good end; its rows.
    async fn rows(&self, args: &[&str]) -> Vec<Value> {
        let (code, out, talk) = run(self.command(args)).await;
        assert_eq!(code, 0, "{args:?}: {talk}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("gleaner-data/secrets.json")
    }

    fn stored(&self) -> Vec<StoredSecret> {
        SecretsFile::new(&self.file()).list().unwrap()
    }

    /// The webhook and the text of the secret in a stage.
    fn kept(&self, stage: Stage) -> Option<(String, String)> {
        let stored = self.stored();
        let found = stored.iter().find(|stored| stored.secret.stage() == stage)?;
        let secret = &found.secret;
        Some((secret.webhook_id()?.to_owned(), secret.expose().to_owned()))
    }

    /// The platform's webhooks: id and whether they deliver.
    async fn there_are(&self) -> Vec<(String, bool)> {
        let rows = self.rows(&["webhooks", "list", "--json"]).await;
        let told = |row: &Value| {
            (row["id"].as_str().unwrap().to_owned(), row["active"].as_bool().unwrap())
        };
        rows.iter().map(told).collect()
    }
}

fn told<'a>(rows: &'a [Value], field: &str) -> Vec<&'a str> {
    rows.iter().map(|row| row[field].as_str().unwrap_or("-")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ensuring_makes_what_is_missing_and_mends_what_is_wrong() {
    let account = Account::new().await;
    let dry = [&EXTRACT[..], &["--dry-run"]].concat();
    let planned = account.rows(&dry).await;
    assert_eq!(told(&planned, "action"), ["create"; 3]);
    assert_eq!(told(&planned, "type"), ["webhook_plan"; 3]);
    assert!(account.there_are().await.is_empty() && !account.file().exists());

    let made = account.rows(&EXTRACT).await;
    assert_eq!(told(&made, "outcome"), ["created"; 3]);
    let before = std::fs::read(account.file()).unwrap();
    let again = account.rows(&EXTRACT).await;
    assert_eq!(told(&again, "outcome"), ["kept"; 3]);
    assert_eq!(told(&again, "id"), told(&made, "id"));
    assert_eq!(std::fs::read(account.file()).unwrap(), before);

    let ids = told(&made, "id");
    let other = "http://127.0.0.1:9/other";
    account.rows(&["webhooks", "update", ids[0], "--json", "--active", "false"]).await;
    account.rows(&["webhooks", "update", ids[1], "--json", "--url", other]).await;
    account.rows(&["webhooks", "delete", "--json", ids[2]]).await;
    let planned = account.rows(&dry).await;
    assert_eq!(told(&planned, "action"), ["update", "update", "create"]);
    assert_eq!(planned[0]["changes"], serde_json::json!(["active"]));
    assert_eq!(planned[1]["changes"], serde_json::json!(["url"]));
    let mended = account.rows(&EXTRACT).await;
    assert_eq!(told(&mended, "outcome"), ["updated", "updated", "created"]);
    assert_eq!(told(&mended, "url"), [URL; 3]);
    assert_eq!(told(&account.rows(&EXTRACT).await, "outcome"), ["kept"; 3]);
    assert!(account.stored().iter().all(|stored| stored.url.as_deref() == Some(URL)));
    account.platform.stop.stop().await;
}

/// A webhook whose secret is elsewhere is told of and left as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_webhook_is_left_as_it_is() {
    let account = Account::new().await;
    let elsewhere = TempDir::new().unwrap();
    let mut stranger = account.command(&[&EXTRACT[..], &["--event", "batch"]].concat());
    stranger.current_dir(elsewhere.path());
    assert_eq!(run(stranger).await.0, 0);
    let (code, out, talk) = run(account.command(&EXTRACT)).await;
    assert_eq!(code, 0, "{talk}");
    assert_eq!(out.lines().count(), 3);
    assert!(talk.contains("with a secret that is not here"), "{talk}");
    assert_eq!(account.there_are().await.len(), 4);
    account.platform.stop.stop().await;
}

/// SM-07: the new webhook is in force and the old one's secret is accepted for its grace; what a
/// rotation left is no business of `ensure`.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_puts_a_new_webhook_in_the_place_of_the_old_one() {
    let account = Account::new().await;
    account.rows(&[&EXTRACT[..], &["--event", "extract"]].concat()).await;
    let (old, old_secret) = account.kept(Stage::Current).unwrap();
    let rotated = account.rows(&["rotate", "--json"]).await;
    assert_eq!(told(&rotated, "outcome"), ["rotated"]);
    assert_eq!(told(&rotated, "webhook_id"), [old.as_str()]);
    assert_eq!(told(&rotated, "event"), ["extract_completed"]);
    let (new, new_secret) = account.kept(Stage::Current).unwrap();
    assert_eq!(told(&rotated, "successor_id"), [new.as_str()]);
    assert_eq!(account.kept(Stage::Previous), Some((old.clone(), old_secret.clone())));
    assert!(account.kept(Stage::Pending).is_none());
    let mut webhooks = account.there_are().await;
    webhooks.sort_by_key(|(_, is_active)| *is_active);
    assert_eq!(webhooks, [(old, false), (new.clone(), true)]);
    let text = serde_json::to_string(&rotated).unwrap();
    assert!(!text.contains(&new_secret) && !text.contains(&old_secret));

    let ensured = account.rows(&[&EXTRACT[..], &["--event", "extract"]].concat()).await;
    assert_eq!((told(&ensured, "outcome"), told(&ensured, "id")), (vec!["kept"], vec![&*new]));
    let again = account.rows(&["rotate", "--json", "--event", "extract"]).await;
    assert_eq!(told(&again, "webhook_id"), [new.as_str()]);
    assert_eq!(account.kept(Stage::Previous).unwrap().0, new);
    account.platform.stop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_place_the_webhook_stays() {
    let account = Account::new().await;
    account.rows(&EXTRACT).await;
    let before = account.stored();
    let args = ["rotate", "--json", "--event", "crawl", "--strategy", "in-place"];
    let rotated = account.rows(&args).await;
    assert_eq!(told(&rotated, "event"), ["crawl_completed"]);
    assert_eq!(told(&rotated, "webhook_id"), told(&rotated, "successor_id"));
    assert_eq!(account.there_are().await.len(), 3);
    // SM-08: the others' secrets are as they were.
    for stored in &before {
        let is_rotated = stored.secret.webhook_id() == rotated[0]["webhook_id"].as_str();
        let now = account.stored();
        let is_current = now.iter().any(|now| {
            now.secret.stage() == Stage::Current && now.secret.same_text(&stored.secret)
        });
        assert_eq!(is_current, !is_rotated);
    }
    account.platform.stop.stop().await;
}

/// SM-10: of two people who rotate at once, one is refused, and one webhook is left that delivers.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_rotate_at_once_one_is_refused() {
    let account = Account::new().await;
    account.rows(&[&EXTRACT[..], &["--event", "extract"]].concat()).await;
    let mut commands = [account.command(&["rotate"]), account.command(&["rotate"])];
    for command in &mut commands {
        command.env("GLEANER_LIMITS_SECRET_COOLDOWN", "3s");
    }
    let [one, other] = commands.map(run);
    let (one, other) = tokio::join!(one, other);
    let mut codes = [one.0, other.0];
    codes.sort_unstable();
    assert_eq!(codes, [0, 75], "{} {}", one.2, other.2);
    let refused = if one.0 == 75 { one.2 } else { other.2 };
    assert!(refused.contains("another rotation is at work on"), "{refused}");
    assert!(
        refused.contains(": process ") && refused.contains("five minutes at most"),
        "{refused}"
    );
    let webhooks = account.there_are().await;
    let active: Vec<_> = webhooks.iter().filter(|(_, is_active)| *is_active).collect();
    let [(active, _)] = active.as_slice() else { panic!("{webhooks:?}") };
    assert_eq!(account.kept(Stage::Current).unwrap().0, *active);
    account.platform.stop.stop().await;
}

/// A rotation that was killed is gone on with at once, and leaves no webhook behind whose deliveries
/// would be refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_rotation_is_gone_on_with_at_once() {
    let account = Account::new().await;
    account.rows(&[&EXTRACT[..], &["--event", "extract"]].concat()).await;
    let (old, _) = account.kept(Stage::Current).unwrap();
    // Killed while it waits for the receivers.
    let mut killed = account.command(&["rotate"]);
    killed.env("GLEANER_LIMITS_SECRET_COOLDOWN", "60s").stderr(Stdio::piped());
    let mut child = killed.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("is registered") {
            break;
        }
    }
    child.kill().await.unwrap();
    let (pending, _) = account.kept(Stage::Pending).unwrap();
    account.rows(&["rotate", "--json"]).await;
    let (current, _) = account.kept(Stage::Current).unwrap();
    assert_eq!(current, pending);
    let mut wanted = vec![(current, true), (old, false)];
    wanted.sort();
    let mut there = account.there_are().await;
    there.sort();
    assert_eq!(there, wanted);
    account.platform.stop.stop().await;
}

/// An account that has ten webhooks is told of the other strategy.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_without_room_is_told_what_to_do() {
    let account = Account::new().await;
    for number in 0..10 {
        let url = format!("http://127.0.0.1:9/{number}");
        account.rows(&["webhooks", "create", "--json", "--url", &url, "--event", "batch"]).await;
    }
    let (code, out, talk) = run(account.command(&["rotate"])).await;
    assert_eq!((code, out.as_str()), (78, ""), "{talk}");
    assert!(talk.contains("batch_completed: the platform refuses a second webhook"), "{talk}");
    assert!(talk.contains("hint: `gleaner rotate --strategy in-place`"), "{talk}");
    assert_eq!(account.there_are().await.len(), 10);
    let in_place = account.rows(&["rotate", "--json", "--strategy", "in-place"]).await;
    assert_eq!(told(&in_place, "outcome"), ["rotated"; 10]);
    account.platform.stop.stop().await;
}

/// What was rotated is not rotated again by who follows the advice.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_is_told_apart_from_what_is_done() {
    let account = Account::new().await;
    account.rows(&EXTRACT).await;
    let elsewhere = TempDir::new().unwrap();
    for number in 0..6 {
        let url = format!("http://127.0.0.1:9/{number}");
        let args = ["webhooks", "create", "--url", &url, "--event", "batch"];
        let mut stranger = account.command(&args);
        stranger.current_dir(elsewhere.path());
        assert_eq!(run(stranger).await.0, 0);
    }
    let (code, out, talk) = run(account.command(&["rotate", "--json"])).await;
    assert_eq!((code, out.lines().count()), (78, 1), "{talk}");
    let done: Value = serde_json::from_str(&out).unwrap();
    let done = done["event"].as_str().unwrap().strip_suffix("_completed").unwrap();
    let left: Vec<_> = ["batch", "crawl", "extract"].into_iter().filter(|it| *it != done).collect();
    let advice = format!("`gleaner rotate --event {} --event {}`", left[0], left[1]);
    assert!(talk.contains(&advice), "{advice}: {talk}");
    for kind in left {
        assert!(talk.contains(&format!("{kind}_completed: the platform refuses")), "{talk}");
    }
    account.platform.stop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_may_be_nothing_to_rotate() {
    let account = Account::new().await;
    let (code, _, talk) = run(account.command(&["rotate"])).await;
    assert_eq!(code, 4, "{talk}");
    assert!(talk.contains("hint: make one with `gleaner webhooks ensure`"), "{talk}");
    let (code, _, talk) = run(account.command(&["rotate", "--strategy", "at-once"])).await;
    assert_eq!(code, 64, "{talk}");
    account.platform.stop.stop().await;
}
