//! `gleaner submit`: each URL is paid for once.

use simulator::{Config, Faults};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::bench::{Bench, Folder, ended, list, quick};
use crate::scripted::{Scripted, error};

/// A second run of the same command submits nothing and says so.
#[tokio::test]
async fn the_same_command_again_submits_nothing_twice() {
    let bench = Bench::new(quick()).await;
    let (text, urls) = list(25);
    bench.folder.write("urls.txt", format!("\u{feff}# mine\r\n{text}\r\n"));
    let first = bench.run(&["submit", "--file", "urls.txt", "--json"]).await.expect(0);
    assert_eq!(first.of_type("submission").len(), 25);
    assert_eq!(first.of_type("summary")[0]["submitted"], 25);
    assert_eq!(bench.urls(), urls);
    // Comments and line ends are no part of what a run is named after.
    bench.folder.write("urls.txt", &text);
    let second = bench.run(&["submit", "--file", "urls.txt", "--json"]).await.expect(0);
    let summary = &second.of_type("summary")[0];
    assert_eq!((&summary["known"], &summary["submitted"]), (&25.into(), &0.into()));
    assert_eq!(summary["run"], first.of_type("summary")[0]["run"]);
    for row in second.of_type("submission") {
        assert_eq!(row["outcome"], "known");
        let same = |other: &serde_json::Value| other["position"] == row["position"];
        let before = first.of_type("submission").into_iter().find(same).unwrap();
        assert_eq!(before["job_id"], row["job_id"]);
    }
    assert_eq!(bench.urls(), urls);
}

/// A named run whose list has grown pays for what is new alone.
#[tokio::test]
async fn a_named_run_goes_on_where_its_list_has_grown() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(3).0);
    bench.run(&["submit", "--file", "urls.txt", "--run", "daily"]).await.expect(0);
    let (text, urls) = list(5);
    bench.folder.write("urls.txt", text);
    let grown = ["submit", "--file", "urls.txt", "--run", "daily", "--json"];
    let summary = &bench.run(&grown).await.expect(0).of_type("summary")[0];
    assert_eq!((&summary["known"], &summary["submitted"]), (&3.into(), &2.into()));
    assert_eq!(bench.urls(), urls);
}

/// One submission at a time, so slowly that a list of sixty takes far longer than any test waits
/// before it interferes.
const SLOWLY: [&str; 6] =
    ["--set", "pace.start=1", "--set", "pace.ceiling=1", "--set", "pace.spacing=1s"];

/// Killed in the middle and run again: the platform's books show one job per URL.
#[tokio::test]
async fn a_kill_in_the_middle_makes_no_second_job() {
    let bench = Bench::new(quick()).await;
    let (text, urls) = list(60);
    bench.folder.write("urls.txt", text);
    let args = ["submit", "--file", "urls.txt", "--json"];
    let slowly = [args.as_slice(), &SLOWLY].concat();
    let mut child = bench.folder.command(&slowly).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        lines.next_line().await.unwrap().expect("three submissions before the kill");
    }
    child.kill().await.unwrap();
    assert!(bench.urls().len() < 60, "the kill came in the middle");
    bench.run(&args).await.expect(0);
    assert_eq!(bench.urls(), urls);
}

/// Two processes with one list at the same time make one job per URL.
#[tokio::test]
async fn two_at_once_make_no_second_job() {
    let bench = Bench::new(quick()).await;
    let (text, urls) = list(40);
    bench.folder.write("urls.txt", text);
    let args = ["submit", "--file", "urls.txt", "--json"];
    let (one, other) = tokio::join!(bench.run(&args), bench.run(&args));
    let sum = |name: &str, ran: &crate::bench::Ran| ran.of_type("summary")[0][name].as_u64();
    let (one, other) = (one.expect(0), other.expect(0));
    assert_eq!(sum("submitted", &one).unwrap() + sum("submitted", &other).unwrap(), 40);
    assert_eq!(bench.urls(), urls);
}

