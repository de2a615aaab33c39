//! Bad input, case by case: message and exit code are released texts, nothing is sent, and the
//! data folder stays as it was.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::bench::{Folder, Ran};
use crate::scripted::{Reply, Scripted, error, job};

/// Arguments, separated by spaces, under the name of their snapshot.
type Cases = &'static [(&'static str, &'static str)];

const COMMAND_LINE: Cases = &[
    ("unknown_verb", "sumbit"),
    ("unknown_flag", "submit --fiel urls.txt"),
    ("log_level", "jobs --log loud"),
    ("submit_nothing", "submit"),
    ("submit_urls_and_file", "submit https://example.com/ --file good.txt"),
    ("submit_batch_and_crawl", "submit https://example.com/ --batch --crawl"),
    ("submit_depth_without_crawl", "submit https://example.com/ --depth 2"),
    ("submit_depth_zero", "submit https://example.com/ --crawl --depth 0"),
    ("submit_depth_eleven", "submit https://example.com/ --crawl --depth 11"),
    ("submit_limit_zero", "submit https://example.com/ --crawl --limit 0"),
    ("submit_limit_too_large", "submit https://example.com/ --crawl --limit 10001"),
    ("submit_limit_negative", "submit https://example.com/ --crawl --limit -1"),
    ("submit_format", "submit https://example.com/ --format pdf"),
    ("submit_country", "submit https://example.com/ --proxy-country DEU"),
    ("submit_ref_of_two", "submit https://example.com/a https://example.com/b --ref r"),
    ("submit_refs_in_batch", "submit --file refs.txt --batch"),
    ("submit_run_blank", "submit https://example.com/ --run="),
    ("extract_nothing", "extract"),
    ("extract_two_formats", "extract https://example.com/ --format html --format markdown"),
    ("extract_no_url", "extract example.com"),
    ("poll_once_with_id", "poll j1 --once"),
    ("poll_kind_without_id", "poll --kind batch"),
    ("poll_kind", "poll j1 --kind map"),
    ("jobs_state", "jobs --state done"),
    ("jobs_limit_zero", "jobs --limit 0"),
    ("jobs_list_and_show", "jobs --limit 5 show j1"),
    ("results_nothing", "results"),
    ("results_date", "results list --dt yesterday"),
    ("results_date_13", "results list --dt 2026-13-01"),
    ("audit_from", "audit --from yesterday"),
    ("completions_shell", "completions tcsh"),
];

/// CL-05.
const DURATIONS: Cases = &[
    ("duration_base_zero", "poll j1 --base 0"),
    ("duration_base_zero_unit", "poll j1 --base 0ms"),
    ("duration_cap_zero", "poll j1 --cap 0s"),
    ("duration_max_wait_zero", "poll j1 --max-wait 0s"),
    ("duration_negative", "poll j1 --max-wait -1"),
    ("duration_negative_unit", "poll j1 --max-wait=-1s"),
    ("duration_nan", "poll j1 --max-wait nan"),
    ("duration_inf", "poll j1 --max-wait inf"),
    ("duration_huge", "poll j1 --max-wait 1e30"),
    ("duration_tiny", "poll j1 --max-wait 1e-9"),
    ("duration_overflow", "poll j1 --max-wait 99999999999999999999999d"),
    ("duration_cap_below_base", "poll j1 --base 10s --cap 1s"),
    ("duration_without_unit", "submit https://example.com/ --max-wait 5"),
    ("duration_timeout", "extract https://example.com/ --timeout 1.5s"),
];

