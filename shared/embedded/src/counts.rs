//! How many rows there are: counted while they are written, so that nobody has to read them all.
//!
//! The operations of a group note what they change; the sum is written once, in the transaction
//! that changes the rows. A count is therefore as durable as its rows, and exact.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

/// Which rows are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowsOf {
    Entries,
    Intents,
}

impl RowsOf {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Entries => "entries",
            Self::Intents => "intents",
        }
    }
}

/// A transaction of the writing connection, and what it changes in the counts.
pub(crate) struct Group<'c> {
    connection: &'c Connection,
    noted: RefCell<Vec<Noted>>,
}

/// A name and how many rows more it has. There are few names, so that looking through them all is
/// the quickest way to find one.
struct Noted {
    of: RowsOf,
    name: String,
    /// By the operation that runs now.
    one: i64,
    /// By the operations before it.
    all: i64,
}

impl Deref for Group<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl<'c> Group<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection, noted: RefCell::default() }
    }

    /// Notes so many rows more, or fewer.
    pub(crate) fn count(&self, of: RowsOf, name: &str, more: i64) {
        let mut noted = self.noted.borrow_mut();
        match noted.iter_mut().find(|noted| noted.of == of && noted.name == name) {
            Some(noted) => noted.one += more,
            None => noted.push(Noted { of, name: name.to_owned(), one: more, all: 0 }),
        }
    }

    /// Ends an operation whose changes stay.
    pub(crate) fn keep(&self) {
        for noted in &mut *self.noted.borrow_mut() {
            noted.all += std::mem::take(&mut noted.one);
        }
    }

    /// Ends an operation whose changes were undone.
    pub(crate) fn forget(&self) {
        for noted in &mut *self.noted.borrow_mut() {
            noted.one = 0;
        }
    }

    /// Writes the sums down.
    pub(crate) fn write_counts(&self) -> rusqlite::Result<()> {
        for Noted { of, name, all, .. } in self.noted.borrow().iter() {
            if *all != 0 {
                self.prepare_cached(
                    "INSERT INTO counts (rows_of, name, number) VALUES (?1, ?2, ?3) \
                     ON CONFLICT (rows_of, name) DO UPDATE SET number = number + excluded.number",
                )?
                .execute(params![of.as_str(), name, all])?;
            }
        }
        Ok(())
    }
}

/// The name under which a dead entry is counted once more.
pub(crate) fn dead_name(reason: &str) -> String {
    format!("dead:{reason}")
}

/// A text that is counted by, or compared; `None` for null. A damaged or foreign row may hold what
/// is no Unicode: it keeps nobody from removing the row or from writing over it.
pub(crate) fn label(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    })
}

/// Reads the counts of some rows.
pub(crate) fn read(connection: &Connection, of: RowsOf) -> rusqlite::Result<BTreeMap<String, u64>> {
    connection
        .prepare_cached("SELECT name, number FROM counts WHERE rows_of = ?1 AND number > 0")?
        .query_map([of.as_str()], |row| {
            let number: i64 = row.get(1)?;
            Ok((row.get(0)?, u64::try_from(number).unwrap_or(0)))
        })?
        .collect()
}

#[cfg(test)]
mod tests;
