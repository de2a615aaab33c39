//! Intents: submissions before and after their POST.

use async_trait::async_trait;
use aws_sdk_dynamodb::types::Select;
use domain::intent::Intent;
use domain::job::Kind;
use domain::ports::{IntentExpected, IntentWritten, Intents, PortError};
use domain::time::Timestamp;

use crate::attributes::{DUE, POSTED_AT};
use crate::entries::untold;
use crate::item::{Key, decode_intent, encode_intent, micros, number, string};
use crate::ledger::{DynamoLedger, corrupt, failed, refused};
use crate::limits::{UNRESOLVED_PAGE, UNRESOLVED_PAGES_MAX};
use crate::places::post_partition;
use crate::put::{Condition, Put};

#[async_trait]
impl Intents for DynamoLedger {
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError> {
        let Some(key) = Key::intent(id) else { return Ok(None) };
        let item = self.get("load_intent", key).await?;
        item.map(|item| decode_intent(&item)).transpose().map_err(corrupt("load_intent"))
    }

    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError> {
        let item = encode_intent(intent).map_err(refused("write_intent"))?;
        let condition = match expected {
            IntentExpected::Absent(now) => Condition::absent_at(now),
            IntentExpected::Version(version) => Condition::version(version),
        };
        match self.put("write_intent", item, condition).await? {
            Put::Done => Ok(IntentWritten::Done),
            Put::Refused(None) if matches!(expected, IntentExpected::Absent(_)) => {
                Err(untold("write_intent"))
            }
            Put::Refused(there) => {
                let there = there.map(|item| decode_intent(&item)).transpose();
                Ok(IntentWritten::Conflict(there.map_err(corrupt("write_intent"))?.map(Box::new)))
            }
        }
    }

    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError> {
        let mut from = None;
        for _ in 0..UNRESOLVED_PAGES_MAX {
            let page = self
                .client
                .query()
                .table_name(&*self.table)
                .index_name(DUE.name)
                .select(Select::Count)
                .key_condition_expression("#partition = :partition")
                // One that does not say when it was intended counts.
                .filter_expression("attribute_not_exists(#posted_at) OR #posted_at <= :until")
                .expression_attribute_names("#partition", DUE.partition)
                .expression_attribute_names("#posted_at", POSTED_AT)
                .expression_attribute_values(":partition", string(post_partition(kind)))
                .expression_attribute_values(":until", number(micros(until)))
                .limit(UNRESOLVED_PAGE)
                .set_exclusive_start_key(from)
                .send()
                .await
                .map_err(|error| failed("has_unresolved_post", error))?;
            if page.count() > 0 {
                return Ok(true);
            }
            from = page.last_evaluated_key;
            if from.is_none() {
                return Ok(false);
            }
        }
        // Too many to look through: whoever asks waits.
        Ok(true)
    }
}
