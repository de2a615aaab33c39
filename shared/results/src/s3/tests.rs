use domain::job::JobId;
use domain::object::describe;
use domain::place::extract_key;
use domain::ports::{ErrorKind, PutOutcome, Results};
use domain::testing::ManualClock;

use super::*;
use crate::testing::{FakeS3, S3Trouble};

const CONTENT: &[u8] = b"{\"a\":1}";

fn key() -> String {
    extract_key(&JobId::parse("j1").unwrap(), "2026-11-30".parse().unwrap())
}

fn open(settings: &S3Settings) -> ObjectResults {
    ObjectResults::on_s3(settings, Arc::new(ManualClock::default())).unwrap()
}

async fn start() -> (FakeS3, ObjectResults) {
    let s3 = FakeS3::start().await.unwrap();
    let results = open(&s3.settings());
    (s3, results)
}

/// The content and description of what was put or found, and whether it was found.
fn outcome(put: PutOutcome) -> (domain::entry::StoredObject, bool) {
    match put {
        PutOutcome::Now(object) => (object, false),
        PutOutcome::Already { object, content } => {
            assert_eq!(content, CONTENT);
            (object, true)
        }
    }
}

/// One object costs one request; nothing is looked up before, whatever the size.
#[tokio::test]
async fn a_put_is_one_request() {
    let (s3, results) = start().await;
    for (id, bytes) in [("small", 10), ("large", 9_000_000)] {
        let numbers = (0..bytes / 8).map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let content: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        let key = extract_key(&JobId::parse(id).unwrap(), "2026-11-30".parse().unwrap());
        assert!(matches!(results.put_new(&key, &content).await.unwrap(), PutOutcome::Now(_)));
        assert_eq!(s3.seen().last(), Some(&format!("PUT {key}")));
    }
    assert_eq!(s3.seen().len(), 2);
}

/// The object names its type, no encoding that a client would undo, and the checksum that the
/// ledger holds, which S3 has verified.
#[tokio::test]
async fn an_object_says_what_it_is() {
    use base64::Engine as _;
    let (s3, results) = start().await;
    for (key, content_type) in [
        (key(), "application/gzip"),
        ("kind=batch/dt=2026-11-30/a/r-part-00001.ndjson.gz".to_owned(), "application/gzip"),
        ("kind=batch/dt=2026-11-30/a/_manifest.json".to_owned(), "application/json"),
        ("probe".to_owned(), "application/octet-stream"),
    ] {
        let (put, _) = outcome(results.put_new(&key, CONTENT).await.unwrap());
        let object = s3.object(&key).unwrap();
        assert_eq!(object.content_type.as_deref(), Some(content_type), "{key}");
        assert_eq!(object.content_encoding, None, "{key}");
        let sha256 =
            base64::engine::general_purpose::STANDARD.encode(hex::decode(&put.sha256).unwrap());
        assert_eq!(object.checksum_sha256, Some(sha256), "{key}");
        assert_eq!(describe(&key, &object.bytes), put);
    }
}

/// DQ-02: the put that is repeated because its answer was lost finds its own object, and consumers
/// of the bucket's events see one creation, however often it is repeated afterwards.
#[tokio::test]
async fn a_lost_answer_makes_one_object_and_one_event() {
    let (s3, results) = start().await;
    s3.plan([S3Trouble::LoseAnswer]);
    let (first, was_found) = outcome(results.put_new(&key(), CONTENT).await.unwrap());
    assert!(was_found);
    let (put, get) = (format!("PUT {}", key()), format!("GET {}", key()));
    assert_eq!(s3.seen(), [put.clone(), put, get]);
    for lost in 0..3 {
        s3.plan(vec![S3Trouble::LoseAnswer; lost]);
        let (again, was_found) = outcome(results.put_new(&key(), CONTENT).await.unwrap());
        assert_eq!((again, was_found), (first.clone(), true));
    }
    assert_eq!(s3.creations(&key()), 1);
    assert_eq!(s3.keys(), [key()]);
}

