//! What may be signed: the body alone, or after a timestamp, or after an id and a timestamp.

use jiff::Timestamp;

use super::Delivered;
use super::claims::Claim;
use crate::signature::dimension::{
    BodyForm, Grammar, HeaderName, SignedContent, Source, TimestampUnit,
};
use crate::signature::header::{HEADER_BYTES_MAX, SIGNED_VALUE_BYTES_MAX, split_at_byte};
use crate::signature::inflate::{Coding, inflate};
use crate::signature::verdict::Reason;

/// Most timestamps and ids that are tried, each.
const VALUES_MAX: usize = 4;
/// Length of a UUID with its hyphens.
const UUID_BYTES: usize = 36;
/// Headers that every request may have, which no sender signs.
const NEVER_SIGNED: [&str; 4] = ["content-length", "host", "user-agent", "x-forwarded-port"];

/// All contents that may be signed.
pub(super) struct Contents {
    pub(super) all: Vec<Content>,
    /// The body before its content coding, if it has one.
    inflated: Option<Vec<u8>>,
    /// Where timestamps were found.
    pub(super) timestamps: Vec<String>,
    /// Where ids were found.
    pub(super) ids: Vec<String>,
    pub(super) not_inflated: Option<Reason>,
}

/// One of them.
pub(super) struct Content {
    pub(super) signed: Signed,
    /// What is signed before the body, with its full stops.
    pub(super) before_body: String,
    pub(super) form: BodyForm,
}

/// The parts of a content, and where they came from.
pub(super) enum Signed {
    Body,
    TimestampBody(Stamp),
    IdTimestampBody(Id, Stamp),
}

/// A timestamp.
#[derive(Clone)]
pub(super) struct Stamp {
    pub(super) from: Source,
    pub(super) unit: TimestampUnit,
    pub(super) at: Timestamp,
    place: Place,
    text: String,
}

/// An id.
#[derive(Clone)]
pub(super) struct Id {
    pub(super) from: Source,
    place: Place,
    text: String,
}

/// Where a value was found.
#[derive(Clone)]
enum Place {
    /// In a header of its own.
    Header(HeaderName),
    /// In the list of a signature header, under this key.
    List(HeaderName, String),
}

impl Place {
    fn source(&self) -> Source {
        match self {
            Self::Header(name) => Source::Headers(vec![name.clone()]),
            Self::List(_, key) => Source::SignatureKey(key.clone()),
        }
    }

    fn told(&self) -> String {
        match self {
            Self::Header(name) => name.as_str().to_owned(),
            Self::List(name, key) => format!("{} ({key})", name.as_str()),
        }
    }

    /// Whether its name says that it is an id.
    fn is_called_id(&self) -> bool {
        let name = match self {
            Self::Header(name) => name.as_str(),
            Self::List(_, key) => key,
        };
        name.split(['-', '_']).any(|word| word.eq_ignore_ascii_case("id"))
    }

    /// Whether a signature stands here.
    fn is_claimed(&self, claims: &[Claim]) -> bool {
        match self {
            Self::Header(name) => claims.iter().any(|claim| claim.header == *name),
            Self::List(..) => false,
        }
    }

    /// Whether a signature can be verified with a value from here.
    fn fits(&self, claim: &Claim) -> bool {
        match (self, &claim.grammar) {
            (Self::Header(name), _) => *name != claim.header,
            (Self::List(name, key), Grammar::KeyValue(list)) => {
                *name == claim.header && *key != list.key
            }
            (Self::List(..), _) => false,
        }
    }
}

impl Signed {
    pub(super) fn name(&self) -> SignedContent {
        match self {
            Self::Body => SignedContent::Body,
            Self::TimestampBody(_) => SignedContent::TimestampBody,
            Self::IdTimestampBody(..) => SignedContent::IdTimestampBody,
        }
    }
}

impl Content {
    /// Whether a digest may be of this content.
    pub(super) fn fits(&self, claim: &Claim) -> bool {
        match &self.signed {
            Signed::Body => true,
            Signed::TimestampBody(stamp) => stamp.place.fits(claim),
            Signed::IdTimestampBody(id, stamp) => id.place.fits(claim) && stamp.place.fits(claim),
        }
    }
}

impl Contents {
    /// The body in this form.
    pub(super) fn body<'b>(&'b self, form: BodyForm, raw_body: &'b [u8]) -> &'b [u8] {
        match (form, &self.inflated) {
            (BodyForm::Inflated, Some(inflated)) => inflated,
            _ => raw_body,
        }
    }
}

