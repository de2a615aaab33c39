//! `gleaner settings`: what is in force, and where it comes from.

use std::fmt;

use clap::Args;
use serde::Serialize;
use settings::{Aws, Backend, InForce, Origin, Settings};

use super::settings_flags::SettingsFlags;
use crate::backend::{Site, advised};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, write};

/// Print all settings in force, with their source; secrets are not shown.
///
/// A setting is taken from the command line, else from the environment (GLEANER_ and its name in
/// capitals), else from the settings file, else on AWS from the stack, else it has its default. Ends
/// with 78 when one is wrong.
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
    pub(crate) async fn run(self, output: Output, flags: &SettingsFlags) -> Result<Exit, CliError> {
        if self.markdown {
            write(settings::markdown().as_bytes())?;
            return Ok(Exit::Ok);
        }
        let settings = flags.load()?;
        let Backend::Aws(Aws { stack: Some(stack), .. }) = &settings.backend else {
            return print(output, &settings, |_| None);
        };
        match Site::of(&settings).await {
            Ok(Site { settings, from_stack, .. }) => print(output, &settings, |name| {
                from_stack.contains(&name).then(|| format!("stack {stack}"))
            }),
            // What is set shows what is wrong.
            Err(error) => {
                print(output, &settings, |_| None)?;
                Err(advised(error, &settings))
            }
        }
    }
}

/// Prints the settings; some come from elsewhere than their origin says.
fn print(
    output: Output,
    settings: &Settings,
    elsewhere: impl Fn(&str) -> Option<String>,
) -> Result<Exit, CliError> {
    for InForce { name, value, origin } in &settings.in_force {
        let source = elsewhere(name).unwrap_or_else(|| match origin {
            Origin::Default => "default".to_owned(),
            origin => origin.to_string(),
        });
        let value = value.as_deref();
        output.print(&Shown { version: 1, r#type: "setting", name, value, source })?;
    }
    Ok(Exit::Ok)
}
