//! `gleaner settings`: what is in force, and where it comes from.

use std::fmt;

use clap::Args;
use serde::Serialize;
use settings::{InForce, Origin};

use super::settings_flags::SettingsFlags;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, write};

/// Print all settings in force, with their source; secrets are not shown.
///
/// A setting is taken from the command line, else from the environment (GLEANER_ and its name in
/// capitals), else from the settings file, else it has its default. Ends with 78 when one is wrong.
#[derive(Debug, Args)]
pub(crate) struct ShowSettings {
    /// Print the reference of all settings instead, as docs/configuration.md holds it.
    #[arg(long)]
    markdown: bool,
}

/// One setting as it is printed.
#[derive(Serialize)]
struct Shown<'a> {
    version: u32,
    r#type: &'static str,
    name: &'a str,
    value: Option<&'a str>,
    source: String,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} = {}  ({})", self.name, self.value.unwrap_or("none"), self.source)
    }
}

impl ShowSettings {
    pub(crate) fn run(self, output: Output, flags: &SettingsFlags) -> Result<Exit, CliError> {
        if self.markdown {
            write(settings::markdown().as_bytes())?;
            return Ok(Exit::Ok);
        }
        for InForce { name, value, origin } in &flags.load()?.in_force {
            let source = match origin {
                Origin::Default => "default".to_owned(),
                origin => origin.to_string(),
            };
            let value = value.as_deref();
            output.print(&Shown { version: 1, r#type: "setting", name, value, source })?;
        }
        Ok(Exit::Ok)
    }
}
