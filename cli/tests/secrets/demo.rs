//! The demo: simulator and pipeline together.

use crate::bench::Folder;
use crate::markers::PAGE;
use crate::watched::run;

/// OB-01: neither the demo's key nor the secrets and signatures between its two processes.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_the_demo_is_silent() {
    let folder = Folder::new("http://127.0.0.1:9");
    std::fs::create_dir(folder.path().join("corpus")).unwrap();
    folder.write("corpus/a.html", PAGE);
    folder.write("corpus/a.md", PAGE);
    let args = [
        "demo", "--jobs", "20", "--seed", "2", "--speed", "100", "--faults", "gentle", "--corpus",
        "corpus",
    ];
    let ran = run(&folder, &args, &[]).await;
    for ran in &ran {
        assert_eq!(ran.code, 0, "{ran:?}");
        let all = format!("{}{}", ran.out, ran.err);
        assert!(all.contains("delivery accepted"), "the log is at its most talkative: {all}");
        for secret in ["demo-key", "whsec_", "sha256="] {
            assert!(!all.contains(secret), "{secret} is in {all}");
        }
    }
    let missing = run(&folder, &["demo", "--corpus", "nowhere"], &[]).await;
    assert!(missing.iter().all(|ran| ran.code != 0), "{missing:?}");
}
