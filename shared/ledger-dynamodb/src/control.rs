//! Small rows that steer all parts.

use async_trait::async_trait;
use domain::ports::{Control, ControlRow, PortError};

use crate::item::{Key, decode_control, encode_control};
use crate::ledger::{DynamoLedger, corrupt, refused};
use crate::put::{Condition, Put};

#[async_trait]
impl Control for DynamoLedger {
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
        let Some(key) = Key::control(name) else { return Ok(None) };
        let item = self.get("load_control", key).await?;
        let row = item.map(|item| decode_control(name, &item)).transpose();
        row.map_err(corrupt("load_control"))
    }

    /// A write whose answer was lost and that the SDK repeated meets its own row and gives
    /// `false`: two writers may well mean to write equal values, so that equality proves nothing.
    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
        let item = encode_control(row).map_err(refused("write_control"))?;
        let condition = match row.version.checked_sub(1) {
            None => return Ok(false),
            Some(0) => Condition::absent(),
            Some(before) => Condition::version(before),
        };
        Ok(matches!(self.put("write_control", item, condition).await?, Put::Done))
    }
}