/// Where every answer is lost the caller is told to try again, and the next call finds the object.
#[tokio::test]
async fn a_put_that_is_never_answered_is_found_later() {
    let (s3, results) = start().await;
    let attempts = 1 + s3.settings().tempo.retries;
    s3.plan(vec![S3Trouble::LoseAnswer; attempts]);
    let error = results.put_new(&key(), CONTENT).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(s3.seen().len(), attempts);
    let (_, was_found) = outcome(results.put_new(&key(), CONTENT).await.unwrap());
    assert!(was_found);
    assert_eq!(s3.creations(&key()), 1);
}

/// A caller that gave up before the answer came leaves an object or none, and no half.
#[tokio::test]
async fn an_abandoned_put_is_found_or_made_later() {
    for trouble in [S3Trouble::Hang, S3Trouble::LoseAnswer] {
        let (s3, results) = start().await;
        let planned: &[_] =
            if trouble == S3Trouble::Hang { &[trouble] } else { &[trouble, S3Trouble::Hang] };
        let wanted = planned.len();
        s3.plan(planned.iter().copied());
        {
            let (key, seen) = (key(), || s3.seen().len());
            let mut put = std::pin::pin!(results.put_new(&key, CONTENT));
            while seen() < wanted {
                let step = tokio::task::yield_now();
                tokio::select! { _ = &mut put => panic!("it hangs"), () = step => {} }
            }
        }
        let (_, was_found) = outcome(results.put_new(&key(), CONTENT).await.unwrap());
        assert_eq!(was_found, trouble == S3Trouble::LoseAnswer);
        assert_eq!(s3.creations(&key()), 1);
    }
}

/// A conflict says nothing of an object: the put is repeated, in bounds, and never taken as done.
#[tokio::test]
async fn a_conflict_is_not_an_object() {
    let (s3, results) = start().await;
    s3.plan([S3Trouble::CONFLICT, S3Trouble::CONFLICT]);
    let (_, was_found) = outcome(results.put_new(&key(), CONTENT).await.unwrap());
    assert!(!was_found);
    assert_eq!(s3.seen().len(), 3);

    let (s3, results) = start().await;
    let attempts = 1 + s3.settings().tempo.retries;
    s3.plan(vec![S3Trouble::CONFLICT; attempts + 5]);
    let error = results.put_new(&key(), CONTENT).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(s3.seen().len(), attempts);
    assert_eq!(s3.keys(), Vec::<String>::new());
}

/// WK-15: trouble of S3 on the first try ends well on the next, whatever the size of the result.
#[tokio::test]
async fn passing_trouble_passes() {
    for trouble in [
        S3Trouble::INTERNAL,
        S3Trouble::SLOW_DOWN,
        S3Trouble::Reset,
        S3Trouble::Refuse { status: 503, code: "ServiceUnavailable" },
        S3Trouble::Refuse { status: 400, code: "RequestTimeout" },
        S3Trouble::Refuse { status: 400, code: "BadDigest" },
        S3Trouble::Refuse { status: 429, code: "TooManyRequests" },
    ] {
        let (s3, results) = start().await;
        for (id, content) in [
            ("ascii", "x".repeat(399_000)),
            ("limit", "x".repeat(409_600)),
            ("euro", "\u{20ac}".repeat(150_000)),
            ("large", "{\"html\":\"<p>&amp;</p>\"}\n".repeat(220_000)),
        ] {
            let key = extract_key(&JobId::parse(id).unwrap(), "2026-11-30".parse().unwrap());
            s3.plan([trouble]);
            let put = results.put_new(&key, content.as_bytes()).await.unwrap();
            assert!(matches!(put, PutOutcome::Now(_)), "{trouble:?} {id}");
            s3.plan([trouble]);
            let found = results.read(&key).await.unwrap().unwrap();
            assert!(found.1 == content.as_bytes(), "{trouble:?} {id}");
            assert_eq!(s3.creations(&key), 1, "{trouble:?} {id}");
        }
        s3.plan([trouble]);
        assert_eq!(results.list("", None, 10).await.unwrap().len(), 4, "{trouble:?}");
    }
}

