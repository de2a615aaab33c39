//! Command lines that hold a secret where none belongs.

use crate::bench::Folder;
use crate::markers::{KEY, QUERY, SECRET};
use crate::watched::run;

/// OB-01: a command line that is wrong is told without the values that may be secret: of flags
/// that take settings or addresses, and of flags that are not known.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_arguments_are_not_quoted() {
    let folder = Folder::new("http://127.0.0.1:9");
    let user = format!("https://user:{KEY}@example.org/");
    let fragment = format!("https://example.org/?token={QUERY}#x");
    let (key_flag, key_pair) = (format!("--api-key={KEY}"), format!("api_key={KEY}"));
    let (secret_pair, url_pair) = (format!("webhook_secret={SECRET}"), format!("api_url={user}"));
    for (args, code) in [
        (&[key_flag.as_str(), "settings"][..], 64),
        (&["--api-key", KEY, "settings"], 64),
        (&["--set", KEY, "settings"], 64),
        (&["--set", &key_pair, "settings"], 78),
        (&["--set", &secret_pair, "serve"], 78),
        (&["--set", &url_pair, "settings"], 78),
        (&["--api-url", &user, "settings"], 78),
        (&["--api-url", &fragment, "poll"], 78),
        (&["webhooks", "create", "--url", &user], 64),
        (&["webhooks", "create", "--url", &fragment], 64),
        (&["webhooks", "update", "w1", "--url", &user], 64),
        (&["webhooks", "create", "--secret", SECRET], 64),
    ] {
        let ran = run(&folder, args, &[]).await;
        assert!(ran.iter().all(|ran| ran.code == code && !ran.err.is_empty()), "{args:?}: {ran:?}");
    }
}
