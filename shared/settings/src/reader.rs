//! Taking values out of the sources, one setting after the other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::environment::{Environment, PREFIX};
use crate::form::{Form, Raw};
use crate::problem::{Problem, Problems, closest};
use crate::role::{Need, Role};
use crate::secret_text::SecretText;
use crate::source::{Origin, Sources};
use crate::table::{Default, LOG_VARIABLE, OTHER_VARIABLES, Setting, find, table};

/// A setting as it is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// The setting.
    pub name: &'static str,
    /// Its value as a person may see it; `None` if there is none.
    pub value: Option<String>,
    /// Where it came from.
    pub origin: Origin,
}

/// Reads settings and collects what is wrong.
pub(crate) struct Reader {
    given: BTreeMap<&'static str, (Raw, Origin)>,
    problems: Vec<Problem>,
    in_force: Vec<InForce>,
    /// The function that reads; `None` for the command line.
    role: Option<Role>,
}

impl Reader {
    /// Finds what is given; names that nobody reads are problems.
    pub(crate) fn new(sources: &Sources<'_>) -> Self {
        let mut reader = Self::empty(None);
        reader.take_file(sources);
        reader.take_environment(sources);
        reader.take_flags(sources);
        reader
    }

    /// Finds what is given to a function; what it does not read is a problem.
    pub(crate) fn of_function(role: Role, environment: &Environment) -> Self {
        let mut reader = Self::empty(Some(role));
        for name in environment.not_text() {
            reader.problem(name, None, "it is no UTF-8 text".to_owned());
        }
        let own = || table().filter(|setting| setting.read_by.need(role).is_some());
        for variable in environment.names().filter(|name| *name != LOG_VARIABLE) {
            if let Some(setting) = own().find(|setting| setting.variable() == variable) {
                let value = environment.value(variable).unwrap_or_default().to_owned();
                let origin = Origin::Variable(variable.to_owned());
                reader.given.insert(setting.name, (Raw::Text(value), origin));
                continue;
            }
            let known: Vec<String> = own().map(Setting::variable).collect();
            let is_known = table().any(|setting| setting.variable() == variable);
            // The prefix that all have in common would make all of them alike.
            let bare = |name| str::strip_prefix(name, PREFIX).unwrap_or(name);
            let like = closest(bare(variable), known.iter().map(|name| bare(name)));
            let text = match like.filter(|_| !is_known) {
                Some(name) => {
                    format!("the {role} does not read it; did you mean `{PREFIX}{name}`?")
                }
                None => format!("the {role} does not read it; remove it"),
            };
            reader.problem(variable, None, text);
        }
        if environment.has_log_problem() {
            let text = "expected one of error, warn, info, debug, trace and off".to_owned();
            reader.problem(LOG_VARIABLE, None, text);
        }
        reader
    }

    fn empty(role: Option<Role>) -> Self {
        Self { given: BTreeMap::new(), problems: Vec::new(), in_force: Vec::new(), role }
    }

    fn take_file(&mut self, sources: &Sources<'_>) {
        let Some(file) = &sources.file else { return };
        let origin = Origin::File(file.path.clone());
        let parsed: toml::Table = match toml::from_str(&file.text) {
            Ok(parsed) => parsed,
            Err(error) => {
                let line = error.span().map_or(0, |span| {
                    file.text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1
                });
                // The parser's own text may quote what it found.
                self.problem("gleaner.toml", Some(origin), format!("line {line} is not TOML"));
                return;
            }
        };
        let mut flat = Vec::new();
        for (key, value) in parsed {
            let is_group = table().any(|setting| setting.group() == key);
            match value {
                toml::Value::Table(group) if is_group => {
                    flat.extend(
                        group.into_iter().map(|(inner, value)| (format!("{key}.{inner}"), value)),
                    );
                }
                value => flat.push((key, value)),
            }
        }
        for (name, value) in flat {
            match find(&name) {
                None => self.unknown(&name, origin.clone()),
                Some(setting) if setting.is_secret() => {
                    let text = not_here(setting);
                    self.problem(&name, Some(origin.clone()), text);
                }
                Some(setting) => {
                    self.given.insert(setting.name, (Raw::Toml(value), origin.clone()));
                }
            }
        }
    }

    fn take_environment(&mut self, sources: &Sources<'_>) {
        for setting in table() {
            let variable = setting.variable();
            if let Some(value) = (sources.environment)(&variable) {
                self.given.insert(setting.name, (Raw::Text(value), Origin::Variable(variable)));
            }
        }
        let known: Vec<String> = table().map(Setting::variable).collect();
        let others = OTHER_VARIABLES.map(|(name, _)| name);
        for variable in &sources.variables {
            let is_known = known.contains(variable) || others.contains(&variable.as_str());
            if !is_known {
                let names = known.iter().map(String::as_str).chain(others);
                let text = unread("variable", closest(variable, names));
                self.problem(variable, Some(Origin::Variable("the environment".to_owned())), text);
            }
        }
    }

    fn take_flags(&mut self, sources: &Sources<'_>) {
        for given in &sources.flags {
            let origin = Origin::Flag(given.flag);
            match find(&given.name) {
                None => self.unknown(&given.name, origin),
                Some(setting) if setting.is_secret() => {
                    self.problem(&given.name, Some(origin), not_here(setting));
                }
                Some(setting) => {
                    self.given.insert(setting.name, (Raw::Text(given.value.clone()), origin));
                }
            }
        }
    }

    fn unknown(&mut self, name: &str, origin: Origin) {
        let text = unread("setting", closest(name, table().map(|setting| setting.name)));
        self.problem(name, Some(origin), text);
    }

