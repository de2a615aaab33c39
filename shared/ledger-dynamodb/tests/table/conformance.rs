//! The ports' conformance suites.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use testkit::conformance::{LedgerCaps, LedgerSubject};

use crate::table::{Table, pk};

async fn subject() -> LedgerSubject {
    let table = Table::new().await;
    let (entries, intents) = (table.clone(), table.clone());
    let spoilt = || AttributeValue::S("spoilt".to_owned());
    LedgerSubject::new(Arc::new(table.ledger()))
        .with_caps(LedgerCaps { lists_in_key_order: false, ..LedgerCaps::default() })
        .spoiling(
            move |key| entries.set(pk(key), key.kind.as_str(), "json", spoilt()),
            move |id| intents.set(format!("intent#{id}"), "intent", "json", spoilt()),
        )
}

testkit::ledger_conformance! { name: dynamodb_ledger, make: subject().await }
