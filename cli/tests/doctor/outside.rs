//! The platform and the receiver as they answer from outside.

use std::time::Duration;

use domain::ports::Clock as _;
use domain::time::{Timestamp, after, before};
use system::SystemClock;

use crate::bench::Folder;
use crate::clinic::{Diagnosis, diagnose};
use crate::doctor;
use crate::scripted::{Reply, Scripted, error};

/// A platform whose health is this; everything else is refused.
async fn platform(status: u16, health: &str, timestamp: Option<Timestamp>) -> (Scripted, Folder) {
    let stamp = timestamp.map(|at| format!(r#","timestamp":"{at:.0}""#)).unwrap_or_default();
    let body = format!(r#"{{"service":"x","status":"{health}","version":"9"{stamp}}}"#);
    let scripted = Scripted::start(move |_, line| {
        if line.starts_with("get /health") {
            Reply::Answer(status, "", body.clone())
        } else {
            error(401, "", "UNAUTHORIZED", false)
        }
    })
    .await;
    let folder = Folder::new(&scripted.url);
    (scripted, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_platforms_word_about_itself_is_told() {
    for (status, word, outcome) in [
        (200, "ok", "ok"),
        (200, "degraded", "warning"),
        (503, "unavailable", "failed"),
        (200, "sleepy", "warning"),
    ] {
        let (_platform, folder) = platform(status, word, None).await;
        let diagnosis = doctor(&folder, &[]).await;
        diagnosis.expect("api", outcome, "answered within");
        diagnosis.expect("clock", "skipped", "no time to compare with");
        diagnosis.expect("key", "failed", "");
    }
}

/// A clock that is wrong is told with what it breaks.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_wrong_is_told_with_what_it_breaks() {
    let now = SystemClock.now();
    let minutes = |minutes| Duration::from_mins(minutes);
    let (_platform, folder) = platform(200, "ok", Some(now)).await;
    doctor(&folder, &[]).await.expect("clock", "ok", "agree");
    let (_platform, folder) = platform(200, "ok", Some(after(now, minutes(1)))).await;
    // The settings of these tests make lost answers be looked for after a second.
    let usual = ("GLEANER_LIMITS_ADOPTION_MARGIN", "2m");
    let diagnosis = doctor(&folder, &[usual]).await;
    diagnosis.expect("clock", "warning", "s behind the platform's; nothing breaks yet");
    doctor(&folder, &[]).await.expect("clock", "failed", "looked for at the wrong time");
    let (_platform, folder) = platform(200, "ok", Some(before(now, minutes(10)))).await;
    let stripe = ("GLEANER_SIGNING_PRESET", "stripe");
    let diagnosis = doctor(&folder, &[usual, stripe]).await;
    diagnosis.expect("clock", "failed", "s ahead of the platform's").expect(
        "clock",
        "failed",
        "refused as stale or early (the tolerance is 300 s)",
    );
}

/// An API that is not there, or is none, fails once; what needs it is skipped.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_does_not_answer_fails_once() {
    let nobody = Folder::new("http://127.0.0.1:9");
    let page = Scripted::start(|_, _| Reply::Answer(200, "", "<html>a hotel's</html>".to_owned()));
    let page = page.await;
    let other = Scripted::start(|_, _| Reply::Answer(404, "", String::new())).await;
    let mute = Scripted::start(|_, _| Reply::Hang).await;
    for folder in [nobody, Folder::new(&page.url), Folder::new(&other.url), Folder::new(&mute.url)]
    {
        let diagnosis = doctor(&folder, &[("GLEANER_LIMITS_CALL_TIMEOUT", "1s")]).await;
        diagnosis.expect("api", "failed", "no usable answer from http://127.0.0.1");
        for check in ["clock", "key", "webhooks"] {
            diagnosis.expect(check, "skipped", "the API does not answer");
        }
    }
}

/// Probes a receiver that answers deliveries with this status.
async fn probed(health: u16, status: u16, headers: &'static str) -> Diagnosis {
    let receiver = Scripted::start(move |_, line| {
        let status = if line.starts_with("get /healthz ") { health } else { status };
        Reply::Answer(status, headers, String::new())
    })
    .await;
    let url = format!("{}/webhook", receiver.url);
    let folder = Folder::new("http://127.0.0.1:9");
    doctor(&folder, &[("GLEANER_PUBLIC_URL", &url)]).await
}

/// SG-08: an unsigned delivery must be refused with 401 and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_must_refuse_what_nobody_signed() {
    probed(200, 401, "").await.expect("receiver", "ok", "is answered 401");
    for (status, headers, said) in [
        (200, "", "takes what anybody sends"),
        (202, "", "takes what anybody sends"),
        (301, "location: http://127.0.0.1:9/\r\n", "a redirect"),
        (400, "", "and a receiver of gleaner answers 401"),
        (403, "", "turns deliveries away"),
        (404, "", "nothing receives at this path"),
        (500, "", "no usable secret, or does not run"),
        (503, "", "no usable secret, or does not run"),
    ] {
        let diagnosis = probed(200, status, headers).await;
        diagnosis.expect("receiver", "failed", said);
        diagnosis.expect("receiver", "ok", "/healthz answers 200");
    }
    // A proxy may hand on deliveries alone.
    let diagnosis = probed(404, 401, "").await;
    diagnosis.expect("receiver", "warning", "/healthz answers 404");
    diagnosis.expect("receiver", "ok", "is answered 401");
}

/// Nothing is posted to an address that nobody says is ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_receiver_is_not_posted_to() {
    let receiver = Scripted::start(|_, line| {
        let status = if line.starts_with("get /healthz ") { 200 } else { 401 };
        Reply::Answer(status, "", String::new())
    })
    .await;
    // Leads here, and does not say so.
    let url = receiver.url.replace("127.0.0.1", "0.0.0.0") + "/webhook";
    let folder = Folder::new("http://127.0.0.1:9");
    let diagnosis = doctor(&folder, &[("GLEANER_PUBLIC_URL", &url)]).await;
    diagnosis.expect("receiver", "skipped", "was not tried").expect("receiver", "ok", "200");
    assert_eq!(receiver.calls(), 1);
    let mut command = folder.command(&["doctor", "--json", "--probe-receiver"]);
    command.env("GLEANER_PUBLIC_URL", &url);
    diagnose(command).await.expect("receiver", "ok", "an unsigned delivery");
    assert_eq!(receiver.calls(), 3);
}

/// A receiver that does not answer at all fails once.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_not_there_fails_once() {
    let folder = Folder::new("http://127.0.0.1:9");
    let variables = [("GLEANER_PUBLIC_URL", "http://127.0.0.1:9/webhook")];
    let diagnosis = doctor(&folder, &variables).await;
    diagnosis.expect("receiver", "failed", "http://127.0.0.1:9/healthz cannot be reached");
    assert_eq!(diagnosis.of("receiver").len(), 1);
}
