//! JSON pointers (RFC 6901) through objects.

use serde::Deserialize;

/// Most pointers tried for one field.
pub const POINTERS_MAX: usize = 8;

/// Most keys in one pointer.
const POINTER_KEYS_MAX: usize = 8;

/// A JSON pointer. It leads through objects only; a number is a key, not an index.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pointer(Vec<String>);

/// One to eight pointers, tried in order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<Pointer>")]
pub struct PointerList(Vec<Pointer>);

/// Why a pointer or list of pointers was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// Not of the form that RFC 6901 asks for.
    #[error(
        "a JSON pointer begins with `/`, has 1 to 8 keys, and writes `~` as `~0` and `/` as `~1`"
    )]
    Pointer,
    /// An empty or over-long list.
    #[error("list 1 to 8 JSON pointers")]
    List,
}

impl Pointer {
    /// Parses a pointer such as `/data/job_id`.
    ///
    /// # Errors
    ///
    /// [`PointerError::Pointer`] if it is not of that form.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        let keys = text.strip_prefix('/').ok_or(PointerError::Pointer)?;
        let keys: Vec<String> =
            keys.split('/').map(unescape).collect::<Option<_>>().ok_or(PointerError::Pointer)?;
        if keys.len() > POINTER_KEYS_MAX {
            return Err(PointerError::Pointer);
        }
        Ok(Self(keys))
    }

    pub(super) fn keys(&self) -> &[String] {
        &self.0
    }
}

impl TryFrom<String> for Pointer {
    type Error = PointerError;

    fn try_from(text: String) -> Result<Self, PointerError> {
        Self::parse(&text)
    }
}

impl PointerList {
    /// Checks the number of pointers.
    ///
    /// # Errors
    ///
    /// [`PointerError::List`] for none or more than eight.
    pub fn new(pointers: Vec<Pointer>) -> Result<Self, PointerError> {
        if pointers.is_empty() || pointers.len() > POINTERS_MAX {
            return Err(PointerError::List);
        }
        Ok(Self(pointers))
    }

    /// The defaults, which parse; a test counts them.
    pub(super) fn of(texts: &[&str]) -> Self {
        Self(texts.iter().filter_map(|text| Pointer::parse(text).ok()).collect())
    }

    /// The pointers in order.
    pub fn pointers(&self) -> &[Pointer] {
        &self.0
    }
}

impl TryFrom<Vec<Pointer>> for PointerList {
    type Error = PointerError;

    fn try_from(pointers: Vec<Pointer>) -> Result<Self, PointerError> {
        Self::new(pointers)
    }
}

/// Undoes `~1` and `~0`; any other tilde is an error.
fn unescape(key: &str) -> Option<String> {
    let mut parts = key.split('~');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let rest = match part.as_bytes().first() {
            Some(b'0') => {
                text.push('~');
                part.get(1..)?
            }
            Some(b'1') => {
                text.push('/');
                part.get(1..)?
            }
            _ => return None,
        };
        text.push_str(rest);
    }
    Some(text)
}
