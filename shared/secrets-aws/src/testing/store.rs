//! Secrets, their versions and stages, with the rules of Secrets Manager.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::time::Timestamp;
use serde_json::json;

use super::call::{Call, Get, Named, Put, REGION, Restage, Rotate};
use super::versions::{CURRENT, Kept, LABELS_MAX, PENDING, Value, Version, seconds};

/// A refusal of Secrets Manager.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// Its code.
    pub code: &'static str,
    /// Its message.
    pub message: String,
}

impl Refusal {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    fn absent(what: &str) -> Self {
        let message = format!("Secrets Manager can't find the specified secret{what}.");
        Self::new("ResourceNotFoundException", message)
    }
}

#[derive(Default)]
pub(super) struct Store {
    secrets: BTreeMap<String, Kept>,
    forbidden: BTreeSet<String>,
    made: u32,
}

impl Store {
    pub(super) fn run(&mut self, call: Call, now: Timestamp) -> Result<serde_json::Value, Refusal> {
        match call {
            Call::Get(get) => self.get(&get),
            Call::Put(put) => self.put(put, now),
            Call::Restage(moved) => self.move_stage(&moved),
            Call::Describe(named) => self.describe(&named),
            Call::Rotate(rotate) => self.rotate(&rotate, now),
        }
    }

    /// The secret of a name or a whole ARN, if the caller may use it and it is not going.
    fn find(&mut self, action: &str, id: &str) -> Result<(&str, &mut Kept), Refusal> {
        let found = self.secrets.iter().find(|(name, kept)| *name == id || kept.arn == id);
        let name = found.map_or_else(|| id.to_owned(), |(name, _)| name.clone());
        if self.forbidden.contains(&name) {
            let message = format!(
                "User: arn:aws:sts::123456789012:assumed-role/fake/fake is not authorized to \
                 perform: secretsmanager:{action} on resource: {id} because no identity-based \
                 policy allows the secretsmanager:{action} action"
            );
            return Err(Refusal::new("AccessDeniedException", message));
        }
        let Some((name, kept)) = self.secrets.iter_mut().find(|(kept, _)| **kept == name) else {
            return Err(Refusal::absent(""));
        };
        if kept.is_deleted {
            let message = "You can't perform this operation on the secret because it was marked \
                           for deletion.";
            return Err(Refusal::new("InvalidRequestException", message));
        }
        Ok((name, kept))
    }

    fn get(&mut self, get: &Get) -> Result<serde_json::Value, Refusal> {
        let (name, kept) = self.find("GetSecretValue", &get.secret_id)?;
        let stage = match (&get.version_stage, &get.version_id) {
            (None, None) => Some(CURRENT),
            (stage, _) => stage.as_deref(),
        };
        let absent = || match (stage, &get.version_id) {
            (Some(stage), None) => Refusal::absent(&format!(" value for staging label: {stage}")),
            (_, id) => {
                let id = id.as_deref().unwrap_or_default();
                Refusal::absent(&format!(" value for VersionId: {id}"))
            }
        };
        let (id, version) = match &get.version_id {
            Some(id) => kept.versions.get_key_value(id),
            None => kept
                .versions
                .iter()
                .find(|(_, version)| stage.is_some_and(|stage| version.stages.contains(stage))),
        }
        .ok_or_else(absent)?;
        if stage.is_some_and(|stage| !version.stages.contains(stage)) {
            let message =
                "You provided a VersionStage that is not associated to the provided VersionId.";
            return Err(Refusal::new("InvalidRequestException", message));
        }
        let value = version.value.as_ref().ok_or_else(absent)?;
        if version.is_undecryptable {
            let message = "Secrets Manager can't decrypt the protected secret text using the \
                           provided KMS key.";
            return Err(Refusal::new("DecryptionFailure", message));
        }
        let mut answer = json!({
            "ARN": kept.arn,
            "Name": name,
            "VersionId": id,
            "VersionStages": version.stages,
            "CreatedDate": seconds(version.created),
        });
        let value = match value {
            Value::Text(text) => Some(("SecretString", text.clone())),
            Value::Bytes(bytes) => Some(("SecretBinary", STANDARD.encode(bytes))),
            Value::Neither => None,
        };
        if let (Some((key, value)), Some(answer)) = (value, answer.as_object_mut()) {
            answer.insert(key.to_owned(), json!(value));
        }
        Ok(answer)
    }

