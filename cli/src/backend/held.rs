//! Signing secrets as they are found, for whoever looks whether they are in order.

use std::fmt;
use std::path::Path;

use domain::signature::secret::{Secret, Stage};
use domain::time::Timestamp;
use embedded::secrets::{SecretsFile, SecretsFileError};
use settings::Settings;

use crate::error::CliError;
use crate::exit::Exit;

/// The setting that gives the secret before the current one.
const PREVIOUS: &str = "webhook_secret_previous";

/// A signing secret where it is kept. `Debug` shows neither its text nor why it is none.
pub(crate) struct Held {
    /// Where it is, as a person reads it.
    pub(crate) place: String,
    /// Its place in a rotation.
    pub(crate) stage: Stage,
    /// The secret, or why it is none, without any of its text.
    pub(crate) secret: Result<Secret, String>,
    /// Since when it is there, if that is known.
    pub(crate) since: Option<Timestamp>,
    /// From when on it is not accepted any more.
    pub(crate) until: Option<Timestamp>,
}

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Held")
            .field("place", &self.place)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl Held {
    /// Something in the place of a secret that is none.
    fn unusable(place: String, reason: impl Into<String>) -> Self {
        let secret = Err(reason.into());
        Self { place, stage: Stage::Current, secret, since: None, until: None }
    }
}

/// The secrets of the settings and of the secrets file, expired ones among them.
pub(super) fn on_this_machine(settings: &Settings) -> Vec<Held> {
    let values = settings.secret_values.iter().map(|(name, value)| {
        let stage = if *name == PREVIOUS { Stage::Previous } else { Stage::Current };
        let secret = Secret::parse_stored(value.expose());
        Held {
            place: format!("the setting `{name}`"),
            stage,
            secret: secret.map(|it| it.with_stage(stage)).map_err(|error| error.to_string()),
            since: None,
            until: None,
        }
    });
    values.chain(in_file(settings)).collect()
}

fn in_file(settings: &Settings) -> Vec<Held> {
    let path = settings.secrets_file();
    let place = format!("`{}`", path.display());
    if !path.exists() {
        let is_owed = settings.secrets_file_given.is_some();
        let missing = || Held::unusable(place, "the file does not exist");
        return is_owed.then(missing).into_iter().collect();
    }
    match SecretsFile::new(&path).list() {
        Ok(stored) => stored
            .into_iter()
            .map(|stored| Held {
                place: place.clone(),
                stage: stored.secret.stage(),
                secret: Ok(stored.secret),
                since: None,
                until: stored.until,
            })
            .collect(),
        // One bare secret, which somebody wrote by hand.
        Err(SecretsFileError::NotOurs { .. }) => vec![bare(place, &path)],
        Err(error) => {
            let error =
                CliError::new(Exit::Configuration, "the file cannot be used").because(error);
            vec![Held::unusable(place, error.told())]
        }
    }
}

/// The secret of a file that holds nothing else. Its size, kind and permissions are known to be
/// right.
fn bare(place: String, path: &Path) -> Held {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return Held::unusable(place, error.to_string()),
    };
    let secret = Secret::parse_stored(&text).map_err(|error| error.to_string());
    Held { place, stage: Stage::Current, secret, since: None, until: None }
}
