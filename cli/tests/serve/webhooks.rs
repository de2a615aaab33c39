//! `gleaner webhooks` against the simulated platform.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use embedded::secrets::{SecretsFile, StoredSecret};
use serde_json::Value;
use simulator::{Config, Running, SystemClock};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::http::{NAME, Request, V1, signature};
use super::process::{Process, command, run};

const URL: &str = "http://127.0.0.1:9/webhook";
/// The id of no webhook.
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

struct Account {
    dir: TempDir,
    platform: Running,
}

impl Account {
    async fn new(config: Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let platform = simulator::start(listener, config, Arc::new(SystemClock)).unwrap();
        Self { dir: TempDir::new().unwrap(), platform }
    }

    fn command(&self, args: &[&str]) -> tokio::process::Command {
        let mut command = command(self.dir.path(), args);
        command
            .env("GLEANER_API_URL", self.platform.base_url())
            .env("GLEANER_API_KEY", Config::default().api_key)
            .env("GLEANER_LIMITS_CALL_TIMEOUT", "1s")
            .env("GLEANER_API_CONNECT_TIMEOUT", "1s");
        command
    }

    /// Runs `gleaner webhooks` and returns its rows.
    async fn webhooks(&self, args: &[&str]) -> Vec<Value> {
        let (code, out, talk) = run(self.command(&[&["webhooks", "--json"], args].concat())).await;
        assert_eq!(code, 0, "{args:?}: {talk}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn secrets(&self) -> Vec<(String, String)> {
        let file = self.dir.path().join("gleaner-data/secrets.json");
        let stored = SecretsFile::new(&file).list().unwrap();
        let pair = |stored: &StoredSecret| {
            let id = stored.secret.webhook_id().unwrap().to_owned();
            (id, stored.secret.expose().to_owned())
        };
        stored.iter().map(pair).collect()
    }
}

fn ids(rows: &[Value]) -> Vec<String> {
    let mut ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_live_from_create_to_delete() {
    let account = Account::new(Config::default()).await;
    let created = account.webhooks(&["create", "--url", URL]).await;
    let events: Vec<_> = created.iter().map(|row| row["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["extract_completed", "batch_completed", "crawl_completed"]);
    assert!(created.iter().all(|row| row["outcome"] == "created" && row.get("secret").is_none()));
    let secrets = account.secrets();
    assert_eq!(secrets.len(), 3);
    let text = serde_json::to_string(&created).unwrap();
    assert!(!secrets.iter().any(|(_, secret)| text.contains(secret)), "no secret is printed");
    assert_eq!(mode(&account.dir.path().join("gleaner-data/secrets.json")), 0o600);
    assert_eq!(mode(&account.dir.path().join("gleaner-data")), 0o700);

    // A second time they are there.
    let kept = account.webhooks(&["create", "--url", URL]).await;
    assert!(kept.iter().all(|row| row["outcome"] == "kept"), "{kept:?}");
    assert_eq!(ids(&kept), ids(&created));

    let listed = account.webhooks(&["list"]).await;
    assert_eq!(ids(&listed), ids(&created));
    assert!(listed.iter().all(|row| row["secret_known"] == true && row["active"] == true));
    assert!(listed.iter().all(|row| row["version"] == 1 && row["type"] == "webhook"));

    let id = created[0]["id"].as_str().unwrap();
    let changes = ["update", id, "--active", "false", "--description", "paused", "--url"];
    let other = "http://127.0.0.1:9/other";
    let updated = account.webhooks(&[&changes[..], &[other]].concat()).await;
    assert_eq!(updated[0]["active"], false);
    assert_eq!((&updated[0]["url"], &updated[0]["description"]), (&other.into(), &"paused".into()));
    let mut after = account.secrets();
    let mut before = secrets;
    after.sort();
    before.sort();
    assert_eq!(after, before, "an update is no rotation");

    let all = ids(&created);
    let args: Vec<_> = ["delete"].into_iter().chain(all.iter().map(String::as_str)).collect();
    let deleted = account.webhooks(&args).await;
    assert!(deleted.iter().all(|row| row["outcome"] == "deleted" && row["secret_known"] == true));
    assert!(account.secrets().is_empty());
    assert!(account.webhooks(&["list"]).await.is_empty());
    // Deleting what is gone is no error.
    let again = account.webhooks(&args).await;
    assert!(again.iter().all(|row| row["secret_known"] == false));
    account.platform.stop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_shown_only_when_asked_for() {
    let account = Account::new(Config::default()).await;
    let args = ["create", "--url", URL, "--event", "batch", "--show-secret"];
    let created = account.webhooks(&args).await;
    assert_eq!(created.len(), 1);
    let secrets = account.secrets();
    assert_eq!(created[0]["secret"].as_str(), Some(secrets[0].1.as_str()));
    account.platform.stop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_accepts_a_webhook_that_is_made_meanwhile() {
    let account = Account::new(Config::default()).await;
    account.webhooks(&["create", "--url", URL, "--event", "batch"]).await;
    let mut serve = account.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    serve.env("GLEANER_LIMITS_SECRET_COOLDOWN", "100ms");
    let server = Process::start(serve).await;
    assert_eq!(server.started["webhooks"].as_array().unwrap().len(), 1);
    assert_eq!(server.started["webhooks"][0]["event"], "batch_completed");
    account.webhooks(&["create", "--url", URL, "--event", "extract"]).await;
    let (_, secret) = account.secrets().pop().unwrap();
    let request = Request::unsigned(V1).header(NAME, signature(V1, &secret));
    // At most one look per cool-down: a delivery that comes too early is repeated.
    let repeated = async {
        while request.send(server.addr()).await != 202 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), repeated).await.unwrap();
    assert_eq!(server.terminate().await.0, 0);
    account.platform.stop.stop().await;
}

/// Answers to creations are lost, and no webhook is left whose secret is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_leave_no_webhook_without_a_secret() {
    let config = Config {
        seed: 7,
        hang_max_secs: 1.0,
        faults: simulator::Faults::harsh(),
        ..Config::default()
    };
    let account = Account::new(config).await;
    let created = account.webhooks(&["create", "--url", URL]).await;
    assert_eq!(created.len(), 3);
    let mut known: Vec<_> = account.secrets().into_iter().map(|(id, _)| id).collect();
    known.sort();
    assert_eq!(known, ids(&created));
    assert_eq!(ids(&account.webhooks(&["list"]).await), known);
    account.platform.stop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_whose_secret_cannot_be_kept_is_deleted_again() {
    let account = Account::new(Config::default()).await;
    // Secrets that leave no room for one more, although there are fewer than may be.
    let file = SecretsFile::new(&account.dir.path().join("full.json"));
    let mut number = 0;
    for length in [4_096, 512, 64, 1] {
        let text = "s".repeat(length);
        while file.add(stored(&text, number)).is_ok() {
            number += 1;
        }
    }
    let before = file.list().unwrap().len();
    assert!(before < domain::signature::SECRETS_MAX, "{before}");
    let args = ["webhooks", "create", "--url", URL, "--event", "batch"];
    let args = [&args[..], &["--set", "secrets_file=full.json"]].concat();
    let (code, out, talk) = run(account.command(&args)).await;
    assert_eq!((code, out.as_str()), (78, ""), "{talk}");
    assert!(talk.contains("full.json would hold more than"), "{talk}");
    assert_eq!(file.list().unwrap().len(), before);
    assert!(account.webhooks(&["list"]).await.is_empty());
    account.platform.stop.stop().await;
}

fn stored(text: &str, number: usize) -> StoredSecret {
    let secret = domain::signature::secret::Secret::new(text).unwrap();
    let secret = secret.with_webhook_id(&format!("w{number}")).unwrap();
    StoredSecret::new(secret)
}

/// Whether a secret can be kept is found out before the platform is asked for one.
#[tokio::test(flavor = "multi_thread")]
async fn a_secrets_file_that_cannot_be_written_is_told_before_anything_is_sent() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    // No platform answers here: had it been asked, the code were 69.
    for (setting, text) in [
        ("secrets_file=none/secrets.json", "none/secrets.json cannot be written"),
        ("secrets_file=file/secrets.json", "file/secrets.json cannot be written"),
        ("data_dir=file/data", "cannot make the data folder `file/data`"),
    ] {
        let args = ["webhooks", "create", "--url", URL, "--set", setting];
        let (code, out, talk) = run(command(dir.path(), &args)).await;
        assert_eq!((code, out.as_str()), (71, ""), "{talk}");
        assert!(talk.contains(text), "{talk}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_with_their_code() {
    let account = Account::new(Config::default()).await;
    for (args, code, text) in [
        (&["create"][..], 64, "give --url, or set public_url"),
        (&["create", "--url", "hooks.example.org"], 64, "give an absolute URL"),
        (&["create", "--url", "http://u:p@example.org/"], 64, "without user"),
        (&["create", "--event", "page"], 64, "`extract`, `batch` or `crawl`"),
        (&["update", "w1"], 64, "--active"),
        (&["update", UNKNOWN, "--active", "true"], 4, "check the id"),
        (&["delete"], 64, "ID"),
        (&["delete", "../x"], 64, "<ID>"),
    ] {
        let (ended, out, talk) = run(account.command(&[&["webhooks"], args].concat())).await;
        assert_eq!((ended, out.as_str()), (code, ""), "{args:?}: {talk}");
        assert!(talk.contains(text), "{args:?}: {talk}");
    }
    let mut command = account.command(&["webhooks", "list"]);
    command.env("GLEANER_API_KEY", "another-key");
    let (code, _, talk) = run(command).await;
    assert_eq!(code, 77, "{talk}");
    assert!(!talk.contains("another-key"), "{talk}");
    account.platform.stop.stop().await;
}
