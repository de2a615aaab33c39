//! Rows of two jobs, written together: one `TransactWriteItems`.

use async_trait::async_trait;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use domain::ports::{ErrorKind, Expected, Met, Pairs, PortError, RowWrite, WrittenBoth};

use crate::entries::untold;
use crate::item::{decode_entry, encode_entry};
use crate::ledger::{DynamoLedger, corrupt, failed, invalid, refused, trouble};
use crate::put::Condition;

/// The operation in errors.
const OPERATION: &str = "write_both";
/// Codes of a cancelled transaction's parts. Source: DynamoDB, `TransactWriteItems`.
const HELD: &str = "None";
const FAILED: &str = "ConditionalCheckFailed";
const REFUSED_FOR_NOW: [&str; 3] =
    ["ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"];

/// Why two rows cannot be written together.
#[derive(Debug, thiserror::Error)]
enum Unwritable {
    #[error("two rows of one job")]
    SameJob,
    #[error("the transaction was cancelled: {0}")]
    Cancelled(String),
}

#[async_trait]
impl Pairs for DynamoLedger {
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError> {
        let [one, other] = rows;
        if one.entry.key == other.entry.key {
            return Err(invalid(OPERATION, Unwritable::SameJob));
        }
        // The SDK names the call, so that one that it repeats is made once.
        let transaction = self
            .client
            .transact_write_items()
            .transact_items(self.put_of(one)?)
            .transact_items(self.put_of(other)?);
        match transaction.send().await {
            Ok(_) => Ok(WrittenBoth::Done),
            Err(SdkError::ServiceError(answer))
                if answer.err().is_transaction_canceled_exception() =>
            {
                let TransactWriteItemsError::TransactionCanceledException(cancelled) =
                    answer.into_err()
                else {
                    return Err(untold(OPERATION));
                };
                met(rows, cancelled.cancellation_reasons.unwrap_or_default())
            }
            Err(error) => Err(failed(OPERATION, error)),
        }
    }
}

impl DynamoLedger {
    fn put_of(&self, row: RowWrite<'_>) -> Result<TransactWriteItem, PortError> {
        let item = encode_entry(row.entry).map_err(refused(OPERATION))?;
        let condition = Condition::of(row.expected);
        let mut put = Put::builder()
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
        let put = put.build().map_err(|error| invalid(OPERATION, error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }
}

/// What a transaction that was cancelled met, one reason for each of its parts.
fn met(
    rows: [RowWrite<'_>; 2],
    reasons: Vec<CancellationReason>,
) -> Result<WrittenBoth, PortError> {
    let Ok([first, second]) = <[CancellationReason; 2]>::try_from(reasons) else {
        return Err(untold(OPERATION));
    };
    let code = |reason: &CancellationReason| reason.code.clone().unwrap_or_default();
    let codes = [code(&first), code(&second)];
    let all_told = codes.iter().all(|code| code == HELD || code == FAILED);
    if !all_told || codes.iter().all(|code| code == HELD) {
        // Nothing was decided about the rows.
        if codes.iter().any(|code| REFUSED_FOR_NOW.contains(&code.as_str())) {
            return Err(trouble(OPERATION, ErrorKind::Throttled, "the transaction met another"));
        }
        if codes.iter().any(|code| code == "ValidationError" || code.starts_with("ItemCollection"))
        {
            return Err(invalid(OPERATION, Unwritable::Cancelled(codes.join(", "))));
        }
        return Err(untold(OPERATION));
    }
    let [one, other] = rows;
    Ok(WrittenBoth::Conflict([met_one(one, first)?, met_one(other, second)?]))
}

fn met_one(row: RowWrite<'_>, reason: CancellationReason) -> Result<Met, PortError> {
    if reason.code.as_deref() != Some(FAILED) {
        return Ok(Met::Expected);
    }
    match reason.item {
        // Nothing is there only if something was expected to be.
        None if matches!(row.expected, Expected::Absent(_)) => Err(untold(OPERATION)),
        None => Ok(Met::Other(None)),
        Some(item) => {
            let there = decode_entry(&item).map_err(corrupt(OPERATION))?;
            Ok(Met::Other(Some(Box::new(there))))
        }
    }
}
