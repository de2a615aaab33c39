//! How a function's program starts with variables that are missing or wrong: it ends, and says why
//! in one line that names them and shows no value.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets something unexpected shall panic"
)]

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What Lambda itself sets, and no function can do without.
const OF_LAMBDA: [&str; 3] = ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

/// A function's program, and what it needs to start.
#[derive(Debug, Clone)]
pub struct Program {
    path: &'static str,
    variables: BTreeMap<String, String>,
    required: Vec<String>,
}

impl Program {
    /// A program that starts with these variables, and needs some of them. Those of Lambda are
    /// added, where they are not given.
    pub fn new(
        path: &'static str,
        variables: BTreeMap<String, String>,
        required: impl IntoIterator<Item = String>,
    ) -> Self {
        let of_lambda = OF_LAMBDA.map(|name| (name.to_owned(), "eu-central-1".to_owned()));
        let variables = of_lambda.into_iter().chain(variables).collect();
        let required = required.into_iter().chain(OF_LAMBDA.map(str::to_owned)).collect();
        Self { path, variables, required }
    }

    /// Each variable that is needed, absent and blank, is named.
    ///
    /// # Panics
    /// When the program starts, or says something else.
    pub fn names_what_is_missing(&self) {
        for name in &self.required {
            for blank in [None, Some(""), Some("  ")] {
                let mut variables = self.variables.clone();
                variables.remove(name);
                variables.extend(blank.map(|blank| (name.clone(), blank.to_owned())));
                let said = self.refusal(&variables);
                assert!(said.contains(name.as_str()), "{name} {blank:?}: {said}");
            }
        }
    }

    /// All that is missing, and all that it is given and does not read, is named at once.
    ///
    /// # Panics
    /// When the program starts, or leaves one out.
    pub fn names_all_at_once(&self, foreign: &[String]) {
        let variables = foreign.iter().map(|name| (name.clone(), "marker".to_owned())).collect();
        let said = self.refusal(&variables);
        for name in self.required.iter().chain(foreign) {
            assert!(said.contains(name.as_str()), "{name}: {said}");
        }
    }

    /// Each value that is of no use is named, and not shown.
    ///
    /// # Panics
    /// When the program starts, or shows one.
    pub fn names_what_is_of_no_use(&self, values: &[(&str, &str)]) {
        for (name, value) in values {
            let mut variables = self.variables.clone();
            variables.insert((*name).to_owned(), (*value).to_owned());
            let said = self.refusal(&variables);
            assert!(said.contains(name), "{name}: {said}");
        }
    }

    /// Starts it with these variables alone: it ends with an error, and writes one line, which shows
    /// no value.
    fn refusal(&self, variables: &BTreeMap<String, String>) -> String {
        let mut command = Command::new(self.path);
        command.env_clear().envs(variables).stdin(Stdio::null());
        let ended = command.output().expect("the program is there");
        let written = [ended.stdout, ended.stderr].concat();
        let written = String::from_utf8(written).expect("a log of text");
        assert_eq!(ended.status.code(), Some(1), "{written}");
        let lines: Vec<_> = written.lines().collect();
        let [line] = lines.as_slice() else { panic!("not one line: {lines:?}") };
        let parsed: Value = serde_json::from_str(line).expect("a line of JSON");
        assert_eq!(parsed["level"], "ERROR", "{line}");
        for (name, value) in variables {
            // A word such as the region may stand in a text that is not about it.
            let is_telling = value.len() > 4 && !value.starts_with("eu-");
            assert!(!(is_telling && line.contains(value.as_str())), "{name}: {line}");
        }
        parsed["fields"]["error"].as_str().expect("it says why").to_owned()
    }
}
