//! Where a listing goes on: a word that names the listing, and its place, as a JSON array.

use domain::ports::Cursor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A cursor that no listing of this kind made.
#[derive(Debug, thiserror::Error)]
#[error("the cursor was not made by this listing; begin the listing anew")]
pub(crate) struct CursorError;

pub(crate) fn encode<T: Serialize>(listing: &str, place: &T) -> Cursor {
    // Texts always have a JSON form.
    Cursor(serde_json::to_string(&(listing, place)).unwrap_or_default())
}

pub(crate) fn decode<T: DeserializeOwned>(
    listing: &str,
    cursor: Option<&Cursor>,
) -> Result<Option<T>, CursorError> {
    let Some(cursor) = cursor else { return Ok(None) };
    let (made_by, place): (String, T) = serde_json::from_str(&cursor.0).map_err(|_| CursorError)?;
    if made_by == listing { Ok(Some(place)) } else { Err(CursorError) }
}