const IDS: Cases = &[
    ("id_empty", "poll  --max-wait 1s"),
    ("id_with_slash", "jobs show a/b"),
    ("id_dots", "results show .."),
    ("id_not_ascii", "jobs redrive j\u{f6}b"),
    (
        "id_too_long",
        "poll aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ),
    ("id_unknown_show", "jobs show nobody"),
    ("id_unknown_redrive", "jobs redrive nobody"),
    ("id_unknown_result", "results show nobody"),
];

const LISTS: Cases = &[
    ("list_missing", "submit --file nowhere.txt"),
    ("list_folder", "submit --file folder"),
    ("list_empty", "submit --file empty.txt"),
    ("list_comments", "submit --file comments.txt"),
    ("list_urls", "submit --file urls.txt"),
    ("list_latin1", "submit --file latin1.txt"),
    ("list_utf16", "submit --file utf16.txt"),
    ("list_binary", "submit --file binary.txt"),
    ("list_columns", "submit --file columns.txt"),
    ("list_long_line", "submit --file long.txt"),
    ("list_long_ref", "submit --file long-ref.txt"),
    ("list_escapes", "submit --file escapes.txt"),
    ("list_stdin_empty", "submit -"),
    ("url_relative", "submit /path"),
    ("url_scheme", "submit ftp://example.com/"),
    ("url_no_host", "submit http://"),
];

const SURROUNDINGS: Cases = &[
    ("settings_missing_file", "jobs --config nowhere.toml"),
    ("settings_folder", "jobs --config folder"),
    ("settings_malformed", "jobs --config malformed.toml"),
    ("settings_unknown_key", "jobs --config unknown.toml"),
    ("settings_not_utf8", "jobs --config latin1.txt"),
    ("settings_unknown_name", "jobs --set speed=5"),
    ("settings_not_a_number", "jobs --set workers=many"),
    ("settings_no_pair", "jobs --set workers"),
    ("settings_api_url", "poll j1 --api-url example.com"),
    ("key_file_missing", "poll j1 --api-key-file nowhere.key"),
    ("key_file_folder", "poll j1 --api-key-file folder"),
    ("key_file_open_to_others", "poll j1 --api-key-file open.key"),
    ("key_file_empty", "poll j1 --api-key-file empty.key"),
    ("key_file_binary", "poll j1 --api-key-file binary.key"),
    ("data_dir_absent", "jobs --data-dir nowhere"),
    ("data_dir_absent_results", "results list --data-dir nowhere"),
    ("data_dir_is_a_file", "submit https://example.com/ --data-dir good.txt"),
    ("data_dir_below_a_file", "submit https://example.com/ --data-dir good.txt/data"),
    ("ledger_garbage", "jobs --data-dir garbage"),
    ("ledger_empty_text", "poll j1 --data-dir text"),
    ("ledger_is_a_folder", "jobs --data-dir ledger-folder"),
    ("results_is_a_file", "poll j1 --data-dir results-file"),
];

/// Folders that nobody may write to, not even the superuser.
#[cfg(target_os = "linux")]
const READ_ONLY: Cases =
    &[("data_dir_read_only", "submit https://example.com/ --data-dir /proc/gleaner")];

/// Files for the cases to stumble over.
fn prepare(folder: &Folder) {
    let write = |name: &str, content: &[u8]| folder.write(name, content);
    write("good.txt", b"https://example.com/\n");
    write("refs.txt", b"https://example.com/a\tr1\nhttps://example.com/b\tr2\n");
    write("empty.txt", b"");
    write("comments.txt", b"# nothing\n\n   \n");
    write("urls.txt", b"https://example.com/\nexample.com\n\nhttp://\nfile:///etc/passwd\n");
    write("latin1.txt", b"https://example.com/caf\xe9\n");
    write("utf16.txt", b"\xff\xfeh\0t\0t\0p\0");
    write("binary.txt", b"\x00\x01\x02https://example.com/\n\x00");
    write("columns.txt", b"https://example.com/\ta\tb\tc\n");
    write("long.txt", format!("https://example.com/{}\n", "a".repeat(9_000)).as_bytes());
    write("long-ref.txt", format!("https://example.com/\t{}\n", "r".repeat(257)).as_bytes());
    write("escapes.txt", b"\x1b]0;title\x07https://example.com/\n");
    write("malformed.toml", b"data_dir = \"x\nworkers = 5\n");
    write("unknown.toml", b"data_folder = \"x\"\n");
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    for (name, content, mode) in [
        ("open.key", b"key-1".as_slice(), 0o644),
        ("empty.key", b" \n", 0o600),
        ("binary.key", b"\xff\xfe\x00key", 0o600),
    ] {
        let path = write(name, content);
        set_mode(&path, mode);
    }
    for dir in ["garbage", "text", "ledger-folder", "results-file"] {
        std::fs::create_dir(folder.path().join(dir)).unwrap();
    }
    write("garbage/ledger.db", &[0xa5; 8_192]);
    write("text/ledger.db", b"this is no database, but a note that somebody keeps here\n");
    std::fs::create_dir(folder.path().join("ledger-folder/ledger.db")).unwrap();
    write("results-file/results", b"not a folder");
    let ours = folder.path().join("gleaner-data/ledger.db");
    std::fs::copy(ours, folder.path().join("results-file/ledger.db")).unwrap();
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) {}

/// Every file below a folder with a hash of its content. The index of SQLite's log is left out: it
/// is rebuilt by whoever opens the file, and holds nothing.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        files.insert(next.display().to_string(), "folder".to_owned());
        for child in std::fs::read_dir(next).unwrap() {
            let path = child.unwrap().path();
            let name = path.display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if !name.ends_with("-shm") && !name.ends_with("-wal") {
                files.insert(name, format!("{:x?}", Sha256::digest(std::fs::read(&path).unwrap())));
            }
        }
    }
    files
}