/// Answers that are lost are looked for, and nobody pays twice.
#[tokio::test]
async fn lost_answers_are_found_again() {
    let mut faults = Faults::none();
    faults.api.lost_answers = 0.3;
    let bench = Bench::new(Config { faults, ..quick() }).await;
    let (text, urls) = list(30);
    bench.folder.write("urls.txt", text);
    let ran = bench.run(&["submit", "--file", "urls.txt", "--json"]).await.expect(0);
    let summary = &ran.of_type("summary")[0];
    assert_eq!((&summary["left"], &summary["known"]), (&0.into(), &0.into()));
    let lost = bench.books().iter().filter(|job| job["answer_lost"] == true).count();
    assert!(lost > 0);
    // They were paid for in this call as well.
    assert_eq!((&summary["found"], &summary["tokens_max"]), (&lost.into(), &30.into()));
    let found = ran.of_type("submission").iter().filter(|row| row["outcome"] == "found").count();
    assert_eq!(found, lost);
    assert!(ran.err.contains("an answer was lost"), "{}", ran.err);
    assert_eq!(bench.urls(), urls);
}

/// CL-03: a reader that goes away ends the output, not the work.
#[tokio::test]
async fn a_closed_pipe_is_no_error() {
    let bench = Bench::new(quick()).await;
    let (text, urls) = list(40);
    bench.folder.write("urls.txt", text);
    let mut child = bench.folder.command(&["submit", "--file", "urls.txt"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().expect("a first line");
    drop(lines);
    ended(child).await.expect(0);
    assert_eq!(bench.urls(), urls);
}

/// A full disk below standard output ends the call; the same command goes on.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn output_that_cannot_be_written_ends_the_call() {
    let bench = Bench::new(quick()).await;
    let (text, urls) = list(40);
    bench.folder.write("urls.txt", text);
    let args = ["submit", "--file", "urls.txt", "--json"];
    let slowly = [args.as_slice(), &SLOWLY].concat();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = ended(bench.folder.command(&slowly).stdout(full).spawn().unwrap()).await.expect(71);
    assert!(ran.err.contains("cannot write to standard output"), "{}", ran.err);
    assert!(bench.books().len() < 40);
    bench.run(&args).await.expect(0);
    assert_eq!(bench.urls(), urls);
}

#[tokio::test]
async fn standard_input_is_a_list_like_any_other() {
    let bench = Bench::new(quick()).await;
    let text = "https://example.com/a\tmine\r\nhttps://example.com/b\n";
    for args in [["submit", "-", "--json"].as_slice(), &["submit", "--file", "-", "--json"]] {
        let ran = bench.folder.run_with(args, text.as_bytes()).await.expect(0);
        let mut rows = ran.of_type("submission");
        rows.sort_by_key(|row| row["position"].as_u64());
        assert_eq!((&rows[0]["ref"], &rows[1]["ref"]), (&"mine".into(), &().into()));
    }
    assert_eq!(bench.books().len(), 2);
}

#[tokio::test]
async fn batches_and_crawls_are_one_job_each() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(1_001).0);
    let batch = ["submit", "--file", "urls.txt", "--batch", "--format", "markdown", "--json"];
    let ran = bench.run(&batch).await.expect(0);
    let summary = &ran.of_type("summary")[0];
    assert_eq!((&summary["submitted"], &summary["tokens_max"]), (&2.into(), &1_001.into()));
    let crawl =
        ["submit", "--crawl", "--depth", "3", "--limit", "7", "--json", "https://example.com/"];
    let ran = bench.run(&[crawl.as_slice(), &["--ref", "site"]].concat()).await.expect(0);
    let row = &ran.of_type("submission")[0];
    assert_eq!((&row["kind"], &row["ref"]), (&"crawl".into(), &"site".into()));
    assert_eq!(row["tokens_max"], 7);
    let kinds: Vec<_> = bench.books().iter().map(|job| job["kind"].clone()).collect();
    assert_eq!(kinds, ["batch", "batch", "crawl"]);
    assert_eq!(bench.books()[0]["formats"], serde_json::json!(["markdown"]));
}

