//! What a server tells an operator without being asked for a log.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::ports::Clock as _;
use simulator::{Config, SystemClock};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::http::{NAME, Request, SECRET, V1};
use super::process::{Process, command, run};

/// Pause between two looks at what is being waited for.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

const SERVE: [&str; 4] = ["serve", "--json", "--listen", "127.0.0.1:0"];

fn write(path: &Path, content: &str, mode: u32) {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A wrong secret is told once, with where it is, and the rest at the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_is_told_and_does_not_flood_the_log() {
    let dir = TempDir::new().unwrap();
    write(&dir.path().join("secret"), "another secret", 0o600);
    let mut command = command(dir.path(), &SERVE);
    command.env("GLEANER_SECRETS_FILE", "secret");
    let server = Process::start(command).await;
    for _ in 0..3 {
        assert_eq!(Request::v1().send(server.addr()).await, 401);
    }
    assert_eq!(Request::unsigned(V1).send(server.addr()).await, 401);
    let (code, talk) = server.terminate().await;
    assert_eq!(code, 0, "{talk}");
    let told: Vec<&str> = talk.lines().filter(|line| line.contains("rejected since")).collect();
    assert_eq!(told.len(), 3, "{talk}");
    assert!(told[0].contains("1 delivery rejected since"), "{talk}");
    assert!(told[0].contains("matches none of the secrets in secret; "), "{talk}");
    assert!(told[1].contains("1 delivery rejected") && told[1].contains("(signature_missing)"));
    assert!(told[2].contains("2 deliveries rejected since"), "{talk}");
    assert!(!talk.contains("another secret") && !talk.contains(SECRET), "{talk}");
}

/// Log lines are for people: no words of Rust's own.
#[tokio::test(flavor = "multi_thread")]
async fn log_lines_have_readable_fields() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("secret");
    write(&file, SECRET, 0o600);
    let args = [&SERVE[..], &["--log", "info"]].concat();
    let mut command = command(dir.path(), &args);
    command.env("GLEANER_SECRETS_FILE", "secret").env("GLEANER_LIMITS_SECRET_COOLDOWN", "100ms");
    let server = Process::start(command).await;
    let forged = Request::unsigned(V1).header(NAME, "00".repeat(32));
    assert_eq!(forged.send(server.addr()).await, 401);
    // The secrets are read again for a signature that matches none, once per cool-down.
    write(&file, "{\"secret\":", 0o600);
    let unread = async {
        while forged.send(server.addr()).await != 503 {
            system::SystemClock.sleep(LOOK_PAUSE).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), unread).await.unwrap();
    let (_, talk) = server.terminate().await;
    for text in [
        "body_bytes",
        "cannot load the signing secrets: secrets load: corrupt: the secrets file secret is not \
         valid JSON (line 1, column 10)",
        "1 delivery answered with 503 since",
        "the platform does not answer as it should",
    ] {
        assert!(talk.contains(text), "{text}: {talk}");
    }
    for word in ["Diagnostics", "PortError", "Some(", "Load("] {
        assert!(!talk.contains(word), "{word}: {talk}");
    }
}

/// A wrong key does not keep the server from receiving, and is told at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_api_key_is_told_at_the_start() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let platform = simulator::start(listener, Config::default(), Arc::new(SystemClock)).unwrap();
    let dir = TempDir::new().unwrap();
    write(&dir.path().join("key"), "wrong-key", 0o600);
    for (args, place) in [
        (&[][..], "the platform refuses the API key (GLEANER_API_KEY); "),
        (&["--api-key-file", "key"], "the platform refuses the API key (key); "),
    ] {
        let mut command = command(dir.path(), &[&SERVE[..], args].concat());
        command.env("GLEANER_API_URL", platform.base_url()).env("GLEANER_WEBHOOK_SECRET", SECRET);
        let mut server = Process::start(command).await;
        let said = server.says(place).await;
        assert!(!said.contains("wrong-key") && !said.contains("key-1"), "{said}");
        assert_eq!(Request::v1().send(server.addr()).await, 202);
        server.kill().await;
    }
    platform.stop.stop().await;
}

/// A platform that is down does not keep the server from receiving either.
#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_is_down_is_told_at_the_start() {
    let dir = TempDir::new().unwrap();
    let mut command = command(dir.path(), &SERVE);
    command.env("GLEANER_WEBHOOK_SECRET", SECRET);
    let mut server = Process::start(command).await;
    server.says("the platform does not answer as it should").await;
    assert_eq!(Request::v1().send(server.addr()).await, 202);
    server.kill().await;
}

/// Each trouble of the secrets file has its own advice, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_secrets_file_in_trouble_is_told_with_what_mends_it() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("secrets.json");
    for (content, mode, text) in [
        (SECRET, 0o644, "is open to other users; run `chmod 600 secrets.json`"),
        ("{\n\"version\": 1,", 0o600, "is not valid JSON (line 2, column 13)"),
    ] {
        write(&file, content, mode);
        let mut command = command(dir.path(), &SERVE);
        command.env("GLEANER_SECRETS_FILE", "secrets.json");
        let (code, out, talk) = run(command).await;
        assert_eq!((code, out.as_str()), (78, ""), "{talk}");
        assert!(talk.contains(text), "{talk}");
        assert!(!talk.contains("webhooks create") && !talk.contains("ambiguous"), "{talk}");
    }
}
