//! Deliveries that are waited for: the platform's own, large ones, strangers, and none.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};

use crate::bench::{Bench, Folder, ended, quick};
use crate::forms::{body, capture, from, mac, request};
use crate::markers::{BODY as MARKED, PAGE, SECRET, assert_none};

/// Longest wait for a process or a delivery, after which the test fails.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// A process that waits for a delivery.
struct Waiting {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

impl Waiting {
    async fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let Some(line) = lines.next_line().await.unwrap() else {
            panic!("it does not wait: {:?}", child.wait_with_output().await)
        };
        let started: Value = serde_json::from_str(&line).unwrap();
        let url = started["listening"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().strip_suffix("/webhook").unwrap();
        Self { child, lines, address: address.parse().unwrap() }
    }

    /// Sends bytes and reads the answer's status.
    async fn send(&self, bytes: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // Who is refused early may close before everything is sent.
        let _ = stream.write_all(bytes).await;
        let mut answer = vec![0; 12];
        let reading = stream.read_exact(&mut answer);
        match tokio::time::timeout(WAIT_MAX, reading).await.unwrap() {
            Ok(_) => String::from_utf8(answer).unwrap()[9..].parse().unwrap(),
            Err(_) => 0,
        }
    }

    /// What it found, its exit code, and what it said.
    async fn end(mut self) -> (Option<Value>, i32, String) {
        let reading = async {
            let line = self.lines.next_line().await.unwrap();
            (line, self.child.wait_with_output().await.unwrap())
        };
        let (line, output) = tokio::time::timeout(WAIT_MAX, reading).await.expect("it ends");
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(!err.contains("panicked"), "{err}");
        let found = line.map(|line| serde_json::from_str(&line).unwrap());
        (found, output.status.code().unwrap(), err)
    }
}

fn waiting(folder: &Folder, args: &[&str]) -> Command {
    let all = [&["doctor", "--json", "--capture", "--listen", "127.0.0.1:0"], args].concat();
    folder.command(&all)
}

/// The platform's own delivery is captured, answered 503, and nothing is lost: the server that
/// comes after takes the repeated delivery, and the job is stored.
#[tokio::test(flavor = "multi_thread")]
async fn the_platforms_own_delivery_is_captured_and_not_lost() {
    let bench = Bench::new(quick()).await;
    let create = ["webhooks", "create", "--json", "--url", "http://127.0.0.1:9/webhook"];
    let created = bench.run(&create).await.expect(0).of_type("webhook");
    let waiting = Waiting::start(waiting(&bench.folder, &[])).await;
    let address = waiting.address.to_string();
    let url = format!("http://{address}/webhook");
    for webhook in &created {
        let id = webhook["id"].as_str().unwrap();
        bench.run(&["webhooks", "update", id, "--url", &url]).await.expect(0);
    }
    bench.run(&["submit", "https://example.com/a"]).await.expect(0);
    let (found, code, err) = waiting.end().await;
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("it is answered 503, so that the platform sends it again"), "{err}");
    let found = found.unwrap();
    assert_eq!((&found["answered"], &found["in_force"]["accepted"]), (&503.into(), &true.into()));
    assert_eq!(found["found"][0]["webhook_id"], created[0]["id"]);
    assert_eq!(found["envelope"]["event"], "extract_completed");
    let fixture = std::fs::read_to_string(bench.folder.path().join("gleaner-delivery.http"));
    assert!(fixture.unwrap().starts_with("POST /webhook HTTP/1.1\r\n"));
    let mut serve = bench.folder.command(&["serve", "--listen", &address]);
    let _server = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let stored = async {
        loop {
            let ran = bench.run(&["jobs", "counts", "--json"]).await.expect(0);
            if ran.of_type("counts")[0]["jobs"]["stored"] == 1 {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT_MAX, stored).await.expect("it is stored");
}

/// A delivery of 6 MiB is captured whole, kept as it was, and redacted to a few lines.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_delivery_is_captured_whole() {
    let folder = Folder::new("http://127.0.0.1:9");
    let page = format!("{PAGE}{}", "x".repeat(6 * 1_024 * 1_024));
    let large =
        format!(r#"{{"event":"extract_completed","data":{{"job_id":"j1","html":"{page}"}}}}"#);
    let signature = format!("sha256={}", mac(SECRET.as_bytes(), large.as_bytes()));
    let sent = request(&[("X-Hub-Signature-256", &signature)], large.as_bytes());
    let mut command = waiting(&folder, &["--keep", "kept.http"]);
    let waiting = Waiting::start({
        command.env("GLEANER_WEBHOOK_SECRET", SECRET);
        command
    })
    .await;
    assert_eq!(waiting.send(&sent).await, 503);
    let (found, code, err) = waiting.end().await;
    assert_eq!(code, 0, "{err}");
    let found = found.unwrap();
    assert_eq!(found["bytes"], large.len());
    assert_eq!(found["found"][0]["settings"][0]["text"], "github");
    assert_none(&format!("{found}{err}"), &[], "doctor --capture");
    let fixture = std::fs::read(folder.path().join("gleaner-delivery.http")).unwrap();
    assert!(fixture.len() < 1_000, "{}", fixture.len());
    assert_none(&String::from_utf8(fixture).unwrap(), &[], "the fixture");
    let kept = std::fs::read(folder.path().join("kept.http")).unwrap();
    assert!(kept.ends_with(large.as_bytes()));
    for name in ["kept.http", "gleaner-delivery.http"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    // What was kept is read again.
    let given = [("GLEANER_WEBHOOK_SECRET", SECRET)];
    let again = capture(&from(&folder, &kept, &given).await.expect(0));
    assert_eq!(again["found"][0]["settings"], found["found"][0]["settings"]);
}

/// Strangers, scanners and checks of health pass by; a delivery that nobody's secret fits is told.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_passed_over() {
    let folder = Folder::new("http://127.0.0.1:9");
    let mut command = waiting(&folder, &[]);
    command.env("GLEANER_WEBHOOK_SECRET", SECRET);
    let waiting = Waiting::start(command).await;
    for (bytes, status) in [
        (&b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"[..], 200),
        (b"GET /webhook HTTP/1.1\r\nhost: x\r\n\r\n", 405),
        (b"POST /other HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", 404),
        (b"POST /webhook HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}", 503),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"garbage garbage garbage\r\n\r\n", 400),
    ] {
        assert_eq!(waiting.send(bytes).await, status, "{}", String::from_utf8_lossy(bytes));
    }
    let genuine = mac(SECRET.as_bytes(), &body());
    assert_eq!(waiting.send(&request(&[("X-Signature", &genuine)], &body())).await, 503);
    let (found, code, err) = waiting.end().await;
    assert_eq!((code, &found.unwrap()["found"][0]["header"]), (0, &"x-signature".into()), "{err}");
    assert!(err.contains("a request without anything like a signature is passed over"), "{err}");

    // A fixture that is there already is left alone.
    let mut command = self::waiting(&folder, &[]);
    command.env("GLEANER_WEBHOOK_SECRET", "another secret");
    let waiting = Waiting::start(command).await;
    assert_eq!(waiting.send(&request(&[("X-Signature", &genuine)], &body())).await, 503);
    let (found, code, err) = waiting.end().await;
    let found = found.unwrap();
    assert_eq!((code, found["found"].as_array().unwrap().len()), (1, 0), "{err}");
    assert!(!found.to_string().contains(MARKED), "{found}");
}

/// A delivery larger than the receiver takes is said to be so, and the next one is captured.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_too_large_is_told() {
    let folder = Folder::new("http://127.0.0.1:9");
    let mut command = waiting(&folder, &["--set", "receiver.body_bytes=1KiB"]);
    command.env("GLEANER_WEBHOOK_SECRET", SECRET);
    let waiting = Waiting::start(command).await;
    let large = vec![b'x'; 2_000];
    let genuine = mac(SECRET.as_bytes(), &large);
    assert_eq!(waiting.send(&request(&[("X-Signature", &genuine)], &large)).await, 413);
    let genuine = mac(SECRET.as_bytes(), &body());
    assert_eq!(waiting.send(&request(&[("X-Signature", &genuine)], &body())).await, 503);
    let (_, code, err) = waiting.end().await;
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("larger than `receiver.body_bytes` (1024 bytes)"), "{err}");
}

