//! What values look like, and reading them.

mod aws;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use domain::job::Kind;
use url::Url;

pub use aws::Marks;

/// What a setting's value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A path of the file system.
    Path,
    /// An absolute `http` or `https` URL.
    Url,
    /// A path of a URL.
    HttpPath,
    /// An IP address and a port.
    Address,
    /// A whole number with its unit.
    Duration {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
    /// A number of bytes.
    Bytes {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A whole number.
    Count {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A whole number, or `none`.
    OptionalCount {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of what the text says.
    List(&'static str),
    /// Event types and the kinds of job that they complete.
    Events,
    /// A whole signature scheme.
    Scheme,
    /// A text that is never shown.
    Secret,
    /// The name of an AWS resource.
    Name {
        /// Whose name, with its article.
        of: &'static str,
        /// Least characters.
        min: usize,
        /// Most characters.
        max: usize,
        /// Which characters.
        marks: Marks,
    },
    /// The URL of an SQS queue.
    QueueUrl,
    /// What keys of objects begin with.
    KeyPrefix,
    /// A secret of AWS Secrets Manager.
    SecretId,
    /// Secrets of AWS Secrets Manager.
    SecretIds,
}

impl fmt::Display for Form {
    /// The expected form as a person reads it after "expected".
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => out.write_str("a path"),
            Self::Url => out.write_str(
                "an absolute http or https URL without user, query and fragment",
            ),
            Self::HttpPath => out.write_str(
                "a path that begins with `/`, other than `/healthz`, of letters, digits and `/-._~`",
            ),
            Self::Address => out.write_str("an IP address with a port, such as `127.0.0.1:8787`"),
            Self::Duration { min, max } => write!(
                out,
                "a duration from {} to {}, as a whole number with `ms`, `s`, `m`, `h` or `d`",
                show_duration(*min),
                show_duration(*max)
            ),
            Self::Bytes { min, max } => write!(
                out,
                "a size from {} to {}, as a whole number of bytes or with `KiB`, `MiB` or `GiB`",
                show_bytes(*min),
                show_bytes(*max)
            ),
            Self::Count { min, max } => write!(out, "a whole number from {min} to {max}"),
            Self::OptionalCount { min, max } => {
                write!(out, "`none` or a whole number from {min} to {max}")
            }
            Self::Word(words) => write!(out, "one of {}", ticked(words)),
            Self::List(of) => write!(
                out,
                "a list of {of}: an array in the file, separated by commas elsewhere"
            ),
            Self::Events => out.write_str(
                "event types with their kinds: a table in the file, `type=kind` separated by \
                 commas elsewhere; kinds are `extract`, `batch` and `crawl`",
            ),
            Self::Scheme => out.write_str(
                "a table with one of `hmac`, `preset` and `static-header`, elsewhere as a TOML \
                 inline table",
            ),
            Self::Secret => out.write_str("a secret that is not blank, and no JSON of an unknown shape"),
            Self::Name { of, min, max, marks } => {
                write!(out, "the name of {of}: {min} to {max} {}", marks.told())
            }
            Self::QueueUrl => out.write_str("the URL of a standard queue, not of a `.fifo` one"),
            Self::KeyPrefix => out.write_str(
                "parts of letters, digits and `-._=` with a `/` between two, at most 256 bytes",
            ),
            Self::SecretId => out.write_str("the name or ARN of a secret"),
            Self::SecretIds => out.write_str(
                "a list of 1 to 30 names or ARNs of secrets, each once: an array in the file, \
                 separated by commas elsewhere",
            ),
        }
    }
}

fn ticked(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// A value as it was given.
#[derive(Clone)]
pub(crate) enum Raw {
    /// By a flag, a variable or a default.
    Text(String),
    /// By the file.
    Toml(toml::Value),
}

impl Raw {
    /// The text, unless the file gives something else.
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Toml(toml::Value::String(text)) => Some(text.trim()),
            Self::Toml(_) => None,
        }
    }

    /// The whole value as text.
    fn whole(&self) -> String {
        match self {
            Self::Text(text) | Self::Toml(toml::Value::String(text)) => text.clone(),
            Self::Toml(toml::Value::Array(items)) if items.iter().all(toml::Value::is_str) => {
                items.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>().join(",")
            }
            Self::Toml(value) => value.to_string(),
        }
    }

    /// Whether the value, which was refused, may hold a password or a key, as a URL can.
    pub(crate) fn may_be_private(&self) -> bool {
        self.whole().contains(['@', '?'])
    }

    /// The value as a person may see it, cut.
    pub(crate) fn show(&self) -> String {
        const SHOWN_CHARS_MAX: usize = 120;
        let text = self.whole();
        let is_long = text.chars().nth(SHOWN_CHARS_MAX).is_some();
        let mut shown: String = text
            .chars()
            .take(SHOWN_CHARS_MAX)
            .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
            .collect();
        if is_long {
            shown.push('…');
        }
        shown
    }

    pub(crate) fn plain(&self) -> Option<String> {
        self.text().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    pub(crate) fn url(&self) -> Option<String> {
        let text = self.text()?;
        let url = Url::parse(text).ok()?;
        let is_usable = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        is_usable.then(|| text.to_owned())
    }

    pub(crate) fn http_path(&self) -> Option<String> {
        let text = self.text()?;
        let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~".contains(&b));
        let is_path = text.starts_with('/') && text.len() <= 256 && text != "/healthz";
        (is_plain && is_path).then(|| text.to_owned())
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.text()?.parse().ok()
    }

    pub(crate) fn duration(&self, min: Duration, max: Duration) -> Option<Duration> {
        parse_duration(self.text()?).filter(|duration| (min..=max).contains(duration))
    }

    pub(crate) fn bytes(&self, min: u64, max: u64) -> Option<u64> {
        let bytes = match self {
            Self::Toml(toml::Value::Integer(bytes)) => u64::try_from(*bytes).ok()?,
            _ => parse_bytes(self.text()?)?,
        };
        (min..=max).contains(&bytes).then_some(bytes)
    }

    pub(crate) fn count(&self, min: u64, max: u64) -> Option<u64> {
        let count = match self {
            Self::Toml(toml::Value::Integer(count)) => u64::try_from(*count).ok()?,
            Self::Text(text) => digits(text.trim())?,
            Self::Toml(_) => return None,
        };
        (min..=max).contains(&count).then_some(count)
    }

    /// Zero for `none`, which no range holds.
    pub(crate) fn optional_count(&self, min: u64, max: u64) -> Option<u64> {
        if self.text() == Some("none") { Some(0) } else { self.count(min.max(1), max) }
    }

    pub(crate) fn word(&self, words: &[&str]) -> Option<String> {
        self.text().filter(|text| words.contains(text)).map(str::to_owned)
    }

    pub(crate) fn list(&self) -> Option<Vec<String>> {
        match self {
            Self::Text(text) => Some(text.split(',').map(|item| item.trim().to_owned()).collect()),
            Self::Toml(toml::Value::Array(items)) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Self::Toml(_) => None,
        }
    }

    pub(crate) fn events(&self) -> Option<BTreeMap<String, Kind>> {
        let pairs: Vec<(String, String)> = match self {
            Self::Text(text) => text
                .split(',')
                .map(|pair| pair.split_once('='))
                .map(|pair| pair.map(|(a, b)| (a.trim().to_owned(), b.trim().to_owned())))
                .collect::<Option<_>>()?,
            Self::Toml(toml::Value::Table(table)) => table
                .iter()
                .map(|(name, kind)| Some((name.clone(), kind.as_str()?.to_owned())))
                .collect::<Option<_>>()?,
            Self::Toml(_) => return None,
        };
        let mut events = BTreeMap::new();
        for (name, kind) in pairs {
            let is_new = events.insert(name.clone(), kind.parse().ok()?).is_none();
            if name.is_empty() || !is_new {
                return None;
            }
        }
        (!events.is_empty()).then_some(events)
    }

    /// The value as TOML; a text is read as a TOML value.
    pub(crate) fn toml(&self) -> Option<toml::Value> {
        match self {
            Self::Toml(value) => Some(value.clone()),
            Self::Text(text) => {
                let mut table: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
                if table.len() == 1 { table.remove("value") } else { None }
            }
        }
    }
}

/// Digits only: no sign, no space, no separator.
fn digits(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

/// Splits a number from its unit.
fn split_unit(text: &str) -> Option<(u64, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(at)?;
    Some((digits(number)?, unit))
}

const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

const BYTE_UNITS: [(&str, u64); 4] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("", 1)];

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let (_, millis) = DURATION_UNITS.into_iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(millis).map(Duration::from_millis)
}

fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let (_, bytes) = BYTE_UNITS.into_iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(bytes)
}

/// A duration in its largest whole unit.
pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let fits = |unit: u64| millis > 0 && millis.is_multiple_of(unit);
    let unit = DURATION_UNITS.into_iter().find(|(_, unit)| fits(*unit));
    unit.map_or_else(|| format!("{millis}ms"), |(name, unit)| format!("{}{name}", millis / unit))
}

fn show_bytes(bytes: u64) -> String {
    let unit = BYTE_UNITS.into_iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

#[cfg(test)]
mod tests;