/// A dry run sends nothing, needs no key, leaves no folder behind, and knows what is known.
#[tokio::test]
async fn a_dry_run_shows_what_would_be_paid() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(3).0);
    let args = ["submit", "--file", "urls.txt", "--run", "r", "--dry-run", "--json"];
    let without_key = bench.folder.command(&args).env_remove("GLEANER_API_KEY").spawn().unwrap();
    let ran = ended(without_key).await.expect(0);
    assert_eq!(ran.of_type("summary")[0]["tokens_max"], 3);
    assert!(!bench.folder.path().join("gleaner-data").exists());
    assert!(bench.books().is_empty());
    bench.run(&["submit", "--file", "urls.txt", "--run", "r"]).await.expect(0);
    bench.folder.write("urls.txt", list(5).0);
    let summary = &bench.run(&args).await.expect(0).of_type("summary")[0];
    let wanted = serde_json::json!({
        "version": 1, "type": "summary", "run": "r", "new_run": false, "submitted_before": 0,
        "dry_run": true, "total": 5, "submitted": 0, "found": 0, "known": 3, "refused": 0, "ambiguous": 0, "left": 2, "tokens_max": 2,
    });
    assert_eq!(*summary, wanted);
    assert_eq!(bench.books().len(), 3);
}

/// What is left over ends with 75, and the same command goes on.
#[tokio::test]
async fn what_is_left_over_is_gone_on_with() {
    let config = Config { work_concurrency_limit: 2, speed: 25.0, ..Config::default() };
    let bench = Bench::new(config).await;
    let (text, urls) = list(12);
    bench.folder.write("urls.txt", text);
    let args = ["submit", "--file", "urls.txt", "--json"];
    let short = [args.as_slice(), &["--max-wait", "1ms"]].concat();
    let ran = bench.run(&short).await.expect(75);
    assert!(ran.of_type("summary")[0]["left"].as_u64().unwrap() > 0);
    assert!(ran.err.contains("run the same command again"), "{}", ran.err);
    bench.run(&args).await.expect(0);
    assert_eq!(bench.urls(), urls);
}

/// CL-06: the account in the way ends the call at once, with a code of its own; nothing is lost.
#[tokio::test]
async fn the_account_in_the_way_has_codes_of_its_own() {
    let mut faults = Faults::none();
    faults.api.payment_required = 1.0;
    let bench = Bench::new(Config { faults, ..quick() }).await;
    let args = ["submit", "https://example.com/a", "https://example.com/b", "--json"];
    let ran = bench.run(&args).await.expect(79);
    assert_eq!(ran.of_type("summary")[0]["left"], 2);
    assert!(bench.books().is_empty());
    bench.platform.with_platform(|platform, _| platform.set_faults(Faults::none()));
    bench.run(&args).await.expect(0);
    assert_eq!(bench.books().len(), 2);
    let wrong_key = bench.folder.command(&["submit", "https://example.com/c"]);
    let mut wrong_key = wrong_key;
    let child = wrong_key.env("GLEANER_API_KEY", "another-key").spawn().unwrap();
    let ran = ended(child).await.expect(77);
    assert!(ran.err.contains("hint: check the API key"), "{}", ran.err);
    assert_eq!(bench.books().len(), 2);
}

/// The day's spend is a bound that no retry passes.
#[tokio::test]
async fn the_spend_of_the_day_is_kept() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(5).0);
    let args = ["submit", "--file", "urls.txt", "--json", "--max-wait", "1ms"];
    let args = [args.as_slice(), &["--set", "limits.spend_per_day=2"]].concat();
    let ran = bench.run(&args).await.expect(75);
    assert_eq!(ran.of_type("summary")[0]["submitted"], 2);
    let waiting = |row: &serde_json::Value| row["error"]["code"] == "spent";
    assert!(ran.of_type("submission").iter().any(waiting), "{ran:?}");
    bench.run(&args).await.expect(75);
    assert_eq!(bench.books().len(), 2);
}

/// CL-06: a quota that says that waiting does not help is not waited for.
#[tokio::test]
async fn a_quota_ends_the_call_at_once() {
    let quota = Scripted::start(|_, _| error(429, "", "QUOTA_EXCEEDED", false)).await;
    let folder = Folder::new(&quota.url);
    let ran = folder.run(&["submit", "https://example.com/a", "--json"]).await.expect(75);
    assert_eq!(ran.of_type("submission")[0]["error"]["code"], "QUOTA_EXCEEDED");
}

