use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Debug;

use super::*;
use crate::{LogLevel, Need, Origin, read_by_function, table};

/// A value that no message may show.
const MARKER: &str = "zz-marker-zz";

/// What a stack gives its functions.
const GIVEN: [(&str, &str); 7] = [
    ("GLEANER_STACK", "gleaner"),
    ("GLEANER_TABLE", "gleaner-Ledger-1A2B"),
    ("GLEANER_QUEUE_URL", "https://sqs.eu-central-1.amazonaws.com/123456789012/gleaner-tasks"),
    ("GLEANER_BUCKET", "gleaner-results-1a2b"),
    (
        "GLEANER_WEBHOOK_SECRET_IDS",
        "gleaner/extract, arn:aws:secretsmanager:eu-central-1:123456789012:secret:x-Ab12Cd",
    ),
    ("GLEANER_API_KEY_SECRET_ID", "gleaner/api-key"),
    ("GLEANER_RESULTS_PREFIX", "prod/results"),
];

fn environment<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Environment {
    Environment::of(variables.into_iter().map(|(name, value)| (name.into(), value.into())))
}

/// What a role reads of what is given.
fn given_to(role: Role) -> Vec<(&'static str, &'static str)> {
    let read: BTreeSet<_> = read_by_function(role).map(|(name, _)| name).collect();
    GIVEN.into_iter().filter(|(name, _)| read.contains(*name)).collect()
}

/// Loads the settings of a role; the names of what was read, or each problem.
fn load(role: Role, environment: &Environment) -> Result<Vec<InForce>, Vec<String>> {
    fn told<T: Debug>(
        loaded: Result<T, Problems>,
        in_force: impl Fn(T) -> Vec<InForce>,
    ) -> Result<Vec<InForce>, Vec<String>> {
        loaded
            .map(in_force)
            .map_err(|problems| problems.all().iter().map(ToString::to_string).collect())
    }
    match role {
        Role::Receiver => told(ReceiverSettings::load(environment), |s| s.shared.in_force),
        Role::Worker => told(WorkerSettings::load(environment), |s| s.shared.in_force),
        Role::Scheduler => told(SchedulerSettings::load(environment), |s| s.shared.in_force),
        Role::Rotator => told(RotatorSettings::load(environment), |s| s.shared.in_force),
    }
}

fn problems<'a>(
    role: Role,
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<String> {
    load(role, &environment(variables)).unwrap_err()
}

#[test]
fn a_function_reads_what_the_table_says_and_nothing_else() {
    for role in Role::ALL {
        let read = load(role, &environment(given_to(role))).unwrap();
        let read: BTreeSet<_> = read.iter().map(|setting| setting.name).collect();
        let told = table().filter(|setting| setting.read_by.need(role).is_some());
        assert_eq!(read, told.map(|setting| setting.name).collect(), "{role}");
    }
}

#[test]
fn what_a_function_needs_has_no_default() {
    for setting in table().filter(|setting| !setting.read_by.required_by.is_empty()) {
        assert!(matches!(setting.default, crate::Default::None(_)), "{}", setting.name);
    }
    let needed = |role| {
        let all = read_by_function(role).filter(|(_, need)| *need == Need::Required);
        all.map(|(name, _)| name.trim_start_matches("GLEANER_").to_owned()).collect::<Vec<_>>()
    };
    let shared = ["STACK", "TABLE", "QUEUE_URL"];
    assert_eq!(needed(Role::Receiver), [&shared[..], &["WEBHOOK_SECRET_IDS"]].concat());
    assert_eq!(needed(Role::Worker), [&shared[..], &["BUCKET", "API_KEY_SECRET_ID"]].concat());
    assert_eq!(needed(Role::Scheduler), [&shared[..], &["API_KEY_SECRET_ID"]].concat());
    let rotating = ["STACK", "TABLE", "WEBHOOK_SECRET_IDS", "API_KEY_SECRET_ID"];
    assert_eq!(needed(Role::Rotator), rotating);
}

/// DP-09: everything that is missing is told at once, by name.
#[test]
fn all_missing_variables_are_told_at_once() {
    for role in Role::ALL {
        let told = problems(role, []);
        let needed: Vec<_> = read_by_function(role)
            .filter(|(_, need)| *need == Need::Required)
            .map(|(name, _)| format!("`{name}`: it is not set, and the {role} needs it: "))
            .collect();
        for needed in &needed {
            assert!(told.iter().any(|text| text.starts_with(needed)), "{needed}: {told:?}");
        }
        assert_eq!(told.len(), needed.len(), "{told:?}");
    }
}

/// DP-09: a variable that is missing, blank or malformed is told by its name and never by a value.
#[test]
fn each_variable_that_is_missing_blank_or_malformed_is_told_alone() {
    let malformed = format!("{MARKER} {MARKER}");
    for role in Role::ALL {
        for (name, need) in read_by_function(role) {
            let others = || given_to(role).into_iter().filter(|(other, _)| *other != name.as_str());
            if need == Need::Required {
                let told = problems(role, others());
                assert!(told.len() == 1 && told[0].contains(&format!("`{name}`")), "{told:?}");
            }
            for value in ["", "  ", &malformed] {
                let told = problems(role, others().chain([(name.as_str(), value)]));
                assert!(told.len() == 1 && told[0].contains(&format!("`{name}`")), "{told:?}");
                assert!(!told[0].contains(MARKER), "{told:?}");
            }
        }
    }
}

