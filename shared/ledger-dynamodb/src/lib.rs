#![doc = include_str!("../README.md")]

mod attributes;
mod bulk;
mod control;
mod cursor;
mod due;
mod entries;
mod index;
mod inspection;
mod intents;
mod item;
mod ledger;
pub mod limits;
mod pairs;
mod places;
mod put;
mod scan;

pub use ledger::DynamoLedger;
