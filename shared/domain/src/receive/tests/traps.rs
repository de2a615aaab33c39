//! Deliveries of other receivers' bad days, each tried literally.

use std::time::Duration;

use super::bench::{Bench, Fault, SECRET, V1, drive, extract};
use crate::announce::AnnounceOutcome;
use crate::entry::{DeadReason, Entry, State, StateName};
use crate::job::{JobId, JobKey, Kind};
use crate::keyring::Keyring;
use crate::ports::ErrorKind;
use crate::receive::{Reception, diagnose};
use crate::signature::preset::Preset;
use crate::signature::scheme::{Scheme, SchemeConfig};
use crate::time::before;

const SECOND: Duration = Duration::from_secs(1);
const V1_UNDER_NO_KEY: &str = "d20129e5090a66e64036b8c693678d44994d2cb097357d80e51c2dc19b306739";
const V1_HEX: &str = "ea826bf319909e18b85667f620fe669a612ab8a66c889d24005444e23c54baf7";
const V5: &[u8] = b"{\"job_id\":\"j1\",\"event_type\":\"extract_completed\",\"note\":\"\xff\"}";

fn header(value: &[u8]) -> Vec<(String, Vec<u8>)> {
    vec![("x-webhook-signature".to_owned(), value.to_vec())]
}

