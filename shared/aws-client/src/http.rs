//! The one HTTP client: its connections and TLS roots serve all clients of one configuration.

use std::time::Duration;

use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

/// How long an unused connection is kept. AWS closes its side after some tens of seconds; a
/// connection that it closed meanwhile costs an attempt.
const IDLE: Duration = Duration::from_secs(20);
/// Most unused connections kept per host.
const IDLE_MAX: usize = 8;

/// Delegates, without the check that each new client makes of its HTTP client: it would build a
/// connector and parse all TLS roots, and throw both away.
#[derive(Debug)]
struct Shared(SharedHttpClient);

impl HttpClient for Shared {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.0.connector_metadata()
    }
}

/// The client. Its TLS roots are read at the first call. Endpoints of plain `http` are allowed.
pub(crate) fn client(roots: TrustStore) -> SharedHttpClient {
    let connector = move |settings: Option<&HttpConnectorSettings>,
                          components: Option<&RuntimeComponents>| {
        #[expect(clippy::expect_used, reason = "without server names nothing can be wrong")]
        let tls = TlsContext::builder()
            .with_trust_store(roots.clone())
            .build()
            .expect("a context of roots alone is valid");
        let mut builder = Connector::builder()
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_MAX)
            .proxy_config(ProxyConfig::from_env());
        if let Some(settings) = settings {
            builder = builder.connector_settings(settings.clone());
        }
        builder.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        builder.tls_provider(Provider::Rustls(CryptoMode::AwsLc)).tls_context(tls).build()
    };
    SharedHttpClient::new(Shared(Builder::new().build_with_connector_fn(connector)))
}
