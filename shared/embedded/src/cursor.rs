//! Where a listing goes on: the sort columns of the last row, as a JSON array.

use domain::ports::Cursor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A cursor that no listing of this kind made.
#[derive(Debug, thiserror::Error)]
#[error("the cursor was not made by this listing; begin the listing anew")]
pub(crate) struct CursorError;

pub(crate) fn encode<T: Serialize>(columns: &T) -> Cursor {
    // Integers and texts always have a JSON form.
    Cursor(serde_json::to_string(columns).unwrap_or_default())
}

pub(crate) fn decode<T: DeserializeOwned>(
    cursor: Option<&Cursor>,
) -> Result<Option<T>, CursorError> {
    cursor.map(|cursor| serde_json::from_str(&cursor.0).map_err(|_| CursorError)).transpose()
}
