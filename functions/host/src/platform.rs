//! The platform's API, with the account's key in Secrets Manager.

use std::sync::Arc;

use async_trait::async_trait;
use aws_client::SdkConfig;
use domain::limits::Limits;
use domain::ports::{Clock, ErrorKind, Jobs, PortError, Webhooks};
use scraper_api::{
    ApiKey, BuildError, Config, KeySource, KeyTrouble, PaceSettings, Paced, Rekeyed, ScraperApi,
    Usage,
};
use secrets_aws::ApiKeySource;
use settings::Api;

/// The API before its key is known.
pub struct Platform {
    api: Arc<ScraperApi>,
    secret: Arc<Secret>,
}

impl Platform {
    /// Sets up the client. Nothing is sent or read.
    ///
    /// # Errors
    /// When the address is wrong, or the system has no root certificates.
    pub fn new(
        aws: &SdkConfig,
        settings: &Api,
        limits: &Limits,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BuildError> {
        let mut config = Config::new(&settings.url, None)?;
        config.body_bytes_max = settings.answer_bytes;
        config.connect_timeout = settings.connect_timeout;
        config.retry_after_max = limits.retry_after_clamp;
        let api = Arc::new(ScraperApi::new(config, clock)?);
        let secret = Arc::new(Secret(ApiKeySource::new(aws, &settings.key_secret_id)));
        Ok(Self { api, secret })
    }

    /// Reads the key.
    ///
    /// # Errors
    /// When it cannot be read now. It is tried again when it is needed.
    pub async fn load_key(&self) -> Result<(), PortError> {
        let key = self.secret.read().await?;
        self.api.set_key(key);
        Ok(())
    }

    /// The webhooks, with a key that is read again as [`Platform::jobs`] does.
    pub fn webhooks(&self, limits: &Limits, clock: Arc<dyn Clock>) -> Arc<dyn Webhooks> {
        let source = Arc::clone(&self.secret) as Arc<dyn KeySource>;
        Arc::new(Rekeyed::new(&self.api, source, limits.secret_cooldown, clock))
    }

    /// The port: paced, and with a key that is read again when it is refused or not there yet, at
    /// most once per cool-down.
    pub fn jobs(&self, limits: &Limits, clock: Arc<dyn Clock>) -> Arc<dyn Jobs> {
        let source = Arc::clone(&self.secret) as Arc<dyn KeySource>;
        let jobs = Rekeyed::new(&self.api, source, limits.secret_cooldown, Arc::clone(&clock));
        let usage = Arc::clone(&self.api) as Arc<dyn Usage>;
        Arc::new(Paced::new(jobs, usage, clock, PaceSettings::default()))
    }
}

struct Secret(ApiKeySource);

impl Secret {
    async fn read(&self) -> Result<ApiKey, PortError> {
        let text = self.0.load().await?;
        ApiKey::parse(text.expose()).map_err(|error| {
            PortError::new("secrets", "load_api_key", ErrorKind::Corrupt).with_source(error)
        })
    }
}

#[async_trait]
impl KeySource for Secret {
    async fn load(&self) -> Result<Option<ApiKey>, KeyTrouble> {
        Ok(Some(self.read().await?))
    }
}
