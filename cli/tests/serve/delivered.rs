//! Genuine deliveries, in all the ways in which they travel.

use std::sync::Arc;

use domain::ports::Clock as _;
use domain::signature::dimension::BodyForm;
use domain::signature::preset::Preset;
use domain::signature::scheme::{PresetConfig, Scheme, SchemeConfig};
use futures_util::future::join_all;
use system::SystemClock;

use super::http::{NAME, Request, SECRET, V1, V1_HEX, signature};
use super::site::{Frozen, Plan, Site};

fn scheme(headers: Option<&[&str]>, body: Option<BodyForm>) -> Scheme {
    use domain::signature::dimension::HeaderName;
    let parse =
        |names: &[&str]| names.iter().map(|name| HeaderName::parse(name).unwrap()).collect();
    Scheme::try_from(SchemeConfig::Preset(PresetConfig {
        name: Preset::Geonode,
        headers: headers.map(parse),
        body,
        tolerance_secs: None,
    }))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_accepted_and_recorded() {
    let site = Site::new().await;
    let answer = Request::v1().answer(site.addr).await;
    assert!(answer.starts_with("HTTP/1.1 202 Accepted\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "the body is empty: {answer}");
    assert!(site.row("j1").await.is_some());
    assert_eq!((site.rows().await, site.calls("queue.send")), (1, 1));
    site.stop().await;
}

/// FD-03: the signature header is found in any case and with spaces around its value, also where
/// the configured name is in mixed case and padded.
#[tokio::test(flavor = "multi_thread")]
async fn fd_03_header_names_have_no_case() {
    let site = Site::new().await;
    for name in ["X-Webhook-Signature", "x-webhook-signature", "X-WEBHOOK-SIGNATURE"] {
        for value in [V1_HEX.to_owned(), format!("  {V1_HEX}\t ")] {
            let request = Request::unsigned(V1).header(name, &value);
            assert_eq!(request.send(site.addr).await, 202, "{name}: {value}");
        }
    }
    site.stop().await;
    let configured = scheme(Some(&["  X-Custom-Sig "]), None);
    let site = Site::with(Plan { scheme: configured, ..Plan::default() }).await;
    for name in ["x-custom-sig", "X-Custom-Sig", "X-CUSTOM-SIG"] {
        let request = Request::unsigned(V1).header(name, V1_HEX);
        assert_eq!(request.send(site.addr).await, 202, "{name}");
    }
    assert_eq!(Request::v1().send(site.addr).await, 401);
    site.stop().await;
}

/// FD-05: the path is compared byte for byte; another one is 404, also with a doubled or trailing
/// slash or a stage before it. A path with a stage can be configured.
#[tokio::test(flavor = "multi_thread")]
async fn fd_05_paths_are_exact() {
    let site = Site::new().await;
    assert_eq!(Request::v1().send(site.addr).await, 202);
    let others =
        ["//webhook", "/webhook/", "/prod/webhook", "/", "/WEBHOOK", "/%77ebhook", "/a/../webhook"];
    for path in others {
        assert_eq!(Request::v1().at(path).send(site.addr).await, 404, "{path}");
    }
    // A query is no part of the path.
    assert_eq!(Request::v1().at("/webhook?stage=prod").send(site.addr).await, 202);
    site.stop().await;
    let site = Site::with(Plan { path: "/prod/webhook", ..Plan::default() }).await;
    assert_eq!(Request::v1().at("/prod/webhook").send(site.addr).await, 202);
    assert_eq!(Request::v1().send(site.addr).await, 404);
    site.stop().await;
}

/// FD-08: the signature decides, the content type never does.
#[tokio::test(flavor = "multi_thread")]
async fn fd_08_content_types_do_not_matter() {
    let site = Site::new().await;
    let types = [
        "application/json",
        "application/json; charset=utf-8",
        "application/vnd.api+json",
        "text/plain",
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "nonsense",
    ];
    for name in types {
        let good = Request::v1().header("content-type", name);
        assert_eq!(good.send(site.addr).await, 202, "{name}");
        let bad = Request::unsigned(V1).header("content-type", name).header(NAME, "00".repeat(32));
        assert_eq!(bad.send(site.addr).await, 401, "{name}");
    }
    assert_eq!(Request::v1().send(site.addr).await, 202);
    assert_eq!(site.rows().await, 1);
    site.stop().await;
}

/// V7: the gzip form of V1, and the signature of these bytes.
const V7: &str = "1f8b0800000000000203ab56caca4f8acf4c51b252ca3254d2514a2d4bcd2b892fa92c48058aa4569414\
                  252697c427e7e716e4a496a4a600158095a6182ad50200aeee659b3a000000";
const V7_HEX: &str = "bf763499d2e0cd2d68e63dfc910c57ff91d69679b07c5eedaa2abc828369a04f";

fn from_hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// SG-09: compressed bytes are verified as received, or inflated where that is configured; the
/// inflated size is capped, an unknown coding is 415, and nothing is a 500.
#[tokio::test(flavor = "multi_thread")]
async fn sg_09_compressed_bodies() {
    let compressed = from_hex(V7);
    let request = |signature: &str| {
        Request::unsigned(&compressed).header("content-encoding", "gzip").header(NAME, signature)
    };
    let bomb = gzip(&vec![b' '; 20 * 1_024 * 1_024]);
    assert!(bomb.len() < 32 * 1_024, "{}", bomb.len());

    let site = Site::new().await;
    assert_eq!(request(V7_HEX).send(site.addr).await, 202);
    assert_eq!(request(V1_HEX).send(site.addr).await, 401);
    let brotli = Request::signed(V1).header("content-encoding", "br");
    assert_eq!(brotli.send(site.addr).await, 415);
    let bombed = Request::signed(&bomb).header("content-encoding", "gzip");
    assert_eq!(bombed.send(site.addr).await, 413);
    let cut = Request::signed(&compressed[..40]).header("content-encoding", "gzip");
    assert_eq!(cut.send(site.addr).await, 400);
    assert_eq!(site.rows().await, 1);
    site.stop().await;

    let inflated = scheme(None, Some(BodyForm::Inflated));
    let site = Site::with(Plan { scheme: inflated, ..Plan::default() }).await;
    assert_eq!(request(V1_HEX).send(site.addr).await, 202);
    assert_eq!(request(V7_HEX).send(site.addr).await, 401);
    let signature = signature(&vec![b' '; 20 * 1_024 * 1_024], SECRET);
    let bombed =
        Request::unsigned(&bomb).header("content-encoding", "gzip").header(NAME, signature);
    assert_eq!(bombed.send(site.addr).await, 413);
    site.stop().await;
}

/// DQ-03: fifty identical deliveries at once, in one instant, are one row and one task, and all are
/// accepted.
#[tokio::test(flavor = "multi_thread")]
async fn dq_03_fifty_at_once_are_one() {
    let clock = Arc::new(Frozen(SystemClock.now()));
    let site = Site::with(Plan { clock, ..Plan::default() }).await;
    let statuses = join_all((0..50).map(|_| async { Request::v1().send(site.addr).await })).await;
    assert!(statuses.iter().all(|status| *status == 202), "{statuses:?}");
    assert_eq!((site.rows().await, site.calls("queue.send")), (1, 1));
    site.stop().await;
}

/// DQ-03: the same by a clock that moves meanwhile: one row, one task, and all are accepted.
#[tokio::test(flavor = "multi_thread")]
async fn dq_03_fifty_at_once_are_one_while_time_passes() {
    let site = Site::new().await;
    let statuses = join_all((0..50).map(|_| async { Request::v1().send(site.addr).await })).await;
    assert!(statuses.iter().all(|status| *status == 202), "{statuses:?}");
    assert_eq!((site.rows().await, site.calls("queue.send")), (1, 1));
    site.stop().await;
}