#[test]
fn what_a_function_does_not_read_is_told() {
    let told = problems(
        Role::Receiver,
        given_to(Role::Receiver).into_iter().chain([
            ("GLEANER_BUCKET", MARKER),
            ("GLEANER_TABEL", MARKER),
            ("GLEANER_CONFIG", MARKER),
            ("GLEANER_LIMITS_MAX_AGE", "1h"),
            ("AWS_REGION", "eu-central-1"),
            ("PATH", "/bin"),
        ]),
    );
    assert_eq!(
        told,
        [
            "`GLEANER_BUCKET`: the receiver does not read it; remove it",
            "`GLEANER_CONFIG`: the receiver does not read it; remove it",
            "`GLEANER_LIMITS_MAX_AGE`: the receiver does not read it; remove it",
            "`GLEANER_TABEL`: the receiver does not read it; did you mean `GLEANER_TABLE`?",
        ]
    );
}

#[test]
fn relations_hold_in_a_function_and_are_told_without_values() {
    for (given, text) in [
        (
            [("GLEANER_LIMITS_BACKOFF_BASE", "20m")],
            "`GLEANER_LIMITS_BACKOFF_BASE`: it must be at most `limits.backoff_cap`",
        ),
        (
            [("GLEANER_API_CONNECT_TIMEOUT", "31s")],
            "`GLEANER_API_CONNECT_TIMEOUT`: it must be at most `limits.call_timeout`",
        ),
    ] {
        for role in [Role::Worker, Role::Scheduler] {
            let told = problems(role, given_to(role).into_iter().chain(given));
            assert_eq!(told, [text]);
        }
    }
}

#[test]
fn the_values_are_those_that_were_given() {
    let given = given_to(Role::Receiver).into_iter().chain([
        ("GLEANER_SIGNING_PRESET", "github"),
        ("GLEANER_LIMITS_RECEIVE_DEADLINE", "2s"),
        ("GLEANER_WEBHOOK_PATH", "/hooks"),
    ]);
    let receiver = ReceiverSettings::load(&environment(given)).unwrap();
    assert_eq!(receiver.shared.table, "gleaner-Ledger-1A2B");
    assert_eq!(receiver.webhook_secret_ids.len(), 2);
    assert_eq!(receiver.webhook_secret_ids[0], "gleaner/extract");
    assert_eq!(receiver.webhook_path, "/hooks");
    assert_eq!(receiver.shared.limits.receive_deadline.as_secs(), 2);
    let preset = domain::signature::preset::Preset::Github;
    assert_eq!(receiver.scheme, preset.scheme().unwrap());

    let worker = WorkerSettings::load(&environment(given_to(Role::Worker))).unwrap();
    assert_eq!(worker.results_prefix.as_deref(), Some("prod/results"));
    assert_eq!(worker.api.key_secret_id, "gleaner/api-key");
    assert_eq!(worker.api.url, "https://scraper.geonode.io");
    assert_eq!(worker.shared.limits, Limits::default());
    let shown = worker.shared.in_force.iter().find(|shown| shown.name == "bucket").unwrap();
    assert_eq!(shown.value.as_deref(), Some("gleaner-results-1a2b"));
    assert_eq!(shown.origin, Origin::Variable("GLEANER_BUCKET".to_owned()));

    let given = given_to(Role::Scheduler).into_iter().chain([("GLEANER_TICK_ROWS", "7")]);
    assert_eq!(SchedulerSettings::load(&environment(given)).unwrap().upkeep.rows, 7);
}

#[test]
fn the_log_level_is_our_word_or_lambdas() {
    for (own, lambdas, level) in [
        (None, None, LogLevel::Info),
        (None, Some("WARN"), LogLevel::Warn),
        (None, Some("FATAL"), LogLevel::Error),
        (None, Some("TRACE"), LogLevel::Trace),
        (None, Some("nonsense"), LogLevel::Info),
        (Some("debug"), Some("ERROR"), LogLevel::Debug),
        (Some("off"), None, LogLevel::Off),
        (Some("loud"), Some("ERROR"), LogLevel::Error),
    ] {
        let own = own.map(|word| ("GLEANER_LOG", word));
        let lambdas = lambdas.map(|word| ("AWS_LAMBDA_LOG_LEVEL", word));
        let environment = environment(own.into_iter().chain(lambdas));
        assert_eq!(environment.log_level(), level, "{own:?} {lambdas:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_value_that_is_no_text_is_told() {
    use std::os::unix::ffi::OsStringExt as _;
    let variables = GIVEN.into_iter().map(|(name, value)| (name.into(), value.into()));
    let odd = OsString::from_vec(b"a\xff".to_vec());
    let environment = Environment::of(
        variables
            .filter(|(name, _)| name != "GLEANER_TABLE")
            .chain([("GLEANER_TABLE".into(), odd)]),
    );
    let told = load(Role::Worker, &environment).unwrap_err();
    assert!(told.contains(&"`GLEANER_TABLE`: it is no UTF-8 text".to_owned()), "{told:?}");
}