    fn put(&mut self, put: Put, now: Timestamp) -> Result<serde_json::Value, Refusal> {
        let (name, kept) = self.find("PutSecretValue", &put.secret_id)?;
        let known = kept.versions.get(&put.token);
        match known.and_then(|version| version.value.as_ref()) {
            // Repeated: nothing is done, and no stage moves.
            Some(value) if *value == put.value => {}
            Some(_) => {
                let message = "You can't use ClientRequestToken because that value is already in \
                               use for a version of this secret.";
                return Err(Refusal::new("ResourceExistsException", message));
            }
            None => kept.add(&put.token, put.value, &put.stages, now),
        }
        Ok(json!({
            "ARN": kept.arn,
            "Name": name,
            "VersionId": put.token,
            "VersionStages": kept.versions.get(&put.token).map(|version| &version.stages),
        }))
    }

    fn describe(&mut self, named: &Named) -> Result<serde_json::Value, Refusal> {
        let (name, kept) = self.find("DescribeSecret", &named.secret_id)?;
        let mut answer = json!({
            "ARN": kept.arn,
            "Name": name,
            "VersionIdsToStages": kept.labelled(),
        });
        // It is absent where rotation was never configured.
        if let Some(answer) = answer.as_object_mut().filter(|_| kept.is_rotated) {
            answer.insert("RotationEnabled".to_owned(), json!(true));
        }
        Ok(answer)
    }

    fn rotate(&mut self, rotate: &Rotate, now: Timestamp) -> Result<serde_json::Value, Refusal> {
        let (name, kept) = self.find("RotateSecret", &rotate.secret_id)?;
        let refused = |message: &str| Err(Refusal::new("InvalidRequestException", message));
        if !kept.is_rotated {
            return refused("No Lambda rotation function ARN is associated with this secret.");
        }
        let pending =
            kept.holder(PENDING).filter(|holder| kept.holder(CURRENT).as_ref() != Some(holder));
        if pending.is_some_and(|holder| holder != rotate.client_request_token) {
            return refused(
                "A previous rotation isn't complete. That rotation will be reattempted.",
            );
        }
        let token = rotate.client_request_token.clone();
        kept.versions.entry(token.clone()).or_insert_with(|| Version::new(None, now));
        kept.attach(PENDING, &token);
        Ok(json!({ "ARN": kept.arn, "Name": name, "VersionId": token }))
    }

    fn move_stage(&mut self, moved: &Restage) -> Result<serde_json::Value, Refusal> {
        let (name, kept) = self.find("UpdateSecretVersionStage", &moved.secret_id)?;
        let stage = moved.version_stage.as_str();
        let refused = |message: &str| Err(Refusal::new("InvalidParameterException", message));
        let holder = kept.holder(stage);
        if moved.remove_from_version_id.is_some() && moved.remove_from_version_id != holder {
            return refused("The staging label is not currently attached to this version.");
        }
        match &moved.move_to_version_id {
            None if stage == CURRENT => {
                return refused(
                    "You can only move staging label AWSCURRENT to a different secret version. \
                     It can't be completely removed.",
                );
            }
            None => kept.remove(stage),
            Some(to) if !kept.versions.contains_key(to) => {
                return Err(Refusal::absent(&format!(" value for VersionId: {to}")));
            }
            Some(to) => {
                let is_elsewhere = holder.as_ref().is_some_and(|holder| holder != to);
                if is_elsewhere && moved.remove_from_version_id.is_none() {
                    return refused(
                        "The parameter RemoveFromVersionId can't be empty. Staging label is \
                         currently attached to another version.",
                    );
                }
                let labels: BTreeSet<_> = kept.labelled().into_values().flatten().collect();
                if holder.is_none() && labels.len() >= LABELS_MAX {
                    let message = "You've reached the maximum number of staging labels.";
                    return Err(Refusal::new("LimitExceededException", message));
                }
                kept.attach(stage, to);
            }
        }
        Ok(json!({ "ARN": kept.arn, "Name": name }))
    }