/// Puts together what may be signed, the likeliest first.
pub(super) fn contents(headers: &Delivered, raw_body: &[u8], claims: &[Claim]) -> Contents {
    let (stamps, ids) = values(headers, claims);
    let coding = Coding::of(&headers.to_vec());
    let (inflated, not_inflated) = match coding {
        Ok(Coding::Identity) => (None, None),
        Ok(Coding::Gzip) => match inflate(raw_body) {
            Ok(body) => (Some(body), None),
            Err(reason) => (None, Some(reason)),
        },
        Err(reason) => (None, Some(reason)),
    };
    let forms = [Some(BodyForm::AsReceived), inflated.as_ref().map(|_| BodyForm::Inflated)];
    let all = forms.into_iter().flatten().flat_map(|form| of_form(form, &stamps, &ids)).collect();
    let timestamps = stamps.iter().map(|stamp| stamp.place.told()).collect();
    let ids = ids.iter().map(|id| id.place.told()).collect();
    Contents { all, inflated, timestamps, ids, not_inflated }
}

/// What may be signed with the body in one form.
fn of_form(form: BodyForm, stamps: &[Stamp], ids: &[Id]) -> Vec<Content> {
    let alone = Content { signed: Signed::Body, before_body: String::new(), form };
    let stamped = stamps.iter().map(|stamp| Content {
        signed: Signed::TimestampBody(stamp.clone()),
        before_body: format!("{}.", stamp.text),
        form,
    });
    let both = stamps.iter().flat_map(|stamp| ids.iter().map(move |id| (id, stamp)));
    let identified = both.map(|(id, stamp)| Content {
        signed: Signed::IdTimestampBody(id.clone(), stamp.clone()),
        before_body: format!("{}.{}.", id.text, stamp.text),
        form,
    });
    std::iter::once(alone).chain(stamped).chain(identified).collect()
}

/// The timestamps and ids among the headers.
fn values(headers: &Delivered, claims: &[Claim]) -> (Vec<Stamp>, Vec<Id>) {
    let (mut stamps, mut ids) = (Vec::new(), Vec::new());
    for (place, text) in placed(headers) {
        if let Some((unit, at)) = timestamp(&text) {
            stamps.push(Stamp { from: place.source(), unit, at, place, text });
        } else if is_id(&text, &place) && !place.is_claimed(claims) {
            ids.push(Id { from: place.source(), place, text });
        }
    }
    // What is called an id goes before what only looks like one.
    ids.sort_by_key(|id| !id.place.is_called_id());
    stamps.truncate(VALUES_MAX);
    ids.truncate(VALUES_MAX);
    (stamps, ids)
}

/// All short texts of the headers, and of lists in them.
fn placed(headers: &Delivered) -> Vec<(Place, String)> {
    let mut placed = Vec::new();
    for (name, value) in headers {
        let value = value.trim_ascii();
        let Ok(name) = HeaderName::parse(name) else { continue };
        if NEVER_SIGNED.contains(&name.as_str()) || value.len() > HEADER_BYTES_MAX {
            continue;
        }
        if let Some(text) = short(value) {
            placed.push((Place::Header(name.clone()), text));
        }
        for pair in value.split(|byte| *byte == b',') {
            let pair = split_at_byte(pair, b'=').map(|(key, value)| (short(key), short(value)));
            if let Some((Some(key), Some(text))) = pair {
                placed.push((Place::List(name.clone(), key), text));
            }
        }
    }
    placed
}

fn short(value: &[u8]) -> Option<String> {
    let is_short = !value.is_empty() && value.len() <= SIGNED_VALUE_BYTES_MAX;
    let is_graphic = value.iter().all(u8::is_ascii_graphic);
    let text = std::str::from_utf8(value).ok()?;
    (is_short && is_graphic).then(|| text.to_owned())
}

/// A time in this or the next decades, in one of the units.
fn timestamp(text: &str) -> Option<(TimestampUnit, Timestamp)> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    match (is_number, text.len()) {
        (true, 10) => {
            Some((TimestampUnit::Seconds, Timestamp::from_second(text.parse().ok()?).ok()?))
        }
        (true, 13) => {
            let at = Timestamp::from_millisecond(text.parse().ok()?).ok()?;
            Some((TimestampUnit::Milliseconds, at))
        }
        (true, _) => None,
        (false, _) => Some((TimestampUnit::Iso8601, text.parse().ok()?)),
    }
}

/// Whether a text may be an id that is signed: without a full stop, and called so or a UUID.
fn is_id(text: &str, place: &Place) -> bool {
    let is_of_uuid = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let is_uuid = text.len() == UUID_BYTES && text.bytes().all(is_of_uuid);
    !text.contains('.') && (is_uuid || place.is_called_id())
}