/// What a person sees, without what differs from run to run.
fn seen(folder: &Folder, args: &str, ran: &Ran) -> String {
    let text = format!("$ gleaner {args}\nexit: {}\n{}{}", ran.code, ran.out, ran.err);
    text.replace(&folder.path().display().to_string(), "[folder]")
}

/// A folder with a data folder that holds one stored job, and a platform that answers it.
async fn stage() -> (Folder, Scripted) {
    let script = |_: usize, line: &str| {
        if line.starts_with("get /v1/extract/j1 ") {
            job("j1", "completed")
        } else {
            error(500, "", "UNEXPECTED", false)
        }
    };
    let platform = Scripted::start(script).await;
    let folder = Folder::new(&platform.url);
    folder.run(&["poll", "j1"]).await.expect(0);
    prepare(&folder);
    (folder, platform)
}

async fn check(cases: Cases) {
    let (folder, platform) = stage().await;
    let (before, calls) = (tree(folder.path()), platform.calls());
    for (name, line) in cases {
        let args: Vec<_> = line.split(' ').collect();
        let ran = folder.run_with(&args, b"").await;
        assert_ne!(ran.code, 0, "{name}: {ran:#?}");
        assert!(ran.out.is_empty(), "{name}: data on an error: {ran:#?}");
        assert!(!ran.err.contains("panicked"), "{name}: {ran:#?}");
        insta::assert_snapshot!(format!("bad_input_{name}"), seen(&folder, line, &ran));
        assert_eq!(tree(folder.path()), before, "{name} changed a file");
        assert_eq!(platform.calls(), calls, "{name} sent something");
    }
}

#[tokio::test]
async fn the_command_line() {
    check(COMMAND_LINE).await;
}

/// CL-05: no number on the command line panics, spins or overflows.
#[tokio::test]
async fn durations() {
    check(DURATIONS).await;
}

#[tokio::test]
async fn ids() {
    check(IDS).await;
}

#[tokio::test]
async fn lists_and_urls() {
    check(LISTS).await;
}