/// WK-22: trouble that stays is told for what it is after a bounded number of attempts; what only
/// an operator can mend, after one.
#[tokio::test]
async fn lasting_trouble_is_told() {
    let attempts = 1 + S3Tempo::default().retries;
    for (trouble, kind, asked) in [
        (S3Trouble::INTERNAL, ErrorKind::Unavailable, attempts),
        (S3Trouble::Reset, ErrorKind::Unavailable, attempts),
        (S3Trouble::SLOW_DOWN, ErrorKind::Throttled, attempts),
        (S3Trouble::DENIED, ErrorKind::Denied, 1),
        (S3Trouble::Refuse { status: 400, code: "ExpiredToken" }, ErrorKind::Denied, 1),
        (S3Trouble::Refuse { status: 301, code: "PermanentRedirect" }, ErrorKind::Denied, 1),
        (S3Trouble::Refuse { status: 400, code: "InvalidRequest" }, ErrorKind::Invalid, 1),
        (S3Trouble::Refuse { status: 501, code: "NotImplemented" }, ErrorKind::Invalid, attempts),
    ] {
        for call in ["put", "read", "list"] {
            let (s3, results) = start().await;
            s3.plan(vec![trouble; attempts + 1]);
            let error = match call {
                "put" => results.put_new(&key(), CONTENT).await.map(drop),
                "read" => results.read(&key()).await.map(drop),
                _ => results.list("", None, 10).await.map(drop),
            };
            let error = error.unwrap_err();
            assert_eq!((error.kind, error.operation), (kind, call), "{trouble:?}");
            let expected = if kind == ErrorKind::Invalid { 1 } else { asked };
            assert_eq!(s3.seen().len(), expected, "{trouble:?} {call}");
        }
    }
}

/// An answer that never comes ends with the attempt's time, and the call in bounds.
#[tokio::test]
async fn an_answer_that_never_comes_is_not_waited_for() {
    let s3 = FakeS3::start().await.unwrap();
    let mut settings = s3.settings();
    settings.tempo.attempt = Duration::from_millis(200);
    settings.tempo.retries = 1;
    let results = open(&settings);
    s3.plan(vec![S3Trouble::Hang; 2]);
    let error = results.put_new(&key(), CONTENT).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    s3.plan(vec![S3Trouble::Hang; 2]);
    assert_eq!(results.read(&key()).await.unwrap_err().kind, ErrorKind::Unavailable);
    assert!(s3.seen().len() <= 4);
}

/// WK-17: an answer that breaks off in the middle is read on from there, and never taken as whole.
#[tokio::test]
async fn an_answer_that_breaks_off_is_read_on() {
    let (s3, results) = start().await;
    let content = (0..200_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>();
    results.put_new(&key(), &content).await.unwrap();
    s3.plan([S3Trouble::CutAnswer, S3Trouble::CutAnswer]);
    let found = results.read(&key()).await.unwrap().unwrap();
    assert!(found.1 == content);
    s3.plan(vec![S3Trouble::CutAnswer; 40]);
    assert_eq!(results.read(&key()).await.unwrap_err().kind, ErrorKind::Unavailable);
}

/// Who may not list is refused an absent object, and still puts and reads those that are there.
#[tokio::test]
async fn without_the_right_to_list_an_absent_object_is_denied() {
    let (s3, results) = start().await;
    s3.forbid_listing();
    assert_eq!(results.read(&key()).await.unwrap_err().kind, ErrorKind::Denied);
    let (put, _) = outcome(results.put_new(&key(), CONTENT).await.unwrap());
    assert_eq!(outcome(results.put_new(&key(), CONTENT).await.unwrap()), (put.clone(), true));
    assert_eq!(results.read(&key()).await.unwrap(), Some((put, CONTENT.to_vec())));
    assert_eq!(results.list("", None, 1).await.unwrap_err().kind, ErrorKind::Denied);
}

/// A bucket that is not there, or elsewhere, is somebody's to mend; no object of it counts
/// as absent.
#[tokio::test]
async fn a_missing_bucket_is_not_an_absent_object() {
    let s3 = FakeS3::start().await.unwrap();
    let elsewhere = S3Settings { region: "us-east-1".to_owned(), ..s3.settings() };
    let missing = S3Settings { bucket: "another-bucket".to_owned(), ..s3.settings() };
    for settings in [elsewhere, missing] {
        let results = open(&settings);
        for error in [
            results.put_new(&key(), CONTENT).await.unwrap_err(),
            results.read(&key()).await.unwrap_err(),
            results.list("", None, 1).await.unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::Denied, "{error:?}");
        }
    }
}

