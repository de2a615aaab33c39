//! Rows of two jobs, written together: one operation of the writing thread.

use async_trait::async_trait;
use domain::ports::{ErrorKind, Expected, Met, Pairs, PortError, RowWrite, WrittenBoth};

use crate::counts::Group;
use crate::entries::{There, decode, is_met, put};
use crate::row::EntryRow;
use crate::store::{LEDGER, SqliteStore, ledger_error};

/// The operation in errors.
const OPERATION: &str = "write_both";

#[async_trait]
impl Pairs for SqliteStore {
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError> {
        let [one, other] = rows;
        if one.entry.key == other.entry.key {
            return Err(ledger_error(OPERATION, ErrorKind::Invalid, "two rows of one job"));
        }
        let encode = |row: RowWrite<'_>| {
            EntryRow::encode(row.entry)
                .map(|encoded| (encoded, row.expected))
                .map_err(|error| ledger_error(OPERATION, ErrorKind::Invalid, error))
        };
        let encoded = [encode(one)?, encode(other)?];
        let there = self.write(LEDGER, OPERATION, move |group| write_both(group, &encoded)).await?;
        let Some([first, second]) = there else { return Ok(WrittenBoth::Done) };
        let meet = |row: RowWrite<'_>, met: MetRow| match met {
            MetRow::Expected => Ok(Met::Expected),
            MetRow::Other(json) => {
                let there =
                    json.map(|json| decode(&row.entry.key, &json, OPERATION)).transpose()?;
                Ok(Met::Other(there.map(Box::new)))
            }
        };
        Ok(WrittenBoth::Conflict([meet(one, first)?, meet(other, second)?]))
    }
}

/// What was met in the place of one of two rows.
enum MetRow {
    Expected,
    Other(Option<String>),
}

/// Writes both, or neither; what was met if a condition failed. A transaction of its own is not
/// needed: whatever fails here undoes the whole operation.
fn write_both(
    group: &Group,
    rows: &[(EntryRow, Expected); 2],
) -> rusqlite::Result<Option<[MetRow; 2]>> {
    let [(one, expected), (other, other_expected)] = rows;
    let (there, other_there) = (There::of(group, one)?, There::of(group, other)?);
    let conditions =
        [is_met(there.as_ref(), *expected), is_met(other_there.as_ref(), *other_expected)];
    if conditions != [true, true] {
        let met = |is_met: bool, there: Option<There>| {
            if is_met { MetRow::Expected } else { MetRow::Other(there.map(|there| there.json)) }
        };
        let [first, second] = conditions;
        return Ok(Some([met(first, there), met(second, other_there)]));
    }
    put(group, one, there.as_ref().map(There::labels))?;
    put(group, other, other_there.as_ref().map(There::labels))?;
    Ok(None)
}
