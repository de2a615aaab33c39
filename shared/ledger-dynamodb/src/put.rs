//! How items are written: by conditional puts of whole items.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use domain::entry::Seen;
use domain::ports::{Expected, PortError};
use domain::time::Timestamp;

use crate::attributes::{EXPIRES_AT, GENERATION, PK, STATE, VERSION};
use crate::item::{Item, number, string};
use crate::ledger::{DynamoLedger, failed};

/// What a put expects to find. Each attribute has a placeholder of its own, since some names are
/// reserved words of DynamoDB.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) expression: &'static str,
    pub(crate) names: Vec<(&'static str, &'static str)>,
    pub(crate) values: Vec<(&'static str, AttributeValue)>,
}

impl Condition {
    /// What is expected of an entry's place.
    pub(crate) fn of(expected: Expected) -> Self {
        match expected {
            Expected::Absent(now) => Self::absent_at(now),
            Expected::As(seen) => Self::seen(seen),
        }
    }

    /// No item at all.
    pub(crate) fn absent() -> Self {
        let names = vec![("#pk", PK)];
        Self { expression: "attribute_not_exists(#pk)", names, values: Vec::new() }
    }

    /// No item, or one that expired: the table may keep it for days.
    pub(crate) fn absent_at(now: Timestamp) -> Self {
        Self {
            expression: "attribute_not_exists(#pk) OR #expires_at <= :now",
            names: vec![("#pk", PK), ("#expires_at", EXPIRES_AT)],
            values: vec![(":now", number(now.as_second()))],
        }
    }

    /// The entry as it was read.
    pub(crate) fn seen(seen: Seen) -> Self {
        Self {
            expression: "#state = :state AND #generation = :generation AND #version = :version",
            names: vec![("#state", STATE), ("#generation", GENERATION), ("#version", VERSION)],
            values: vec![
                (":state", string(seen.state.as_str())),
                (":generation", number(seen.generation)),
                (":version", number(seen.version)),
            ],
        }
    }

    /// The item in this version.
    pub(crate) fn version(version: u64) -> Self {
        Self {
            expression: "#version = :version",
            names: vec![("#version", VERSION)],
            values: vec![(":version", number(version))],
        }
    }
}

/// What became of a put.
#[derive(Debug)]
pub(crate) enum Put {
    /// The item is written.
    Done,
    /// The condition failed; the item that is there, if there is one.
    Refused(Option<Item>),
}

impl DynamoLedger {
    /// Writes an item if the one there is as expected: one call, which the SDK may repeat.
    pub(crate) async fn put(
        &self,
        operation: &'static str,
        item: Item,
        condition: Condition,
    ) -> Result<Put, PortError> {
        let mut put = self
            .client
            .put_item()
            .table_name(&*self.table)
            .set_item(Some(item))
            .condition_expression(condition.expression)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (placeholder, name) in condition.names {
            put = put.expression_attribute_names(placeholder, name);
        }
        for (placeholder, value) in condition.values {
            put = put.expression_attribute_values(placeholder, value);
        }
        match put.send().await {
            Ok(_) => Ok(Put::Done),
            Err(SdkError::ServiceError(answer))
                if answer.err().is_conditional_check_failed_exception() =>
            {
                let PutItemError::ConditionalCheckFailedException(failure) = answer.into_err()
                else {
                    return Ok(Put::Refused(None));
                };
                Ok(Put::Refused(failure.item))
            }
            Err(error) => Err(failed(operation, error)),
        }
    }
}
