//! OB-01 and OB-02: at the most talkative level, whatever a stranger sends, a library traces or a
//! panic says, no line shows a secret, a signature or a body.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets something unexpected shall panic"
)]

mod log;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use domain::announce::AnnouncePorts;
use domain::envelope::EnvelopeFormat;
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::ports::{Clock, LoadedSecrets, PortError, SecretSource};
use domain::receive::{ReceivePorts, receive};
use domain::signature::Headers;
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::testing::{ManualClock, MemoryLedger, MemoryQueue, SeededRandom};
use serde_json::Value;
use settings::LogLevel;
use telemetry::{Counter, Form, Metrics, invocation, start_into, tell};

use crate::log::Log;

const SECRET: &str = "whMarkerb42a-Signing-u8Yq5t";
const KEY: &str = "kqMarker0f1e-ApiKey-Z93x7w";
const BODY: &str = "bdMarker91c0-InBody-r4Kp2m";
const SIGNATURE: &str = "sgMarker5d17-Signature-w2Nc8j";
const MARKERS: [&str; 4] = [SECRET, KEY, BODY, SIGNATURE];
/// Bytes of a marker by which a cut one is recognised.
const START_BYTES: usize = 10;

struct Marked;

#[async_trait::async_trait]
impl SecretSource for Marked {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        Ok(vec![Secret::new(SECRET).unwrap()].into())
    }
}

struct Sent(Vec<(&'static str, String)>);

impl Headers for Sent {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        let named = self.0.iter().filter(|(other, _)| *other == name);
        named.map(|(_, value)| value.as_bytes()).collect()
    }
}

/// Takes the lines, which show no marker.
fn lines(log: &Log) -> Vec<Value> {
    let text = log.text();
    for marker in MARKERS {
        assert!(!text.contains(&marker[..START_BYTES]), "{marker} is in {text}");
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Everything that a stranger may send in place of a signature, with what is said of it.
fn mismatches() -> Vec<(Option<String>, &'static str)> {
    let hex = "ab".repeat(32);
    vec![
        (None, "signature_missing"),
        (Some(String::new()), "signature_empty_digest"),
        (Some("sha256=".to_owned()), "signature_empty_digest"),
        (Some(hex[..40].to_owned()), "signature_wrong_length"),
        (Some(format!("sha1={hex}")), "signature_wrong_algorithm"),
        (Some(SIGNATURE.repeat(400)), "signature_header_too_long"),
        (Some(format!("sha256={hex}")), "signature_mismatch"),
    ]
}

fn field<'a>(line: &'a Value, name: &str) -> &'a Value {
    &line["fields"][name]
}

/// OB-01, OB-02, SG-04: each mismatch is told by reason and lengths; and nothing else is told of what a
/// stranger, a library or a panic says. One test, since a process has one log.
#[tokio::test]
async fn ob_01_ob_02_no_line_shows_a_secret() {
    let log = Log::default();
    let writer = log.clone();
    start_into(LogLevel::Trace, Form::Json, move || writer.clone()).unwrap();
    assert!(start_into(LogLevel::Off, Form::Text, io::sink).is_err(), "once in a process");
    let metrics = Metrics::for_flushes();

    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let (ledger, queue) = (MemoryLedger::new(), MemoryQueue::new(Arc::clone(&clock)));
    let (random, limits) = (SeededRandom::new(1), Limits::default());
    let scheme = Preset::Geonode.scheme().unwrap();
    let keyring = Keyring::new(Arc::new(Marked), scheme, &limits);
    let format = EnvelopeFormat::default();
    let ports = ReceivePorts {
        announcing: AnnouncePorts {
            entries: &ledger,
            queue: &queue,
            clock: &*clock,
            random: &random,
            limits: &limits,
        },
        keyring: &keyring,
        format: &format,
    };
    let body = format!(r#"{{"job_id":"{BODY}","note":"{BODY}"}}"#);
    for (value, code) in mismatches() {
        let mut sent = Sent(vec![
            ("authorization", format!("Bearer {KEY}")),
            ("content-type", format!("application/json; x={KEY}")),
        ]);
        sent.0.extend(value.map(|value| ("x-webhook-signature", value)));
        let reception = receive(ports, &sent, body.as_bytes()).await;
        let _entered = invocation("req-1").entered();
        tell::delivery(&metrics, &reception, &sent, body.as_bytes(), Duration::ZERO);
        let lines = lines(&log);
        assert_eq!(lines.len(), 1, "{code}");
        assert_eq!(field(&lines[0], "code"), code);
        assert_eq!(field(&lines[0], "body_bytes"), body.len());
        assert_eq!(field(&lines[0], "content_type"), "application/json");
        assert_eq!(lines[0]["span"]["request_id"], "req-1");
    }
    assert_eq!(metrics.read(Counter::DeliveriesRejected), 7);

    // Libraries trace what they send and receive.
    tracing::trace!(target: "hyper::proto::h1", header = KEY, "parsed");
    tracing::debug!(target: "aws_smithy_runtime::client", body = BODY, "request");
    tracing::info!(target: "reqwest::connect", SIGNATURE);
    assert_eq!(lines(&log), Vec::<Value>::new());

    // Panics of every make, on another thread as in a task.
    for panicking in [
        || panic!("the signature was {SIGNATURE}"),
        || assert_eq!(serde_json::from_str::<u8>(&format!("\"{KEY}\"")).unwrap(), 1),
        || std::panic::panic_any(BODY.to_owned()),
        || assert_eq!(SECRET, KEY),
        || panic!("a text of the program"),
    ] as [fn(); 5]
    {
        assert!(std::thread::spawn(panicking).join().is_err());
        let lines = lines(&log);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0]["level"], "ERROR");
        assert_eq!(field(&lines[0], "message"), "panicked");
        assert!(field(&lines[0], "panic.at").as_str().unwrap().contains("secrets.rs:"));
        let said = field(&lines[0], "panic.said").as_str().unwrap();
        assert!(["[made of values, and not shown]", "a text of the program"].contains(&said));
    }
}