/// An answer that sends us elsewhere is not followed: a put would become a reading of something
/// else, and count as done.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let (s3, results) = start().await;
        s3.put_bytes("moved", &b"{}"[..]);
        s3.plan([S3Trouble::Redirect { status }; 3]);
        for error in [
            results.put_new(&key(), CONTENT).await.unwrap_err(),
            results.read(&key()).await.unwrap_err(),
            results.list("", None, 1).await.unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::Denied, "{status} {error:?}");
        }
        assert_eq!(s3.seen().len(), 3, "{status}");
        assert_eq!(s3.keys(), ["moved"]);
    }
}

/// OB-01: an error tells the code and the request's id, and nothing of keys, signature or content.
#[tokio::test]
async fn errors_show_neither_keys_nor_content() {
    let content = b"marker-content";
    for trouble in [S3Trouble::DENIED, S3Trouble::SLOW_DOWN, S3Trouble::Reset] {
        let (s3, results) = start().await;
        let attempts = 1 + s3.settings().tempo.retries;
        s3.plan(vec![trouble; attempts]);
        let error = results.put_new("a.json", content).await.unwrap_err();
        let shown =
            format!("{error:?} {:?} {:?}", s3.settings(), results.put_new("B", content).await);
        for secret in ["marker-secret-key", "token", "marker-content", "Signature"] {
            assert!(!shown.to_lowercase().contains(&secret.to_lowercase()), "{secret}: {shown}");
        }
        if let S3Trouble::Refuse { code, .. } = trouble {
            assert!(shown.contains(code) && shown.contains("FAKEREQUEST00001"), "{shown}");
        }
    }
}

/// A listing asks for no more keys than are wanted, and goes on page by page.
#[tokio::test]
async fn a_listing_asks_for_what_is_wanted() {
    let (s3, results) = start().await;
    for number in 0..7 {
        s3.put_bytes(&format!("kind=batch/dt=2026-11-30/j{number}/_manifest.json"), &b"{}"[..]);
    }
    // Not ours, in the midst of ours.
    for foreign in ["kind=batch/dt=2026-11-30/j1/NOTES.TXT", "kind=batch/dt=2026-11-30/", "zz z"] {
        s3.put_bytes(foreign, &b""[..]);
    }
    assert_eq!(results.list("kind=batch/dt=2026-11-30/j", None, 3).await.unwrap().len(), 3);
    assert_eq!(s3.seen().len(), 2, "the key that is not ours made room for one more");
    let all = results.list("kind=batch/dt=2026-11-30/", None, 100).await.unwrap();
    assert_eq!(all.len(), 7);
    assert_eq!(s3.seen().len(), 3);
    s3.limit_pages(2);
    assert_eq!(results.list("kind=", Some(&all[2]), 100).await.unwrap(), all[3..]);
    assert!(results.list("", None, 0).await.unwrap().is_empty());
}

/// Objects of two prefixes are strangers, and no key holds the prefix.
#[tokio::test]
async fn a_prefix_is_a_world_of_its_own() {
    let s3 = FakeS3::start().await.unwrap();
    let at = |prefix: &str| open(&S3Settings { prefix: prefix.to_owned(), ..s3.settings() });
    let (root, old, new) = (at(""), at("results-old"), at("/results/"));
    for (results, content) in [(&root, "root"), (&old, "old"), (&new, "new")] {
        let put = results.put_new(&key(), content.as_bytes()).await.unwrap();
        assert!(matches!(put, PutOutcome::Now(object) if object.key == key()));
    }
    let keys = [key(), format!("results-old/{}", key()), format!("results/{}", key())];
    assert_eq!(s3.keys(), keys);
    for (results, content) in [(&root, "root"), (&old, "old"), (&new, "new")] {
        let (object, found) = results.read(&key()).await.unwrap().unwrap();
        assert_eq!((object.key, found), (key(), content.as_bytes().to_vec()));
    }
    for results in [&old, &new] {
        assert_eq!(results.list("", None, 10).await.unwrap(), [key()]);
    }
}