fn body(job_id: &str, event: &str) -> String {
    format!(r#"{{"job_id":"{job_id}","event_type":"{event}"}}"#)
}

fn kinds(bench: &Bench) -> Vec<Kind> {
    bench.ledger.entries().into_iter().map(|entry| entry.key.kind).collect()
}

#[test]
fn a_genuine_delivery_is_owed_and_its_task_sent() {
    let bench = Bench::new();
    let Reception::Accepted { key, outcome, delivery_id, secret } =
        bench.send(&header(V1_HEX.as_bytes()), V1)
    else {
        panic!("not accepted")
    };
    assert_eq!((key.clone(), outcome), (extract("j1"), AnnounceOutcome::New));
    assert_eq!((delivery_id.as_deref(), secret.as_str()), (Some("d1"), "current"));
    let row = bench.row(&key).unwrap();
    assert_eq!(row.state, State::Received);
    assert_eq!(row.history[0].delivery_id.as_deref(), Some("d1"));
    assert_eq!(bench.queue.tasks().len(), 1);
    assert_eq!(bench.queue.tasks()[0].key, key);
}

/// SG-06, S17: without a usable secret everything is 503, also what the empty key signed.
#[test]
fn without_a_secret_nothing_is_accepted_and_nothing_refused() {
    let bench = Bench::new();
    bench.secrets.hold(&[]);
    for value in [V1_UNDER_NO_KEY, V1_HEX, "nonsense"] {
        let reception = bench.send(&header(value.as_bytes()), V1);
        assert_eq!(reception.status(), 503, "{value}");
    }
    bench.clock.advance(SECOND);
    assert_eq!(bench.deliver(V1).code(), "no_secret");
    bench.secrets.gate.spoil_all("load", Fault::Before(ErrorKind::Corrupt));
    bench.clock.advance(SECOND);
    assert_eq!(bench.send(&header(V1_UNDER_NO_KEY.as_bytes()), V1).status(), 503);
    assert_eq!((bench.ledger.writes(), bench.queue.sent()), (0, 0));
}

/// SG-06: one unusable secret among good ones: those still work, and no mismatch is a refusal.
#[test]
fn an_unusable_secret_beside_a_good_one_refuses_nobody() {
    let mut bench = Bench::new();
    let hex_keys = r#"{"hmac":{"headers":["x-sig"],"grammar":"bare","encodings":["hex"],"signed":"{body}","keys":["hex"]}}"#;
    let config: SchemeConfig = serde_json::from_str(hex_keys).unwrap();
    bench.scheme = Scheme::try_from(config).unwrap();
    bench.keyring = Keyring::new(bench.secrets.clone(), bench.scheme.clone(), &bench.limits);
    bench.secrets.hold(&["not hex", "00ff"]);
    assert_eq!(bench.send(&bench.signed("00ff", V1), V1).status(), 202);
    let reception = bench.send(&bench.signed("00fe", V1), V1);
    assert_eq!((reception.status(), reception.code()), (503, "unusable_secret"));
}

/// SG-08: unsigned control events change nothing, whatever they say, and read no secret beyond
/// the cached one.
#[test]
fn unsigned_events_write_nothing_and_look_nothing_up() {
    let bench = Bench::new();
    assert_eq!(bench.status(V1), 202);
    let writes = bench.ledger.writes();
    bench.gate.take_calls();
    bench.secrets.take_loads();
    bench.clock.advance(10 * SECOND);
    let bodies: [&[u8]; 5] =
        [br#"{"event_type":"webhook_deactivated"}"#, br#"{"event_type":"ping"}"#, b"", V1, b"{}"];
    for body in bodies {
        let reception = bench.send(&[], body);
        assert_eq!((reception.status(), reception.code()), (401, "signature_missing"));
    }
    assert_eq!(bench.ledger.writes(), writes);
    assert!(bench.gate.take_calls().is_empty());
    assert_eq!(bench.secrets.take_loads(), 0);
}

/// SG-11: a repeated body under other delivery ids in unsigned headers is a repetition.
#[test]
fn delivery_ids_in_headers_make_no_second_event() {
    let bench = Bench::new();
    for (n, name) in ["X-Delivery-Id", "X-Request-Id", "X-Delivery-Id"].into_iter().enumerate() {
        let mut headers = bench.signed(SECRET, V1);
        headers.push((name.to_owned(), format!("d{n}").into_bytes()));
        let reception = bench.send(&headers, V1);
        let expected = if n == 0 { "accepted_new" } else { "accepted_known" };
        assert_eq!((reception.status(), reception.code()), (202, expected));
    }
    assert_eq!((bench.queue.sent(), bench.ledger.entries().len()), (1, 1));
}

/// PL-01, S20: correctly signed and unusable: 400, and nothing is written.
#[test]
fn signed_bodies_that_are_unusable_are_refused_for_good() {
    let bench = Bench::new();
    let spaces = vec![b' '; 2 * 1024 * 1024];
    let trailing_nul = [V1, b"\0"].concat();
    let unusable: [(&[u8], &str); 12] = [
        (b"", "empty"),
        (b"null", "not_object"),
        (b"7", "not_object"),
        (br#""x""#, "not_object"),
        (b"[]", "not_object"),
        (b"{", "not_json"),
        (V5, "not_utf8"),
        (&spaces, "empty"),
        (&trailing_nul, "not_json"),
        (br#"{"job_id":9007199254740993,"event_type":"extract_completed"}"#, "job_id_not_string"),
        (br#"{"job_id":"","event_type":"extract_completed"}"#, "job_id_empty"),
        (br#"{"job_id":"j1","event_type":"extract_completed","job_id":"j2"}"#, "duplicate_key"),
    ];
    for (body, code) in unusable {
        let reception = bench.deliver(body);
        assert_eq!((reception.status(), reception.code()), (400, code));
    }
    assert_eq!((bench.ledger.writes(), bench.queue.sent()), (0, 0));
    assert!(bench.gate.take_calls().is_empty());
}

/// PL-03, PL-05: ids that no table could keep, and bodies that no parser should walk through, are
/// refused for good; odd numbers where nobody looks are no trouble.
#[test]
fn ids_and_bodies_beyond_the_bounds_are_refused_for_good() {
    let bench = Bench::new();
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let beside = |odd: &str| format!(r#"{{"odd":{odd},{}"#, &body("j1", "extract_completed")[1..]);
    for (body, code) in [
        (body("   ", "extract_completed"), "job_id_character"),
        (body(&"a".repeat(2048), "extract_completed"), "job_id_too_long"),
        (body(&"a".repeat(2049), "extract_completed"), "job_id_too_long"),
        (body(&"\u{20ac}".repeat(700), "extract_completed"), "job_id_too_long"),
        (body(&"a".repeat(1100), "extract_completed"), "job_id_too_long"),
        (beside(&deep(200)), "too_deep"),
        (beside(&deep(100_000)), "too_deep"),
        (beside("NaN"), "not_json"),
    ] {
        let reception = bench.deliver(&body);
        assert_eq!((reception.status(), reception.code()), (400, code), "{} bytes", body.len());
    }
    assert_eq!((bench.ledger.writes(), bench.queue.sent()), (0, 0));
    for odd in ["1e400", "123456789012345678901234567890"] {
        assert_eq!(bench.status(beside(odd)), 202, "{odd}");
    }
    assert_eq!(bench.ledger.entries().len(), 1);
}

/// PL-02, S21: 42, "42" and true are not one job: only the text is a job id.
#[test]
fn ids_of_other_types_are_never_merged() {
    let bench = Bench::new();
    for id in ["42", "true", "null", "{}", r#"["x"]"#] {
        let body = format!(r#"{{"job_id":{id},"event_type":"extract_completed"}}"#);
        assert_eq!(bench.status(body), 400, "{id}");
    }
    assert_eq!(bench.status(body("42", "extract_completed")), 202);
    let keys: Vec<_> = bench.ledger.entries().into_iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [extract("42")]);
}

/// PL-07: each event type has its kind; others are acknowledged, counted and not owed.
#[test]
fn event_types_decide_the_kind_and_unknown_ones_are_not_owed() {
    let bench = Bench::new();
    assert_eq!(bench.status(body("b1", "batch_completed")), 202);
    assert_eq!(bench.status(body("c1", "crawl_completed")), 202);
    let sent: Vec<_> = bench.queue.tasks().into_iter().map(|task| task.key.kind).collect();
    assert_eq!(sent, [Kind::Batch, Kind::Crawl]);
    let writes = bench.ledger.writes();
    for event in ["map_completed", "EXTRACT_COMPLETED", ""] {
        let reception = bench.deliver(body("m1", event));
        assert_eq!((reception.status(), reception.code()), (202, "ignored_event"), "{event}");
        assert!(matches!(reception, Reception::Ignored { event: told } if told == event));
    }
    assert_eq!(bench.status(r#"{"job_id":"m1"}"#), 202);
    assert_eq!((bench.ledger.writes(), bench.queue.sent()), (writes, 2));
}

/// PL-08, S21: one id under two event types is two jobs, in either order.
#[test]
fn the_same_id_of_two_kinds_is_two_jobs() {
    for events in
        [["extract_completed", "batch_completed"], ["batch_completed", "extract_completed"]]
    {
        let bench = Bench::new();
        for event in events {
            assert_eq!(bench.deliver(body("j1", event)).code(), "accepted_new");
        }
        for event in events {
            assert_eq!(bench.deliver(body("j1", event)).code(), "accepted_known");
        }
        assert_eq!(kinds(&bench), [Kind::Extract, Kind::Batch]);
        assert_eq!(bench.queue.sent(), 2);
    }
}

/// PL-09, S21: spellings of one UUID are one job, from a webhook and from a job list; other ids
/// are told apart byte by byte.
#[test]
fn spellings_of_a_uuid_are_one_job() {
    let bench = Bench::new();
    let lower = "395cf7e2-0a5b-4c8e-9d3f-1b2c3d4e5f60";
    assert_eq!(
        bench.deliver(body(&lower.to_uppercase(), "extract_completed")).code(),
        "accepted_new"
    );
    assert_eq!(bench.deliver(body(lower, "extract_completed")).code(), "accepted_known");
    assert_eq!(
        bench.deliver(body(&format!("{{{lower}}}"), "extract_completed")).code(),
        "accepted_known"
    );
    let listed = JobKey::new(Kind::Extract, JobId::parse(&lower.to_uppercase()).unwrap());
    let outcome = bench.announce(&listed).unwrap();
    assert_eq!(outcome, AnnounceOutcome::Known(StateName::Received));
    assert_eq!((bench.ledger.entries().len(), bench.queue.sent()), (1, 1));
    assert_eq!(bench.deliver(body("j1", "extract_completed")).code(), "accepted_new");
    assert_eq!(bench.deliver(body("J1", "extract_completed")).code(), "accepted_new");
}

/// DQ-05: a row that expired an hour ago and is still there counts as absent, and is replaced
/// whole. Seconds are the unit: a time in milliseconds would lie fifty thousand years ahead.
#[test]
fn an_expired_row_is_replaced_and_seconds_are_its_unit() {
    let bench = Bench::new();
    let settled = |expires_at: i64| {
        let limits = &bench.limits;
        let row =
            Entry::expected(extract("j1"), None, crate::entry::Cause::Submit, bench.now(), limits);
        let dead = State::Dead { reason: DeadReason::Failed, error: None, result: None };
        let mut row = row.settled(dead, crate::entry::Cause::Work, bench.now(), limits);
        row.generation = 3;
        row.expires_at = Some(expires_at);
        row
    };
    let hour_ago = before(bench.now(), Duration::from_hours(1));
    bench.ledger.place(&settled(hour_ago.as_second()));
    assert_eq!(bench.deliver(V1).code(), "accepted_new");
    let row = bench.row(&extract("j1")).unwrap();
    assert_eq!((row.state.clone(), row.version, row.generation), (State::Received, 1, 0));
    assert_eq!((row.history.len(), row.expires_at), (1, None));

    bench.ledger.place(&settled(bench.now().as_second()));
    assert_eq!(bench.deliver(V1).code(), "accepted_new");
    bench.ledger.place(&settled(bench.now().as_second() + 1));
    assert_eq!(bench.deliver(V1).code(), "accepted_known");
    bench.ledger.place(&settled(hour_ago.as_millisecond()));
    assert_eq!(bench.deliver(V1).code(), "accepted_known");
    assert_eq!(bench.queue.sent(), 2);
}

/// DQ-07: of two bodies that disagree about one job, neither is believed: the row and the task
/// hold the key alone.
#[test]
fn what_a_body_claims_is_not_kept() {
    let bench = Bench::new();
    for (n, status) in ["failed", "completed"].into_iter().enumerate() {
        let body = format!(
            r#"{{"event":"extract_completed","data":{{"job_id":"j1","status":"{status}"}}}}"#
        );
        let expected = if n == 0 { "accepted_new" } else { "accepted_known" };
        assert_eq!(bench.deliver(body).code(), expected);
    }
    assert_eq!(bench.queue.sent(), 1);
    let row = serde_json::to_string(&bench.row(&extract("j1")).unwrap()).unwrap();
    let task = bench.queue.tasks()[0].encode();
    assert!(!row.contains("failed") && !row.contains("completed"), "{row}");
    assert_eq!(task, r#"{"v":1,"job_id":"j1","kind":"extract"}"#);
}

/// DQ-08: a body of 1.2 MB makes a message of less than 1 kB.
#[test]
fn a_large_body_makes_a_small_message() {
    let bench = Bench::new();
    let page = "x".repeat(1_200_000);
    let body =
        format!(r#"{{"event":"extract_completed","data":{{"job_id":"j1","html":"{page}"}}}}"#);
    assert_eq!(bench.status(body), 202);
    assert!(bench.queue.tasks()[0].encode().len() < 1_000);
    assert!(serde_json::to_string(&bench.row(&extract("j1")).unwrap()).unwrap().len() < 1_000);
}

/// WK-19: 2xx leaves after the message exists; nothing is left running behind it.
#[test]
fn the_answer_waits_for_the_message() {
    let bench = Bench::new();
    bench.gate.yield_at_each_call();
    let headers = bench.signed(SECRET, V1);
    let mut delivery = Box::pin(bench.receive(&headers, V1));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut turns_with_message = 0;
    for _ in 0..100 {
        match delivery.as_mut().poll(&mut context) {
            std::task::Poll::Ready(reception) => {
                assert_eq!(reception.status(), 202);
                assert_eq!(turns_with_message, 1);
                return;
            }
            std::task::Poll::Pending => turns_with_message += bench.queue.depth(),
        }
    }
    panic!("the delivery was never answered");
}

/// S18: a non-ASCII or over-long signature is a plain 401.
#[test]
fn odd_signatures_are_refused_plainly() {
    let bench = Bench::new();
    let odd = [
        Vec::new(),
        b"abc".to_vec(),
        vec![b'a'; 63],
        vec![b'a'; 65],
        vec![b'z'; 64],
        [&b"\xc3\xa9"[..], &[b'a'; 63]].concat(),
        vec![b'a'; 10_000],
        vec![0xff; 64],
    ];
    for value in odd {
        assert_eq!(bench.send(&header(&value), V1).status(), 401, "{} bytes", value.len());
    }
    assert_eq!((bench.ledger.writes(), bench.secrets.take_loads()), (0, 1));
}

/// OB-02: a refusal tells shapes, and hashes no body that verification did not hash.
#[test]
fn a_refusal_tells_shapes_only() {
    let bench = Bench::new();
    let told = |headers: Vec<(String, Vec<u8>)>| {
        let Reception::Rejected { reason, keys } = bench.send(&headers, V1) else {
            panic!("not refused")
        };
        diagnose(&keys, reason, &headers, V1)
    };
    let diagnostics = told(header(b"abc"));
    assert_eq!((diagnostics.body_bytes, diagnostics.body_hash.as_str()), (V1.len(), ""));
    assert_eq!(diagnostics.signature_bytes, [3]);
    let diagnostics = told(bench.signed("other", V1));
    assert_eq!((diagnostics.body_bytes, diagnostics.body_hash.len()), (V1.len(), 12));
}

#[test]
fn every_preset_has_its_deliveries_received() {
    for preset in Preset::ALL {
        let mut bench = Bench::new();
        bench.scheme = preset.scheme().unwrap();
        let secret = "whsec_dGVzdC1zZWNyZXQtMTIzNDU2Nzg5MA==";
        bench.secrets.hold(&[secret]);
        bench.keyring = Keyring::new(bench.secrets.clone(), bench.scheme.clone(), &bench.limits);
        let headers = bench.signed(secret, V1);
        let reception = drive(&bench.clock, bench.receive(&headers, V1));
        assert_eq!(reception.status(), 202, "{}", preset.name());
    }
}
