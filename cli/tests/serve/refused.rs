//! What is not genuine, not usable, or too much.

use std::time::Duration;

use domain::signature::secret::Secret;
use gleaner::serve::ReceiverBounds;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::http::{NAME, Request, V1, V1_HEX, exchange, status};
use super::site::{Plan, Site};

/// SG-03: a signature of any other length or character is 401, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn sg_03_malformed_signatures_are_401() {
    let site = Site::new().await;
    let e_acute = [b"\xC3\xA9".as_slice(), &[b'a'; 63]].concat();
    let latin_1 = [b"\xE9".as_slice(), &[b'a'; 63]].concat();
    let values: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"abc".to_vec(),
        V1_HEX.as_bytes()[..63].to_vec(),
        format!("{V1_HEX}a").into_bytes(),
        V1_HEX.as_bytes()[..33].to_vec(),
        vec![b'z'; 64],
        e_acute,
        latin_1,
        vec![b'a'; 10_000],
    ];
    for value in values {
        let answer = Request::unsigned(V1).header(NAME, &value).answer(site.addr).await;
        assert_eq!(status(&answer), 401, "{value:?}");
        assert!(answer.ends_with("\r\n\r\n"), "the body tells nothing: {answer}");
    }
    assert_eq!(Request::unsigned(V1).send(site.addr).await, 401);
    assert_eq!(site.rows().await, 0);
    // The receiver still works.
    assert_eq!(Request::v1().send(site.addr).await, 202);
    site.stop().await;
}

/// SG-06: without a secret nothing is accepted, and nothing is 401: the sender comes again.
#[tokio::test(flavor = "multi_thread")]
async fn sg_06_no_secret_is_503() {
    const V6_HEX: &str = "d20129e5090a66e64036b8c693678d44994d2cb097357d80e51c2dc19b306739";
    for blank in ["", "   ", "{\"secret\":\"\"}"] {
        assert!(Secret::parse_stored(blank).is_err(), "{blank:?} is no secret");
    }
    let site = Site::with(Plan { secrets: Vec::new(), ..Plan::default() }).await;
    for signature in [V6_HEX, V1_HEX, ""] {
        let request = Request::unsigned(V1).header(NAME, signature);
        assert_eq!(request.send(site.addr).await, 503, "{signature}");
    }
    assert_eq!(site.rows().await, 0);
    site.stop().await;
    // With a secret, the empty key's signature is a wrong one.
    let site = Site::new().await;
    assert_eq!(Request::unsigned(V1).header(NAME, V6_HEX).send(site.addr).await, 401);
    site.stop().await;
}

