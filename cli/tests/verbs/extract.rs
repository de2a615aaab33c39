//! `gleaner extract`: one page at once, recorded nowhere.

use crate::bench::{Folder, Ran};
use crate::scripted::{Reply, Scripted, error};

const ANSWER: &str = r#"{"data":{"html":"<p>gr\u00fc\u00dfe</p>\r\n  ","markdown":null},"metadata":{},"tokens_charged":1}"#;

async fn extract(reply: Reply, args: &[&str]) -> (Ran, Folder) {
    let platform = Scripted::start(move |_, _| reply.clone()).await;
    let folder = Folder::new(&platform.url);
    let ran = folder.run(&[&["extract", "https://example.com/"], args].concat()).await;
    (ran, folder)
}

/// The result comes byte for byte, and neither ledger nor results know of it.
#[tokio::test]
async fn the_result_is_printed_byte_for_byte_and_recorded_nowhere() {
    let answer = Reply::Answer(200, "", ANSWER.to_owned());
    let (ran, folder) = extract(answer.clone(), &[]).await;
    assert_eq!(ran.expect(0).out, "<p>gr\u{fc}\u{df}e</p>\r\n  ");
    assert!(!folder.path().join("gleaner-data").exists());
    let (ran, _) = extract(answer.clone(), &["--json"]).await;
    assert_eq!(ran.expect(0).out, format!("{ANSWER}\n"));
    let (ran, _) = extract(answer, &["--format", "markdown"]).await;
    assert!(ran.expect(65).out.is_empty());
}

/// CL-03: errors carry the platform's code and end with ours.
#[tokio::test]
async fn errors_carry_the_platforms_code() {
    for (status, code, exit) in [
        (401, "UNAUTHORIZED", 77),
        (402, "PAYMENT_REQUIRED", 79),
        (422, "INVALID_URL", 64),
        (429, "RATE_LIMITED", 75),
        (503, "SERVICE_UNAVAILABLE", 69),
    ] {
        let (ran, _) = extract(error(status, "", code, false), &[]).await;
        let ran = ran.expect(exit);
        assert!(ran.err.contains(&format!("{status} {code}")), "{}", ran.err);
        assert!(ran.out.is_empty());
    }
    let (ran, _) = extract(Reply::Reset, &[]).await;
    assert!(ran.expect(69).err.contains("may have taken effect"));
}