    /// Notes something that is wrong.
    pub(crate) fn problem(&mut self, name: &str, origin: Option<Origin>, text: String) {
        // A function has variables alone: their names say all of it.
        let (name, origin) = match (self.role, find(name)) {
            (Some(_), Some(setting)) => (setting.variable(), None),
            _ => (name.to_owned(), origin),
        };
        let name = name.chars().filter(|c| !c.is_control()).take(80).collect();
        self.problems.push(Problem { name, origin, text });
    }

    /// Whether problems may quote values. What a function finds wrong goes to a log that many read.
    pub(crate) fn may_quote(&self) -> bool {
        self.role.is_none()
    }

    /// Where a setting came from, if it was given.
    pub(crate) fn origin(&self, name: &str) -> Option<Origin> {
        self.given.get(name).map(|(_, origin)| origin.clone())
    }

    /// Reads one setting; `None` if it has no value or a wrong one.
    pub(crate) fn read<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(Form, &Raw) -> Option<T>,
    ) -> Option<T> {
        let Some(setting) = find(name) else {
            self.problem(name, None, "is read and not documented; this is a bug".to_owned());
            return None;
        };
        let given = self.given.get(name).cloned().or_else(|| match setting.default {
            Default::Value(text) => Some((Raw::Text(text.to_owned()), Origin::Default)),
            Default::None(_) => None,
        });
        // What a function does not read keeps its default, so that all of them are made alike.
        if self.role.is_some_and(|role| setting.read_by.need(role).is_none()) {
            return given.and_then(|(raw, _)| parse(setting.form, &raw));
        }
        let Some((raw, origin)) = given else {
            self.in_force.push(InForce { name, value: None, origin: Origin::Default });
            if let Some(role) = self.role
                && setting.read_by.need(role) == Some(Need::Required)
            {
                let text = format!("it is not set, and the {role} needs it: {}", setting.form);
                self.problem(name, None, text);
            }
            return None;
        };
        let shown = if setting.is_secret() { "[redacted]".to_owned() } else { raw.show() };
        let parsed = parse(setting.form, &raw);
        if parsed.is_none() {
            let is_private = setting.is_secret() || raw.may_be_private();
            let got = match shown.trim() {
                "" if !is_private => ", and it is empty".to_owned(),
                _ if is_private || !self.may_quote() => String::new(),
                _ => format!(", not `{shown}`"),
            };
            let text = format!("expected {}{got}", setting.form);
            self.problem(name, Some(origin.clone()), text);
        }
        self.in_force.push(InForce { name, value: Some(shown), origin });
        parsed
    }

    pub(crate) fn path(&mut self, name: &'static str) -> Option<PathBuf> {
        self.read(name, |_, raw| raw.plain()).map(PathBuf::from)
    }

    pub(crate) fn url(&mut self, name: &'static str) -> Option<String> {
        self.read(name, |_, raw| raw.url())
    }

    pub(crate) fn name(&mut self, name: &'static str) -> Option<String> {
        self.read(name, |form, raw| match form {
            Form::Name { min, max, marks, .. } => raw.name(min, max, marks),
            _ => None,
        })
    }

    pub(crate) fn secret(
        &mut self,
        name: &'static str,
        is_usable: impl Fn(&str) -> bool,
    ) -> Option<SecretText> {
        self.read(name, |_, raw| raw.plain().filter(|text| is_usable(text))).map(SecretText::new)
    }

    pub(crate) fn duration(&mut self, name: &'static str) -> Duration {
        self.optional_duration(name).unwrap_or_default()
    }

    pub(crate) fn optional_duration(&mut self, name: &'static str) -> Option<Duration> {
        self.read(name, |form, raw| match form {
            Form::Duration { min, max } => raw.duration(min, max),
            _ => None,
        })
    }

    pub(crate) fn bytes(&mut self, name: &'static str) -> usize {
        let bytes = self.read(name, |form, raw| match form {
            Form::Bytes { min, max } => raw.bytes(min, max),
            _ => None,
        });
        bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default()
    }

    pub(crate) fn count(&mut self, name: &'static str) -> u32 {
        let count = self.read(name, |form, raw| match form {
            Form::Count { min, max } => raw.count(min, max),
            _ => None,
        });
        count.and_then(|count| u32::try_from(count).ok()).unwrap_or_default()
    }

    pub(crate) fn optional_count(&mut self, name: &'static str) -> Option<u64> {
        let count = self.read(name, |form, raw| match form {
            Form::OptionalCount { min, max } => raw.optional_count(min, max),
            _ => None,
        });
        count.filter(|count| *count > 0)
    }

    pub(crate) fn word(&mut self, name: &'static str) -> Option<String> {
        self.read(name, |form, raw| match form {
            Form::Word(words) => raw.word(words),
            _ => None,
        })
    }

    /// What is wrong, or the settings as they are shown.
    pub(crate) fn finish(self) -> Result<Vec<InForce>, Problems> {
        if !self.problems.is_empty() {
            return Err(Problems(self.problems));
        }
        let shown =
            table().filter_map(|setting| self.in_force.iter().find(|at| at.name == setting.name));
        Ok(shown.cloned().collect())
    }
}

fn unread(what: &str, closest: Option<&str>) -> String {
    match closest {
        Some(name) => format!("no such {what}; did you mean `{name}`?"),
        None => format!("no such {what}; `gleaner settings` lists all of them"),
    }
}

fn not_here(setting: &Setting) -> String {
    let file = if setting.name == "api_key" { "api_key_file" } else { "secrets_file" };
    format!(
        "secrets are not taken from here, where others see them; set {} or `{file}`",
        setting.variable()
    )
}