/// SG-08: control events, pings and other methods change nothing before the signature is verified.
#[tokio::test(flavor = "multi_thread")]
async fn sg_08_unsigned_control_events_change_nothing() {
    let site = Site::new().await;
    let before = site.faults.calls().len();
    for body in [br#"{"event_type":"webhook_deactivated"}"#.as_slice(), br#"{"event":"ping"}"#] {
        assert_eq!(Request::unsigned(body).send(site.addr).await, 401);
    }
    for method in ["GET", "OPTIONS", "HEAD", "PUT", "DELETE"] {
        assert_eq!(Request::v1().by(method).send(site.addr).await, 405, "{method}");
    }
    assert_eq!(site.faults.calls().len(), before, "no port is called");
    // Signed, it is acknowledged and owed nothing.
    let signed = Request::signed(br#"{"job_id":"j1","event_type":"webhook_deactivated"}"#);
    assert_eq!(signed.send(site.addr).await, 202);
    assert_eq!(site.rows().await, 0);
    site.stop().await;
}

/// PL-01: signed bodies that are of no use are 400, however large.
#[tokio::test(flavor = "multi_thread")]
async fn pl_01_signed_and_unusable_is_400() {
    let site = Site::new().await;
    let v5 =
        [br#"{"job_id":"j1","event_type":"extract_completed","note":""#.as_slice(), b"\xFF\"}"];
    let bodies = [
        Vec::new(),
        b"null".to_vec(),
        b"7".to_vec(),
        b"\"x\"".to_vec(),
        b"{".to_vec(),
        v5.concat(),
        vec![b' '; 2 * 1_024 * 1_024],
        [V1, b"\0"].concat(),
    ];
    for body in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        assert_eq!(Request::signed(&body).send(site.addr).await, 400, "{shown}");
    }
    assert_eq!(site.rows().await, 0);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_are_404_other_methods_405_and_health_is_200() {
    let site = Site::new().await;
    assert_eq!(Request::v1().at("/other").send(site.addr).await, 404);
    assert_eq!(Request::v1().by("GET").send(site.addr).await, 405);
    let before = site.faults.calls().len();
    let health = Request::unsigned(b"").by("GET").at("/healthz").answer(site.addr).await;
    assert!(
        health.starts_with("HTTP/1.1 200 OK\r\n") && health.ends_with("\r\n\r\nok"),
        "{health}"
    );
    assert_eq!(Request::v1().at("/healthz").send(site.addr).await, 405);
    assert_eq!(site.faults.calls().len(), before, "no port is called");
    site.stop().await;
}

/// S29: no more of a body is read than its bound, whether its length is declared or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_the_bound_is_413() {
    let bounds = ReceiverBounds { body_bytes: 1_024, ..ReceiverBounds::default() };
    let site = Site::with(Plan { bounds, ..Plan::default() }).await;
    let large = vec![b' '; 1_025];
    assert_eq!(Request::signed(&large).send(site.addr).await, 413);
    assert_eq!(Request::signed(&large[..1_024]).send(site.addr).await, 400);
    // What is declared is refused before it is sent.
    let declared = b"POST /webhook HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\n";
    assert_eq!(status(&exchange(site.addr, declared).await), 413);
    let head =
        b"POST /webhook HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".as_slice();
    let chunk = [b"401\r\n".as_slice(), &large, b"\r\n0\r\n\r\n"].concat();
    assert_eq!(status(&exchange(site.addr, &[head, &chunk].concat()).await), 413);
    assert_eq!(Request::v1().send(site.addr).await, 202);
    site.stop().await;
}

/// S29: nor of all bodies at once.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_fit_together_are_503() {
    let bounds =
        ReceiverBounds { body_bytes: 4_096, bodies_bytes: 4_096, ..ReceiverBounds::default() };
    let site = Site::with(Plan { bounds, ..Plan::default() }).await;
    // One that is declared whole and sent in part holds the whole budget.
    let mut slow = TcpStream::connect(site.addr).await.unwrap();
    let head = b"POST /webhook HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4096\r\n\r\n";
    slow.write_all(head).await.unwrap();
    // The receiver says that it reads, so it holds the budget now.
    let mut go_on = [0; 25];
    slow.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(Request::v1().send(site.addr).await, 503);
    drop(slow);
    // The budget comes back with the connection.
    let again = async {
        while Request::v1().send(site.addr).await != 202 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.unwrap();
    site.stop().await;
}

/// S29: nor for longer than its time.
#[tokio::test(flavor = "multi_thread")]
async fn slow_heads_and_bodies_are_cut_off() {
    let bounds = ReceiverBounds {
        head_timeout: Duration::from_millis(200),
        body_timeout: Duration::from_millis(200),
        ..ReceiverBounds::default()
    };
    let site = Site::with(Plan { bounds, ..Plan::default() }).await;
    let unfinished_head = exchange(site.addr, b"POST /webhook HTTP/1.1\r\nhost").await;
    assert!(!unfinished_head.contains("202"), "{unfinished_head}");
    let unfinished_body = b"POST /webhook HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{";
    assert_eq!(status(&exchange(site.addr, unfinished_body).await), 408);
    assert_eq!(Request::v1().send(site.addr).await, 202);
    site.stop().await;
}
