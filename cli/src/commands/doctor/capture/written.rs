//! Verification settings as they are written down.

use domain::signature::dimension::{BodyForm, HeaderName};
use domain::signature::scheme::{PresetConfig, SchemeConfig};
use serde::Serialize;

use crate::error::CliError;
use crate::exit::Exit;

/// A setting with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Written {
    /// Its name.
    pub(super) name: &'static str,
    /// Its value as the settings file has it, in TOML.
    pub(super) toml: String,
    /// Its value as a variable or a flag has it.
    pub(super) text: String,
    /// The template's parameter, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameter: Option<&'static str>,
}

/// The settings of a preset with its changes.
pub(super) fn of_preset(preset: &PresetConfig) -> Vec<Written> {
    let name = preset.name.name();
    let mut written = vec![quoted("signing.preset", name, Some("SigningPreset"))];
    if let Some(headers) = &preset.headers {
        let names: Vec<_> = headers.iter().map(HeaderName::as_str).collect();
        let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
        written.push(Written {
            name: "signing.headers",
            toml: format!("[{}]", quoted.join(", ")),
            text: names.join(","),
            parameter: Some("SigningHeaders"),
        });
    }
    if let Some(body) = preset.body {
        let word = match body {
            BodyForm::AsReceived => "as-received",
            BodyForm::Inflated => "inflated",
        };
        written.push(quoted("signing.body", word, None));
    }
    written
}

fn quoted(name: &'static str, word: &str, parameter: Option<&'static str>) -> Written {
    Written { name, toml: format!("\"{word}\""), text: word.to_owned(), parameter }
}

/// The setting that spells a scheme out.
///
/// # Errors
/// None that is known; what cannot be written is a bug.
pub(super) fn of_scheme(config: &SchemeConfig) -> Result<Written, CliError> {
    let value = toml::Value::try_from(config)
        .map_err(|error| CliError::new(Exit::Bug, "cannot write a scheme").because(error))?;
    let text = value.to_string();
    Ok(Written {
        name: "signing.scheme",
        toml: text.clone(),
        text,
        parameter: Some("SigningScheme"),
    })
}

#[cfg(test)]
mod tests;