    pub(super) fn create(&mut self, name: &str) -> String {
        self.made += 1;
        let (arn, versions) = (
            format!("arn:aws:secretsmanager:{REGION}:123456789012:secret:{name}-{:06}", self.made),
            BTreeMap::new(),
        );
        let kept = Kept { arn: arn.clone(), is_deleted: false, is_rotated: false, versions };
        self.secrets.insert(name.to_owned(), kept);
        arn
    }

    pub(super) fn put_new(
        &mut self,
        name: &str,
        value: Value,
        stages: &[String],
        now: Timestamp,
    ) -> Result<String, Refusal> {
        if !self.secrets.contains_key(name) {
            self.create(name);
        }
        if !value.is_allowed() {
            return Err(Refusal::new("ValidationException", "1 validation error detected"));
        }
        let token = self.token();
        let stages = stages.to_vec();
        let put = Put { secret_id: name.to_owned(), token: token.clone(), value, stages };
        self.put(put, now)?;
        Ok(token)
    }

    pub(super) fn move_from_anywhere(
        &mut self,
        name: &str,
        stage: &str,
        to: &str,
    ) -> Result<(), Refusal> {
        let holder = self.secrets.get(name).and_then(|kept| kept.holder(stage));
        let moved = Restage {
            secret_id: name.to_owned(),
            version_stage: stage.to_owned(),
            move_to_version_id: Some(to.to_owned()),
            remove_from_version_id: holder,
        };
        self.move_stage(&moved).map(|_| ())
    }

    pub(super) fn drop_stage(&mut self, name: &str, stage: &str) {
        if let Some(kept) = self.secrets.get_mut(name) {
            kept.remove(stage);
        }
    }

    pub(super) fn begin_rotation(&mut self, name: &str, now: Timestamp) -> Result<String, Refusal> {
        let token = self.token();
        let (_, kept) = self.find("RotateSecret", name)?;
        kept.versions.insert(token.clone(), Version::new(None, now));
        kept.attach(PENDING, &token);
        Ok(token)
    }

    pub(super) fn begin(
        &mut self,
        name: &str,
        version: &str,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let (secret_id, client_request_token) = (name.to_owned(), version.to_owned());
        self.rotate(&Rotate { secret_id, client_request_token }, now).map(drop)
    }

    pub(super) fn hold(&mut self, name: &str, value: Value, now: Timestamp) {
        if !self.secrets.contains_key(name) {
            self.create(name);
        }
        let token = self.token();
        if let Some(kept) = self.secrets.get_mut(name) {
            kept.add(&token, value, &[CURRENT.to_owned()], now);
        }
    }

    pub(super) fn let_rotate(&mut self, name: &str, is_rotated: bool) {
        if let Some(kept) = self.secrets.get_mut(name) {
            kept.is_rotated = is_rotated;
        }
    }

    pub(super) fn labels(&self, name: &str) -> BTreeMap<String, Vec<String>> {
        let kept = self.secrets.get(name);
        let labelled = kept.map(Kept::labelled).unwrap_or_default().into_iter();
        labelled.map(|(id, stages)| (id.clone(), stages.iter().cloned().collect())).collect()
    }

    pub(super) fn mark_deleted(&mut self, name: &str) {
        if let Some(kept) = self.secrets.get_mut(name) {
            kept.is_deleted = true;
        }
    }

    pub(super) fn forget(&mut self, name: Option<&str>) {
        self.secrets.retain(|kept, _| name.is_some_and(|name| name != kept));
    }

    pub(super) fn forbid(&mut self, name: &str, is_forbidden: bool) {
        if is_forbidden {
            self.forbidden.insert(name.to_owned());
        } else {
            self.forbidden.remove(name);
        }
    }

    pub(super) fn break_key(&mut self, name: &str, version: &str) {
        let kept = self.secrets.get_mut(name);
        if let Some(version) = kept.and_then(|kept| kept.versions.get_mut(version)) {
            version.is_undecryptable = true;
        }
    }

    /// A new version's id.
    fn token(&mut self) -> String {
        self.made += 1;
        format!("00000000-0000-4000-8000-{:012}", self.made)
    }
}
