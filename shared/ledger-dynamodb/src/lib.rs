//! The ledger in one Amazon DynamoDB table.
