//! From sources to settings.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use domain::envelope::EnvelopeFormat;
use domain::limits::Limits;
use domain::signature::preset::Preset;

use crate::secret_text::SecretText;
use crate::settings::{Pacing, Receiver, Settings};
use crate::source::Sources;

/// All problems of all settings.
#[derive(Debug, thiserror::Error)]
#[error("settings are wrong")]
pub struct Problems {}

/// Reads and checks all settings.
///
/// # Errors
/// All problems together.
pub fn resolve(sources: &Sources<'_>) -> Result<Settings, Problems> {
    let flag = |name: &str| {
        let given = sources.flags.iter().rev().find(|given| given.name == name);
        given.map(|given| given.value.clone())
    };
    Ok(Settings {
        data_dir: PathBuf::from(flag("data_dir").unwrap_or_else(|| "gleaner-data".to_owned())),
        api_url: flag("api_url").unwrap_or_else(|| "https://scraper.geonode.io".to_owned()),
        api_key: (sources.environment)("GLEANER_API_KEY").map(SecretText::new),
        api_key_file: flag("api_key_file").map(PathBuf::from),
        api_answer_bytes: 64 * 1_024 * 1_024,
        api_connect_timeout: Duration::from_secs(5),
        pacing: Pacing { start: 4, ceiling: 16, spacing: Duration::from_millis(250) },
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8_787)),
        webhook_path: "/webhook".to_owned(),
        public_url: None,
        workers: 32,
        tick: Duration::from_secs(15),
        tick_rows: 1_000,
        receiver: Receiver {
            connections: 1_024,
            body_bytes: 32 * 1_024 * 1_024,
            bodies_bytes: 128 * 1_024 * 1_024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(20),
        },
        scheme: Preset::Geonode.scheme().map_err(|_| Problems {})?,
        envelope: EnvelopeFormat::default(),
        secrets_file: None,
        secret_values: Vec::new(),
        limits: Limits::default(),
    })
}
