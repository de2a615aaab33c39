//! Settings, folder, secrets and webhooks when something is wrong with them.

use std::os::unix::fs::PermissionsExt as _;

use domain::job::Kind;

use crate::bench::{Bench, Folder, quick};
use crate::doctor;
use crate::markers::{KEY as MARKED_KEY, SECRET, assert_none};

const URL: &str = "http://127.0.0.1:9/webhook";
const PUBLIC: (&str, &str) = ("GLEANER_PUBLIC_URL", URL);

/// A platform that nobody reaches.
fn nowhere() -> Folder {
    Folder::new("http://127.0.0.1:9")
}

/// Settings that cannot be read are all told, and nothing else is tried.
#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cannot_be_read_fail_alone() {
    let diagnosis = doctor(&nowhere(), &[("GLEANER_WORKRES", "1"), ("GLEANER_TICK", "soon")]).await;
    diagnosis
        .expect("settings", "failed", "2 settings are wrong")
        .expect("settings", "failed", "GLEANER_WORKRES")
        .expect("settings", "failed", "`tick`")
        .expect("all", "skipped", "without settings");
    assert_eq!(diagnosis.complaints().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_made_fails() {
    let folder = nowhere();
    folder.write("file", "");
    let diagnosis = doctor(&folder, &[("GLEANER_DATA_DIR", "file/data")]).await;
    diagnosis.expect("folder", "failed", "none can be made there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_others_may_read_is_told() {
    let folder = nowhere();
    let dir = folder.path().join("gleaner-data");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    doctor(&folder, &[]).await.expect("folder", "warning", "open to other users");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(doctor(&folder, &[]).await.of("folder").len(), 1);
}

/// SG-06, SM-04: secrets that are none, blank or open to others fail, and are not shown.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_cannot_be_used_fail() {
    let folder = nowhere();
    let file = folder.write("hooks", format!("{SECRET}\n"));
    let named = ("GLEANER_SECRETS_FILE", "hooks");
    let mode = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o644);
    let open = doctor(&folder, &[named]).await;
    open.expect("secrets", "failed", "open to other users");
    mode(0o600);
    let usable = doctor(&folder, &[named]).await;
    usable.expect("secrets", "ok", "the current secret in `hooks` names no webhook");
    let unfit = [named, ("GLEANER_SIGNING_PRESET", "standard-webhooks")];
    let unfit = doctor(&folder, &unfit).await;
    unfit.expect("secrets", "failed", "makes no key under the signature scheme");
    for (text, reason) in [
        ("  \n", "empty or blank"),
        ("[1]", "damaged"),
        (&format!("{{\"other\":\"{SECRET}\"}}"), "ambiguous"),
    ] {
        folder.write("hooks", text);
        let diagnosis = doctor(&folder, &[named]).await;
        diagnosis.expect("secrets", "failed", reason);
        assert_none(&diagnosis.ran.out, &[], text);
    }
    std::fs::remove_file(&file).unwrap();
    doctor(&folder, &[named]).await.expect("secrets", "failed", "does not exist");
    for diagnosis in [open, usable, unfit] {
        assert_none(&format!("{:?}", diagnosis.ran), &[], "doctor");
    }
    doctor(&folder, &[PUBLIC]).await.expect("secrets", "failed", "there is no signing secret");
}

/// What is wrong with a webhook at the platform is told with the command that mends it.
#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_deliver_nothing_fail() {
    let bench = Bench::new(quick()).await;
    let none = doctor(&bench.folder, &[PUBLIC]).await;
    for kind in Kind::ALL {
        none.expect("webhooks", "failed", &format!("no webhook delivers {kind}_completed"));
    }
    let create = ["webhooks", "create", "--json", "--url", URL];
    let created = bench.run(&create).await.expect(0).of_type("webhook");
    let ids: Vec<_> = created.iter().map(|row| row["id"].as_str().unwrap()).collect();
    let good = doctor(&bench.folder, &[PUBLIC]).await;
    assert_eq!(good.of("webhooks").len(), 4, "{:?}", good.of("webhooks"));
    assert!(good.of("webhooks").iter().all(|finding| finding.starts_with("ok: ")));
    bench.run(&["webhooks", "update", ids[0], "--active", "false"]).await.expect(0);
    let other = "http://127.0.0.1:9/other";
    bench.run(&["webhooks", "update", ids[1], "--url", other]).await.expect(0);
    // A secrets file that somebody else has.
    let elsewhere = ["--set", "secrets_file=other.json"];
    bench.run(&[&["webhooks", "delete", ids[2]][..], &elsewhere].concat()).await.expect(0);
    let again = [&create[..], &["--event", "crawl"], &elsewhere].concat();
    bench.run(&again).await.expect(0);
    let diagnosis = doctor(&bench.folder, &[PUBLIC]).await;
    diagnosis
        .expect("webhooks", "failed", &format!("{} of extract_completed is inactive", ids[0]))
        .expect("webhooks", "failed", &format!("{} delivers batch_completed to {other}", ids[1]))
        .expect("webhooks", "failed", "whose secret is not here")
        .expect("secrets", "warning", "which the account does not have");
}

/// A key that is missing, or that the platform refuses, fails; the rest is looked at all the same.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_refused_fail() {
    let bench = Bench::new(quick()).await;
    let wrong = doctor(&bench.folder, &[("GLEANER_API_KEY", MARKED_KEY)]).await;
    wrong.expect("api", "ok", "answered within").expect("key", "failed", "").expect(
        "webhooks",
        "skipped",
        "cannot be listed",
    );
    assert_none(&format!("{:?}", wrong.ran), &[], "doctor");
    let mut command = bench.folder.command(&["doctor", "--json"]);
    command.env_remove("GLEANER_API_KEY");
    let missing = crate::clinic::diagnose(command).await;
    missing.expect("api", "ok", "answered").expect("key", "failed", "there is no API key");
    let file = bench.folder.write("key", MARKED_KEY);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = doctor(&bench.folder, &[("GLEANER_API_KEY_FILE", "key")]).await;
    open.expect("key", "failed", "open to other users");
    assert_none(&format!("{:?}", open.ran), &[], "doctor");
}
