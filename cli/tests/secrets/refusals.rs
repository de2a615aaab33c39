//! A platform that refuses, and repeats in its answer what it was given.

use crate::bench::{Folder, Ran};
use crate::disk::holders;
use crate::markers::{KEY, PAGE};
use crate::scripted::{Reply, Scripted};
use crate::watched::{run, url};

/// What the platform answers to every call.
fn refusals() -> Vec<(u16, &'static str, String)> {
    let flat = format!(r#"{{"code":"{KEY}","message":"key {KEY} is wrong","retryable":false}}"#);
    let nested = format!(
        r#"{{"error":{{"code":"NO","message":"{KEY}","correlation_id":"{KEY}","details":"{PAGE}"}}}}"#
    );
    let invalid = format!(
        r#"{{"detail":[{{"loc":["header","{KEY}"],"msg":"not {KEY}","input":"{PAGE}"}}]}}"#
    );
    let cut = format!(r#"{{"message":"{}{KEY}"}}"#, "x".repeat(290));
    let mut answers = vec![
        (401, "", flat.clone()),
        (401, "", nested.clone()),
        (403, "", format!(r#"{{"detail":"no such key: {KEY}"}}"#)),
        (402, "", flat.clone()),
        (429, "retry-after: 1\r\n", flat.clone()),
        (429, "retry-after: kqMarker0f1e-ApiKey-Z93x7w\r\n", nested),
        (422, "", invalid),
        (400, "", cut),
        (500, "", format!("<html>{KEY} {PAGE}</html>")),
        (503, "", flat.clone()),
        (301, "location: http://127.0.0.1:9/kqMarker0f1e-ApiKey-Z93x7w\r\n", flat),
    ];
    for body in [
        String::new(),
        format!("{PAGE} {KEY}"),
        format!("\"{PAGE}\""),
        format!(r#"{{"job_id":["{PAGE}"],"id":{{"{KEY}":1}},"status":"{PAGE}""#),
        format!(r#"{{"job_id":{{"{KEY}":"{PAGE}"}},"jobs":"{PAGE}","webhooks":"{PAGE}"}}"#),
        format!(r#"{{"job_id":"j1","status":["{KEY}"],"data":"{PAGE}","secret":["{KEY}"]}}"#),
    ] {
        answers.push((200, "", body));
    }
    answers
}

/// OB-01: whatever the platform answers, no verb shows the key or a page, and the ledger keeps
/// neither.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_refusals_that_repeat_the_key_are_told_without_it() {
    let each = refusals().into_iter().map(|(status, headers, body)| all(status, headers, body));
    futures_util::future::join_all(each).await;
}

const WEBHOOKS: [&[&str]; 4] = [
    &["webhooks", "list"],
    &["webhooks", "create", "--url", "https://example.org/"],
    &["webhooks", "update", "w1", "--active", "true"],
    &["webhooks", "delete", "w1"],
];

async fn all(status: u16, headers: &'static str, body: String) {
    let reply = Reply::Answer(status, headers, body.clone());
    let platform = Scripted::start(move |_, _| reply.clone()).await;
    let folder = Folder::new(&platform.url);
    let page = url("one");
    // Where another try may help, these verbs try for a minute.
    let is_cut = body.starts_with('{') && !body.ends_with('}');
    let is_final = body.contains("\"retryable\":false") || ![429, 500].contains(&status);
    let webhooks: &[&[&str]] = if is_final && !is_cut { &WEBHOOKS } else { &[] };
    let others: [&[&str]; 9] = [
        &["submit", &page, "--max-wait", "300ms"],
        &["submit", &page, "--batch", "--max-wait", "300ms"],
        &["submit", &page, "--crawl", "--max-wait", "300ms"],
        &["poll", "j1", "--max-wait", "300ms"],
        &["poll", "b1", "--kind", "batch", "--max-wait", "300ms"],
        &["poll", "--max-wait", "300ms"],
        &["extract", &page],
        &["jobs"],
        &["jobs", "show", "j1"],
    ];
    for args in others.iter().chain(webhooks) {
        let asked: &[&str] = match args[0] {
            // What is printed is the answer itself.
            "extract" if status == 200 => &[PAGE, KEY],
            _ => &[],
        };
        run(&folder, args, asked).await;
    }
    assert!(platform.calls() > 0);
    assert_eq!(holders(folder.path(), &[KEY]), Vec::<String>::new(), "{status} {body}");
}

/// OB-01: no answer at all, or a connection to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_silence_of_the_platform_is_told_without_the_key() {
    let platform = Scripted::start(|_, _| Reply::Reset).await;
    let page = url("one");
    for address in [platform.url.as_str(), "http://127.0.0.1:9"] {
        let folder = Folder::new(address);
        for args in [
            &["submit", &page, "--max-wait", "300ms"][..],
            &["poll", "j1", "--max-wait", "300ms"],
            &["extract", &page],
        ] {
            let ran = run(&folder, args, &[]).await;
            let is_told = |ran: &Ran| ran.code != 0 && !(ran.err.is_empty() && ran.out.is_empty());
            assert!(ran.iter().all(is_told), "{ran:?}");
        }
        assert_eq!(holders(folder.path(), &[KEY]), Vec::<String>::new());
    }
}