#[tokio::test]
async fn settings_keys_and_folders() {
    check(SURROUNDINGS).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn read_only_folders() {
    check(READ_ONLY).await;
}

/// What the environment can get wrong.
#[tokio::test]
async fn the_environment() {
    let (folder, platform) = stage().await;
    let (before, calls) = (tree(folder.path()), platform.calls());
    for (name, variable, value) in [
        ("environment_no_key", "GLEANER_API_KEY", None),
        ("environment_blank_key", "GLEANER_API_KEY", Some("  ")),
        ("environment_key_with_space", "GLEANER_API_KEY", Some("two words")),
        ("environment_unknown_name", "GLEANER_SPEED", Some("5")),
        ("environment_not_a_number", "GLEANER_WORKERS", Some("many")),
        ("environment_api_url", "GLEANER_API_URL", Some("ftp://example.com/")),
    ] {
        let mut command = folder.command(&["poll", "j1"]);
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
        let ran = crate::bench::ended(command.spawn().unwrap()).await;
        assert_ne!(ran.code, 0, "{name}: {ran:#?}");
        let line = format!("poll j1   # {variable}={}", value.unwrap_or("(not set)"));
        insta::assert_snapshot!(format!("bad_input_{name}"), seen(&folder, &line, &ran));
        assert_eq!(tree(folder.path()), before, "{name} changed a file");
        assert_eq!(platform.calls(), calls, "{name} sent something");
    }
}

/// Arguments that are no text are refused, or name a file that is not there.
#[cfg(unix)]
#[tokio::test]
async fn arguments_that_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt as _;
    let (folder, platform) = stage().await;
    let (before, calls) = (tree(folder.path()), platform.calls());
    for first in [["submit", "--run"], ["submit", "--file"], ["poll", "--kind"]] {
        let mut command = folder.command(&first);
        command.arg(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        crate::bench::ended(command.spawn().unwrap()).await.expect(64);
        assert_eq!(tree(folder.path()), before, "{first:?} changed a file");
        assert_eq!(platform.calls(), calls, "{first:?} sent something");
    }
}

/// A ledger of another program, and one of a later version, are refused and left as they are.
#[tokio::test]
async fn foreign_ledgers_are_left_alone() {
    let (folder, _platform) = stage().await;
    let ours = std::fs::read(folder.path().join("gleaner-data/ledger.db")).unwrap();
    // SQLite's header: the application's id at byte 68, the schema's version at byte 60.
    for (name, at, value) in [
        ("ledger_of_another_program", 68, 0x1234_5678_u32),
        ("ledger_of_a_later_version", 60, 9_999),
    ] {
        let mut bytes = ours.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        std::fs::create_dir(folder.path().join(name)).unwrap();
        folder.write(&format!("{name}/ledger.db"), &bytes);
        let before = tree(folder.path());
        let ran = folder.run(&["jobs", "--data-dir", name]).await;
        assert_ne!(ran.code, 0, "{name}: {ran:#?}");
        let line = format!("jobs --data-dir {name}");
        insta::assert_snapshot!(format!("bad_input_{name}"), seen(&folder, &line, &ran));
        assert_eq!(tree(folder.path()), before, "{name} changed a file");
    }
}

/// A synchronous extraction that is refused sends its one call, and records nothing.
#[tokio::test]
async fn an_answer_that_is_no_answer() {
    let platform =
        Scripted::start(|_, _| Reply::Answer(200, "", "<html>proxy</html>".to_owned())).await;
    let folder = Folder::new(&platform.url);
    let before = tree(folder.path());
    for (name, line) in [
        ("answer_extract", "extract https://example.com/"),
        ("answer_extract_json", "extract https://example.com/ --json"),
    ] {
        let ran = folder.run(&line.split(' ').collect::<Vec<_>>()).await;
        assert_ne!(ran.code, 0, "{name}: {ran:#?}");
        insta::assert_snapshot!(format!("bad_input_{name}"), seen(&folder, line, &ran));
        assert_eq!(tree(folder.path()), before, "{name} changed a file");
    }
}