/// What the platform refuses for good is told, and not sent again.
#[tokio::test]
async fn what_is_refused_for_good_ends_with_2() {
    let platform = Scripted::start(|_, _| error(422, "", "INVALID_URL", false)).await;
    let folder = Folder::new(&platform.url);
    let args = ["submit", "https://example.com/a"];
    let ran = folder.run(&args).await.expect(2);
    assert_eq!(ran.out, "0\t-\t-\trefused\tINVALID_URL: scripted\n");
    let calls = platform.calls();
    folder.run(&args).await.expect(2);
    assert_eq!(platform.calls(), calls);
}

/// An interrupt lets what was begun finish, and the same command goes on.
#[cfg(unix)]
#[tokio::test]
async fn an_interrupt_stops_between_two_submissions() {
    let bench = Bench::new(quick()).await;
    let (text, urls) = list(60);
    bench.folder.write("urls.txt", text);
    let args = ["submit", "--file", "urls.txt", "--json"];
    let slowly = [args.as_slice(), &SLOWLY].concat();
    let mut child = bench.folder.command(&slowly).spawn().unwrap();
    let pid = child.id().unwrap().to_string();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        lines.next_line().await.unwrap().expect("three submissions before the interrupt");
    }
    let kill = tokio::process::Command::new("kill").args(["-TERM", &pid]).status().await.unwrap();
    assert!(kill.success());
    let mut told = 3;
    while let Some(line) = lines.next_line().await.unwrap() {
        told += usize::from(line.contains("\"submitted\"") && line.contains("\"submission\""));
    }
    let ran = ended(child).await;
    assert_eq!(ran.code, 75, "{ran:?}");
    assert_eq!(bench.books().len(), told, "every job that was begun was told of");
    bench.run(&args).await.expect(0);
    assert_eq!(bench.urls(), urls);
}

/// A platform that is down is named at once, and has a code of its own; one that throttles
/// answers.
#[tokio::test]
async fn a_wait_says_what_it_waits_for() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let args = ["submit", "https://example.com/a", "--max-wait", "1s"];
    let ran = Folder::new(&closed).run(&args).await.expect(69);
    let said = "the platform does not answer (Connection refused";
    assert_eq!(ran.err.matches(said).count(), 1, "{}", ran.err);
    assert!(ran.err.contains("UTC, interrupt to go on later"), "{}", ran.err);
    let script = |_: usize, _: &str| error(429, "retry-after: 1\r\n", "RATE_LIMITED", true);
    let throttling = Scripted::start(script).await;
    let ran = Folder::new(&throttling.url).run(&args).await.expect(75);
    assert!(ran.err.contains("throttled"), "{}", ran.err);
    assert!(ran.err.contains("interrupt to go on later"), "{}", ran.err);
}

/// What would be paid again is said before it is paid.
#[tokio::test]
async fn urls_of_another_run_are_named_before_they_are_paid_again() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(3).0);
    let args = ["submit", "--file", "urls.txt", "--json"];
    let first = bench.run(&args).await.expect(0);
    let summary = first.of_type("summary")[0].clone();
    assert_eq!((&summary["new_run"], &summary["submitted_before"]), (&false.into(), &0.into()));
    assert!(!first.err.contains("paid again"), "{}", first.err);
    bench.folder.write("urls.txt", list(4).0);
    let dry = bench.run(&[args.as_slice(), &["--dry-run"]].concat()).await.expect(0);
    for ran in [dry, bench.run(&args).await.expect(0)] {
        let summary = &ran.of_type("summary")[0];
        assert_eq!((&summary["new_run"], &summary["submitted_before"]), (&true.into(), &3.into()));
        assert!(ran.err.contains("note: 3 of 4 new submissions hold URLs"), "{}", ran.err);
    }
    let again = bench.run(&args).await.expect(0);
    assert!(!again.err.contains("paid again"), "{}", again.err);
    assert_eq!(again.of_type("summary")[0]["known"], 4);
}

/// A space where a tab belongs would make the ref a part of the URL.
#[tokio::test]
async fn a_space_is_no_tab() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", "https://example.com/a\tone\nhttps://example.com/b two\n");
    let ran = bench.run(&["submit", "--file", "urls.txt"]).await.expect(65);
    assert!(ran.err.contains("line 2: the URL holds white space; a tab goes"), "{}", ran.err);
    bench.run(&["submit", "https://example.com/b two"]).await.expect(64);
    bench.run(&["extract", "https://example.com/b two"]).await.expect(64);
    assert!(bench.books().is_empty());
}
