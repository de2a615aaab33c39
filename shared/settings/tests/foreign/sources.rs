//! Settings as people write them: in force as a whole or refused with every problem on a line, and
//! no secret is shown.
//!
//! An input is a settings file, flags as `name=value` lines, and variables as such lines, with a
//! line `--` in between.

use std::path::PathBuf;

use domain::signature::secret::Secret;
use settings::{FileText, Given, InForce, Problems, Setting, Settings, Sources, resolve, table};

/// What stands in every secret's variable and must not be shown.
const MARKER: &str = "whsec_marker";

pub(crate) fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if text.contains(MARKER) {
        return;
    }
    let mut parts = text.splitn(3, "\n--\n");
    let file = parts.next().unwrap_or_default();
    let flags = pairs(parts.next().unwrap_or_default());
    let variables = pairs(parts.next().unwrap_or_default());
    for secret in [MARKER, "[whsec_marker", "{\"secret\":\"whsec_marker\"}"] {
        let first = read(file, &flags, &variables, secret);
        match &first {
            Ok(settings) => check_settings(settings),
            Err(problems) => check_problems(problems),
        }
        let again = read(file, &flags, &variables, secret);
        assert_eq!(first.map(shown), again.map(shown), "the same answer each time");
    }
}

fn pairs(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter_map(|line| line.split_once('=')).collect()
}

fn read(
    file: &str,
    flags: &[(&str, &str)],
    variables: &[(&str, &str)],
    secret: &str,
) -> Result<Settings, Problems> {
    let secrets: Vec<String> =
        table().filter(|setting| setting.is_secret()).map(Setting::variable).collect();
    let environment = |name: &str| {
        if secrets.iter().any(|other| other == name) {
            return Some(secret.to_owned());
        }
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

fn shown(settings: Settings) -> Vec<InForce> {
    settings.in_force
}

fn check_settings(settings: &Settings) {
    assert_eq!(settings.in_force.len(), table().count());
    assert!(!format!("{settings:?}").contains(MARKER));
    for shown in &settings.in_force {
        let value = shown.value.as_deref().unwrap_or_default();
        assert!(!value.contains(MARKER) && !value.chars().any(char::is_control), "{value:?}");
    }
    for (_, value) in &settings.secret_values {
        assert!(Secret::parse_stored(value.expose()).is_ok());
    }
}

fn check_problems(problems: &Problems) {
    assert!(!problems.all().is_empty());
    for problem in problems.all() {
        let text = problem.to_string();
        assert!(!text.contains(MARKER) && !text.chars().any(char::is_control), "{text:?}");
    }
}

#[test]
fn the_seeds_of_settings_hold() {
    testkit::corpus::check("sources", 8, check);
}
