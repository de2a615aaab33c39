use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use aws_client::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use domain::ports::{Clock, ErrorKind, PortError};

use crate::item::{DecodeError, EncodeError, Item, Key};

/// The port's name in errors.
const LEDGER: &str = "ledger";

/// The ledger in one table. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct DynamoLedger {
    pub(crate) client: Client,
    pub(crate) table: Arc<str>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the last delivery spoke of a job that the ledger knew, as is thought before the first
    /// one: the next one is begun so.
    pub(crate) expects_known: Arc<AtomicBool>,
}

impl DynamoLedger {
    /// The ledger in the table of this name, which exists and is as docs/table.md says. No call
    /// is made. The clock is for the pauses of bulk reads.
    pub fn new(config: &SdkConfig, table: &str, clock: Arc<dyn Clock>) -> Self {
        Self::with_client(Client::new(config), table, clock)
    }

    /// As [`DynamoLedger::new`], through a client that was made otherwise.
    pub fn with_client(client: Client, table: &str, clock: Arc<dyn Clock>) -> Self {
        Self { client, table: table.into(), clock, expects_known: Arc::new(AtomicBool::new(true)) }
    }

    /// Reads an item, consistently.
    pub(crate) async fn get(
        &self,
        operation: &'static str,
        key: Key,
    ) -> Result<Option<Item>, PortError> {
        let get = self.client.get_item().table_name(&*self.table).set_key(Some(key.into_item()));
        let got = get.consistent_read(true).send().await;
        Ok(got.map_err(|error| failed(operation, error))?.item)
    }
}

impl fmt::Debug for DynamoLedger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DynamoLedger").field("table", &self.table).finish_non_exhaustive()
    }
}

/// A call that failed.
pub(crate) fn failed<E>(operation: &'static str, error: SdkError<E>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    aws_client::port_error(LEDGER, operation, error)
}

pub(crate) fn invalid(
    operation: &'static str,
    why: impl std::error::Error + Send + Sync + 'static,
) -> PortError {
    PortError::new(LEDGER, operation, ErrorKind::Invalid).with_source(why)
}

pub(crate) fn refused(operation: &'static str) -> impl Fn(EncodeError) -> PortError {
    move |error| invalid(operation, error)
}

pub(crate) fn corrupt(operation: &'static str) -> impl Fn(DecodeError) -> PortError {
    move |error| PortError::new(LEDGER, operation, ErrorKind::Corrupt).with_source(error)
}

/// Trouble of the table that may pass.
pub(crate) fn trouble(operation: &'static str, kind: ErrorKind, why: &'static str) -> PortError {
    PortError::new(LEDGER, operation, kind).with_source(why)
}
