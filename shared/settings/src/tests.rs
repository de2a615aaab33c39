//! The table against what is read, the sources against each other, and the texts of problems.

use std::path::PathBuf;
use std::time::Duration;

use domain::envelope::EnvelopeFormat;
use domain::limits::{Limits, Policies};
use domain::signature::preset::Preset;

use crate::*;

/// Resolves flags, variables and a file.
fn with(
    flags: &[(&str, &str)],
    variables: &[(&str, &str)],
    file: &str,
) -> Result<Settings, Problems> {
    let environment = |name: &str| {
        variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
    };
    let given = |(name, value): &(&str, &str)| Given {
        flag: "--set",
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    resolve(&Sources {
        flags: flags.iter().map(given).collect(),
        environment: &environment,
        variables: variables.iter().map(|(name, _)| (*name).to_owned()).collect(),
        file: Some(FileText { path: PathBuf::from("gleaner.toml"), text: file.to_owned() }),
    })
}

fn problems(flags: &[(&str, &str)], variables: &[(&str, &str)], file: &str) -> Vec<String> {
    let problems = with(flags, variables, file).map(drop).unwrap_err();
    problems.all().iter().map(ToString::to_string).collect()
}

#[test]
fn every_documented_setting_is_read_and_every_default_is_valid() {
    let settings = with(&[], &[], "").unwrap();
    let read: Vec<_> = settings.in_force.iter().map(|shown| shown.name).collect();
    let documented: Vec<_> = table().map(|setting| setting.name).collect();
    assert_eq!(read, documented);
}

#[test]
fn the_defaults_are_those_of_the_domain() {
    let settings = with(&[], &[], "").unwrap();
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(settings.envelope, EnvelopeFormat::default());
    assert_eq!(settings.scheme, Preset::default().scheme().unwrap());
    let named: Vec<_> = Preset::ALL.iter().map(|preset| preset.name()).collect();
    let preset = table().find(|setting| setting.name == "signing.preset").unwrap();
    assert_eq!(preset.form, Form::Word(&named.leak()[..]));
}

#[test]
fn names_and_variables_are_unique_and_documented_in_full() {
    let mut variables: Vec<_> = table().map(Setting::variable).collect();
    variables.extend(OTHER_VARIABLES.map(|(name, _)| name.to_owned()));
    let count = variables.len();
    variables.sort();
    variables.dedup();
    assert_eq!(variables.len(), count);
    let page = markdown();
    for setting in table() {
        assert!(page.contains(&format!("### `{}`\n", setting.name)), "{}", setting.name);
        for text in [setting.meaning, setting.if_wrong, &setting.read_by.to_string()] {
            assert!(!text.is_empty(), "{}", setting.name);
        }
    }
}

#[test]
fn the_page_shows_files_that_are_understood() {
    let page = markdown();
    let samples: Vec<_> = page.split("```toml\n").skip(1).collect();
    assert_eq!(samples.len(), 2);
    for sample in samples {
        let file = sample.split("```").next().unwrap();
        assert!(with(&[], &[], file).is_ok(), "{file}");
    }
}

#[test]
fn the_command_line_goes_before_the_environment_and_that_before_the_file() {
    let flag = [("tick", "1s")];
    let variable = [("GLEANER_TICK", "2s")];
    let file = "tick = '3s'";
    for (settings, tick, origin) in [
        (with(&flag, &variable, file), "1s", Origin::Flag("--set")),
        (with(&[], &variable, file), "2s", Origin::Variable("GLEANER_TICK".to_owned())),
        (with(&[], &[], file), "3s", Origin::File(PathBuf::from("gleaner.toml"))),
        (with(&[], &[], ""), "15s", Origin::Default),
    ] {
        let settings = settings.unwrap();
        let shown = settings.in_force.iter().find(|shown| shown.name == "tick").unwrap();
        assert_eq!((shown.value.as_deref(), &shown.origin), (Some(tick), &origin));
    }
    let twice = with(&[("workers", "1"), ("workers", "2")], &[], "").unwrap();
    assert_eq!(twice.workers, 2);
}

#[test]
fn each_form_is_read_from_each_place() {
    let file = r#"
        data_dir = "/var/lib/gleaner"
        workers = 7
        api_answer_bytes = 2097152
        [limits]
        max_age = "72h"
        spend_per_day = 500
        [receiver]
        body_bytes = "1MiB"
        [envelope]
        job_id = ["/a/b", "/c"]
        events = { done = "extract", ready = "crawl" }
        [signing]
        preset = "github"
        headers = [" X-Sig ", "other"]
        body = "inflated"
    "#;
    let by_file = with(&[], &[], file).unwrap();
    let by_variables = with(
        &[],
        &[
            ("GLEANER_DATA_DIR", "/var/lib/gleaner"),
            ("GLEANER_WORKERS", "7"),
            ("GLEANER_API_ANSWER_BYTES", "2MiB"),
            ("GLEANER_LIMITS_MAX_AGE", "3d"),
            ("GLEANER_LIMITS_SPEND_PER_DAY", "500"),
            ("GLEANER_RECEIVER_BODY_BYTES", "1048576"),
            ("GLEANER_ENVELOPE_JOB_ID", "/a/b, /c"),
            ("GLEANER_ENVELOPE_EVENTS", "done=extract,ready=crawl"),
            ("GLEANER_SIGNING_PRESET", "github"),
            ("GLEANER_SIGNING_HEADERS", "x-sig,OTHER"),
            ("GLEANER_SIGNING_BODY", "inflated"),
        ],
        "",
    )
    .unwrap();
    for settings in [by_file, by_variables] {
        assert_eq!(settings.data_dir, PathBuf::from("/var/lib/gleaner"));
        assert_eq!(settings.workers, 7);
        assert_eq!(settings.api_answer_bytes, 2 * 1_024 * 1_024);
        assert_eq!(settings.limits.max_age, Duration::from_hours(72));
        assert_eq!(settings.limits.spend_per_day, Some(500));
        assert_eq!(settings.receiver.body_bytes, 1_024 * 1_024);
        assert_eq!(settings.envelope.job_id.pointers().len(), 2);
        assert_eq!(settings.envelope.events.len(), 2);
        assert_ne!(settings.scheme, Preset::Github.scheme().unwrap());
    }
}

/// What costs money is off until somebody asks for it by name.
#[test]
fn policies_are_off_until_they_are_switched_on() {
    let of = |settings: Settings| settings.limits.policies;
    assert_eq!(of(with(&[], &[], "").unwrap()), Policies::default());
    let flags = [("policies.resubmit_unlinked", "on")];
    let expected = Policies { resubmit_unlinked: true, ..Policies::default() };
    assert_eq!(of(with(&flags, &[], "").unwrap()), expected);
    let variables = [("GLEANER_POLICIES_RESUBMIT_FAILED_ITEMS", "on")];
    let expected = Policies { resubmit_failed_items: true, ..Policies::default() };
    assert_eq!(of(with(&[], &variables, "").unwrap()), expected);
    let file = "[policies]\nresubmit_unlinked = 'off'\nresubmit_failed_items = 'yes'";
    assert_eq!(problems(&[], &[], file).len(), 1);
}

#[test]
fn a_scheme_of_its_own_is_one_table_or_one_text() {
    let table = r#"[signing.scheme.static-header]
        headers = ["authorization"]"#;
    let text = r#"{ static-header = { headers = ["Authorization"] } }"#;
    let by_file = with(&[], &[], table).unwrap();
    let by_variable = with(&[], &[("GLEANER_SIGNING_SCHEME", text)], "").unwrap();
    assert_eq!(by_file.scheme, Preset::StaticHeader.scheme().unwrap());
    assert_eq!(by_variable.scheme, by_file.scheme);
    let with_preset = problems(&[("signing.preset", "github")], &[], table);
    assert_eq!(
        with_preset,
        [
            "`signing.preset` from --set: `signing.scheme` is set, which says all of this; remove one of them"
        ]
    );
}

#[test]
fn all_problems_are_told_together() {
    let file = "
        tick = 15
        worker = 3
        [limits]
        max_aeg = '1h'
        backoff_base = '20m'
    ";
    let told = problems(
        &[("listen", "localhost"), ("colour", "red")],
        &[("GLEANER_WORKERS", "0"), ("GLEANER_WORKRES", "2"), ("GLEANER_DATA_DIR", "")],
        file,
    );
    assert_eq!(
        told,
        [
            "`limits.max_aeg` from gleaner.toml: no such setting; did you mean `limits.max_age`?",
            "`worker` from gleaner.toml: no such setting; did you mean `workers`?",
            "`GLEANER_WORKRES` from the environment: no such variable; did you mean `GLEANER_WORKERS`?",
            "`colour` from --set: no such setting; `gleaner settings` lists all of them",
            "`data_dir` from GLEANER_DATA_DIR: expected a path, and it is empty",
            "`listen` from --set: expected an IP address with a port, such as `127.0.0.1:8787`, not `localhost`",
            "`workers` from GLEANER_WORKERS: expected a whole number from 1 to 1000, not `0`",
            "`tick` from gleaner.toml: expected a duration from 100ms to 1h, as a whole number with `ms`, `s`, `m`, `h` or `d`, not `15`",
            "`limits.backoff_base` from gleaner.toml: 20m must be at most `limits.backoff_cap`, which is 15m",
        ]
    );
}

#[test]
fn relations_hold_between_settings() {
    for (flag, text) in [
        (("limits.backoff_base", "16m"), "`limits.backoff_cap`, which is 15m"),
        (("limits.call_timeout", "6m"), "`task_hold`, which is 5m"),
        (("limits.post_timeout", "6m"), "`task_hold`, which is 5m"),
        (("task_hold", "1m"), "1m must be shorter than `task_hold`, which is 1m"),
        (("limits.secret_cooldown", "6m"), "`limits.secret_max_age`, which is 5m"),
        (("limits.max_age", "100d"), "`limits.retention`, which is 90d"),
        (("limits.receive_deadline", "10s"), "expected a duration from 100ms to 9999ms"),
        (("receiver.body_bytes", "200MiB"), "more than `receiver.bodies_bytes`"),
        (("pace.start", "17"), "`pace.ceiling`, which is 16"),
        (("metrics_listen", "127.0.0.1:8787"), "another address than `listen`"),
    ] {
        let told = problems(&[flag], &[], "");
        assert!(told.len() == 1 && told[0].contains(text), "{flag:?}: {told:?}");
    }
}

#[test]
fn a_backend_on_aws_says_where_it_is() {
    let embedded = with(&[("stack", "gleaner")], &[], "").unwrap();
    assert_eq!(embedded.backend, Backend::Embedded);
    let by_stack = with(&[("backend", "aws"), ("stack", "gleaner")], &[], "").unwrap();
    let Backend::Aws(aws) = by_stack.backend else { panic!("not on AWS") };
    assert_eq!((aws.stack.as_deref(), aws.table), (Some("gleaner"), None));
    let queue = ("queue_url", "https://sqs.eu-central-1.amazonaws.com/1/tasks");
    let by_parts = [("backend", "aws"), ("table", "ledger"), queue, ("bucket", "results")];
    assert!(matches!(with(&by_parts, &[], "").unwrap().backend, Backend::Aws(_)));
    let ids = "backend = 'aws'\nstack = 'gleaner'\nwebhook_secret_ids = ['a', 'b']";
    let Backend::Aws(aws) = with(&[], &[], ids).unwrap().backend else { panic!("not on AWS") };
    assert_eq!(aws.webhook_secret_ids.unwrap(), ["a", "b"]);
    assert_eq!(
        problems(&by_parts[..2], &[], ""),
        [
            "`backend` from --set: `aws` needs `stack`, or else `queue_url`, `bucket`, which nothing says"
        ]
    );
    let told = problems(&[("backend", "aws"), ("stack", "a b")], &[], "");
    assert!(told.len() == 1 && told[0].starts_with("`stack` from --set: expected"), "{told:?}");
}

/// SG-06: a secret that is set and blank is an error, and never an open door.
#[test]
fn blank_secrets_are_refused() {
    for value in ["", "   ", "{\"secret\":\"\"}", "null"] {
        let told = problems(&[], &[("GLEANER_WEBHOOK_SECRET", value)], "");
        let text = "`webhook_secret` from GLEANER_WEBHOOK_SECRET: expected a secret that is not blank, and no JSON of an unknown shape";
        assert_eq!(told, [text], "{value}");
    }
}

#[test]
fn secrets_are_never_shown() {
    const WORD: &str = "hush-hush";
    let variables = [
        ("GLEANER_API_KEY", WORD),
        ("GLEANER_WEBHOOK_SECRET", WORD),
        ("GLEANER_WEBHOOK_SECRET_PREVIOUS", WORD),
    ];
    let settings = with(&[], &variables, "").unwrap();
    assert_eq!(settings.api_key.as_ref().map(SecretText::expose), Some(WORD));
    assert_eq!(settings.secret_values.len(), 2);
    assert!(!format!("{settings:?}").contains(WORD));
    let wrong = [
        problems(&[("api_key", WORD), ("webhook_secret", WORD)], &[], ""),
        problems(&[], &[], &format!("api_key = '{WORD}'")),
        problems(&[], &[], &format!("api_key = {WORD}")),
        problems(&[], &[("GLEANER_WEBHOOK_SECRET", &format!("[{WORD}"))], ""),
        problems(&[("api_url", &format!("https://user:{WORD}@example.org"))], &[], ""),
        problems(&[("api_url", &format!("https://user:{WORD}{}@e.org", "x".repeat(120)))], &[], ""),
        problems(&[("api_url", &format!("https://example.org/?key={WORD}&x"))], &[], ""),
    ];
    for told in wrong {
        assert!(!told.is_empty() && !told.iter().any(|text| text.contains(WORD)), "{told:?}");
    }
}

/// FD-03: whatever case and spaces it is given in; what is no name ends the start.
#[test]
fn a_header_name_is_trimmed_and_checked() {
    assert!(with(&[("signing.headers", " X-Webhook-Signature ")], &[], "").is_ok());
    for name in ["x signature", "", "x-sig,", "é"] {
        assert_eq!(problems(&[("signing.headers", name)], &[], "").len(), 1, "{name}");
    }
}

#[test]
fn a_tolerance_needs_a_preset_with_a_timestamp() {
    assert!(with(&[("signing.preset", "stripe"), ("signing.tolerance", "1m")], &[], "").is_ok());
    let told = problems(&[("signing.preset", "stripe"), ("signing.tolerance", "1500ms")], &[], "");
    assert!(told.len() == 1 && told[0].contains("signing.tolerance"), "{told:?}");
    let told = problems(&[("signing.preset", "github"), ("signing.tolerance", "1m")], &[], "");
    assert!(told.len() == 1 && told[0].contains("signing.preset"), "{told:?}");
}

/// SG-10: a job is known for longer than a delivery about it can be repeated with a timestamp that is
/// still accepted, whatever the tolerance: as long after the timestamp as before it.
#[test]
fn the_ledger_remembers_longer_than_a_timestamp_is_accepted() {
    let tolerance = |text| [("signing.preset", "stripe"), ("signing.tolerance", text)];
    let stripe = with(&tolerance("1d"), &[], "").unwrap();
    assert_eq!(problems(&tolerance("86401s"), &[], "").len(), 1, "one day is the most");
    let window = stripe.scheme.tolerance().unwrap() * 2;
    let least = with(&[("limits.retention", "3d"), ("limits.max_age", "1d")], &[], "").unwrap();
    assert!(least.limits.retention > window, "{:?}", least.limits.retention);
    let told = problems(&[("limits.retention", "2d"), ("limits.max_age", "1d")], &[], "");
    assert!(told.len() == 1 && told[0].contains("from 3d to"), "{told:?}");
}

#[test]
fn a_file_that_is_not_toml_is_told_by_its_line() {
    let told = problems(&[], &[], "workers = 1\n\ntick = = 2\n");
    assert_eq!(told, ["`gleaner.toml` from gleaner.toml: line 3 is not TOML"]);
}