/// Nobody comes, somebody ends it, or somebody else listens.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends() {
    let folder = Folder::new("http://127.0.0.1:9");
    let given = ("GLEANER_WEBHOOK_SECRET", SECRET);
    let mut command = waiting(&folder, &["--within", "50ms"]);
    let ran = ended(command.env(given.0, given.1).spawn().unwrap()).await.expect(3);
    assert!(ran.err.contains("no delivery came within"), "{}", ran.err);
    let mut command = waiting(&folder, &[]);
    command.env(given.0, given.1);
    let waiting = Waiting::start(command).await;
    let address = waiting.address.to_string();
    let mut second = folder.command(&["doctor", "--capture", "--listen", &address]);
    let ran = ended(second.env(given.0, given.1).spawn().unwrap()).await.expect(71);
    assert!(ran.err.contains("stop `gleaner serve` for the while"), "{}", ran.err);
    let id = waiting.child.id().unwrap().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
    assert!(sent.success());
    let (found, code, err) = waiting.end().await;
    assert_eq!((found, code), (None, 75), "{err}");
    assert!(err.contains("interrupted before a delivery came"), "{err}");
    let ran = folder.run(&["doctor", "--capture"]).await.expect(78);
    assert!(ran.err.contains("there is no signing secret"), "{}", ran.err);
}
