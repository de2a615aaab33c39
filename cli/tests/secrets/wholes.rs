//! Every verb while all goes well, and in bad weather.

use simulator::{ApiFaults, Config, Faults, JobFaults};

use crate::bench::Ran;
use crate::disk::{assert_kept, files, holders};
use crate::http::{NAME, Request, signature};
use crate::markers::{BODY, KEY, OLD_SECRET, PAGE, QUERY, SECRET, assert_none};
use crate::serving::Serving;
use crate::watched::{Account, FORMS, command, expect, run, url};

fn ids(ran: &Ran) -> Vec<String> {
    let rows = ran.json();
    let ids = rows.iter().filter_map(|row| row["job_id"].as_str());
    ids.map(str::to_owned).collect()
}

/// Submits in every shape.
async fn submit(account: &Account, code: Option<i32>) -> Vec<String> {
    let folder = &account.folder;
    let list: Vec<String> = (0..3).map(|number| url(&number.to_string())).collect();
    folder.write("urls.txt", list.join("\n"));
    let mut known = Vec::new();
    for shape in [&[][..], &["--batch"], &["--crawl", "--limit", "2"]] {
        for dry in [&["--dry-run"][..], &[]] {
            let args = [&["submit", "--file", "urls.txt"], shape, dry].concat();
            let ran = run(folder, &args, &[]).await;
            let is_expected = |ran: &Ran| code.is_none_or(|code| ran.code == code);
            assert!(ran.iter().all(is_expected), "{ran:?}");
            known.extend(ids(&ran[1]));
        }
    }
    known
}

/// Looks at everything that is there.
async fn look(account: &Account, jobs: &[String]) {
    let folder = &account.folder;
    expect(folder, &["jobs"], &[], 0).await;
    expect(folder, &["jobs", "counts"], &[], 0).await;
    expect(folder, &["results", "list"], &[], 0).await;
    for job in jobs {
        run(folder, &["jobs", "show", job], &[]).await;
        run(folder, &["jobs", "redrive", job], &[]).await;
        run(folder, &["results", "path", job], &[]).await;
        run(folder, &["results", "show", job], &[PAGE]).await;
    }
    run(folder, &["jobs", "show", "nobody"], &[]).await;
    run(folder, &["results", "show", "nobody"], &[]).await;
}

/// OB-01: every verb while all goes well.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_verbs_are_silent_while_all_goes_well() {
    let account = Account::new(Config::default()).await;
    let folder = &account.folder;
    let jobs = submit(&account, Some(0)).await;
    assert!(jobs.len() >= 7, "{jobs:?}");
    for job in &jobs {
        expect(folder, &["poll", job, "--base", "10ms", "--cap", "100ms"], &[], 0).await;
    }
    expect(folder, &["poll"], &[], 0).await;
    let shown = expect(folder, &["results", "show", &jobs[0]], &[PAGE], 0).await;
    assert!(shown.iter().all(|ran| ran.out.contains(PAGE)), "the pages are marked: {shown:?}");
    look(&account, &jobs).await;
    let page = url("extract");
    let extracted = expect(folder, &["extract", &page], &[PAGE, QUERY], 0).await;
    assert!(extracted.iter().all(|ran| ran.out.contains(PAGE)), "{extracted:?}");
    for args in [&["doctor"][..], &["settings"], &["settings", "--markdown"], &["exit-codes"]] {
        expect(folder, args, &[], 0).await;
    }
    let stored = holders(folder.path(), &[PAGE]);
    assert!(!stored.is_empty() && stored.iter().all(|path| path.contains("/results/")));
    assert_eq!(holders(folder.path(), &[KEY]), Vec::<String>::new());
    account.platform.stop.stop().await;
}

/// OB-01: every verb while answers fail, hang, are cut or lost, and jobs fail.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_verbs_are_silent_in_bad_weather() {
    let api = ApiFaults {
        errors: 0.15,
        payment_required: 0.05,
        lost_answers: 0.2,
        cut_bodies: 0.2,
        slow_bodies: 0.1,
        ..ApiFaults::default()
    };
    let jobs =
        JobFaults { fail_retryable: 0.2, fail_final: 0.2, cancelled: 0.1, ..JobFaults::default() };
    let faults = Faults { api, jobs, ..Faults::default() };
    let account = Account::new(Config { seed: 3, faults, ..Config::default() }).await;
    let jobs = submit(&account, None).await;
    for job in &jobs {
        let args = ["poll", job, "--base", "10ms", "--cap", "100ms", "--max-wait", "5s"];
        run(&account.folder, &args, &[]).await;
    }
    run(&account.folder, &["poll", "--max-wait", "5s"], &[]).await;
    look(&account, &jobs).await;
    let page = url("extract");
    run(&account.folder, &["extract", &page], &[PAGE, QUERY]).await;
    assert_eq!(holders(account.folder.path(), &[KEY]), Vec::<String>::new());
    account.platform.stop.stop().await;
}

/// OB-01: registration, deliveries by the platform itself, storing, stop; then what is on disk.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_a_served_account_keeps_secrets_in_one_file() {
    for form in FORMS {
        let account = Account::new(Config::default()).await;
        let folder = &account.folder;
        let mut serve = command(folder, form, &["serve", "--listen", "127.0.0.1:0"]);
        serve
            .env("GLEANER_WEBHOOK_SECRET", SECRET)
            .env("GLEANER_WEBHOOK_SECRET_PREVIOUS", OLD_SECRET)
            .env("GLEANER_LIMITS_SECRET_COOLDOWN", "100ms");
        let mut server = Serving::start(serve).await;
        let address = format!("http://{}/webhook", server.addr);
        expect(folder, &["webhooks", "create", "--url", &address], &[], 0).await;
        expect(folder, &["webhooks", "list"], &[], 0).await;
        let page = url("one");
        expect(folder, &["submit", &page], &[], 0).await;
        server.wait_for("stored").await;
        // A delivery under the retired secret is genuine as well.
        let body = format!(r#"{{"job_id":"j9","event_type":"extract_completed","x":"{BODY}"}}"#);
        let signed = signature(body.as_bytes(), OLD_SECRET);
        let request = Request::unsigned(body.as_bytes()).header(NAME, &signed);
        assert_eq!(request.send(server.addr).await, 202);
        let (code, talk) = server.stop("TERM").await;
        assert_eq!(code, Some(0), "{talk}");
        assert_none(&talk, &[], "the server");
        assert!(!talk.contains(&signed), "{talk}");
        assert!(talk.contains("delivery accepted"), "the log is at its most talkative: {talk}");

        let text = std::fs::read_to_string(folder.path().join("gleaner-data/secrets.json"));
        let file: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        let kept = file["secrets"].as_array().unwrap();
        let kept: Vec<&str> = kept.iter().map(|kept| kept["secret"].as_str().unwrap()).collect();
        assert_eq!(kept.len(), 3);
        assert!(!kept.iter().any(|secret| talk.contains(secret)), "{talk}");
        assert_kept(folder.path(), &[&kept[..], &[KEY, SECRET, OLD_SECRET]].concat());
        assert_eq!(holders(folder.path(), &[BODY, &signed]), Vec::<String>::new());
        assert!(files(folder.path()).iter().any(|path| path.ends_with("ledger.db")));
        account.platform.stop.stop().await;
    }
}
