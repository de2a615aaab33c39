//! Runs of the binary whose output is searched.

use std::sync::Arc;

use simulator::{Config, Running, SystemClock};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::bench::{Folder, Ran, ended};
use crate::markers::{KEY, PAGE, QUERY, assert_none};

/// Both forms of output.
pub(crate) const FORMS: [&[&str]; 2] = [&[], &["--json"]];

/// Verbs whose rows tell which URL a job is for, on standard output and nowhere else.
const URL_VERBS: [&str; 4] = ["submit", "poll", "jobs", "results"];

/// The process at its most talkative, with the marked key.
pub(crate) fn command(folder: &Folder, form: &[&str], args: &[&str]) -> Command {
    let mut command = folder.command(&[&["--log", "trace"], form, args].concat());
    command.env("GLEANER_API_KEY", KEY).env("RUST_BACKTRACE", "1").env("RUST_LOG", "trace");
    command
}

/// Fails when a process has said what it must not. Standard output may show what was asked for.
#[track_caller]
pub(crate) fn assert_silent(ran: &Ran, asked: &[&str], what: &str) {
    assert_none(&ran.err, &[], &format!("standard error of {what}"));
    assert_none(&ran.out, asked, &format!("standard output of {what}"));
    assert!(!ran.err.contains("panicked"), "{what}: {ran:?}");
}

/// Runs a verb in both forms.
pub(crate) async fn run(folder: &Folder, args: &[&str], asked: &[&str]) -> [Ran; 2] {
    run_with(folder, &[], args, asked).await
}

/// Runs a verb in both forms, with further variables.
pub(crate) async fn run_with(
    folder: &Folder,
    environment: &[(&str, &str)],
    args: &[&str],
    asked: &[&str],
) -> [Ran; 2] {
    let mut ran = Vec::new();
    let tells_urls = args.first().is_some_and(|verb| URL_VERBS.contains(verb));
    let urls: &[&str] = if tells_urls { &[QUERY] } else { &[] };
    let asked = [asked, urls].concat();
    for form in FORMS {
        let mut command = command(folder, form, args);
        command.envs(environment.iter().copied());
        let one = ended(command.spawn().unwrap()).await;
        assert_silent(&one, &asked, &format!("{form:?} {args:?} {environment:?}"));
        ran.push(one);
    }
    ran.try_into().unwrap()
}

/// Runs a verb that must end with a code.
pub(crate) async fn expect(folder: &Folder, args: &[&str], asked: &[&str], code: i32) -> [Ran; 2] {
    let ran = run(folder, args, asked).await;
    for one in &ran {
        assert_eq!(one.code, code, "{args:?}: {one:?}");
    }
    ran
}

/// A folder, and a simulated platform that the marked key opens and whose pages are marked.
pub(crate) struct Account {
    pub(crate) folder: Folder,
    pub(crate) platform: Running,
}

impl Account {
    pub(crate) async fn new(config: Config) -> Self {
        let corpus = tempfile::tempdir().unwrap();
        std::fs::write(corpus.path().join("a.html"), format!("<p>{PAGE}</p>")).unwrap();
        std::fs::write(corpus.path().join("a.md"), PAGE).unwrap();
        let config = Config {
            api_key: KEY.to_owned(),
            speed: 1_000.0,
            hang_max_secs: 1.0,
            corpus: Some(corpus.path().to_owned()),
            ..config
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let platform = simulator::start(listener, config, Arc::new(SystemClock)).unwrap();
        let folder = Folder::new(&platform.base_url());
        Self { folder, platform }
    }
}

/// A page's address with a marked query.
pub(crate) fn url(name: &str) -> String {
    format!("https://example.com/{name}?token={QUERY}")
}
