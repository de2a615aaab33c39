//! The one HTTP client: its connections and TLS roots serve all clients of one configuration.

use std::time::Duration;

use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

/// How long an unused connection is kept. AWS closes its side after some tens of seconds; a
/// connection that it closed meanwhile costs an attempt.
const IDLE: Duration = Duration::from_secs(20);
/// Most unused connections kept per host.
const IDLE_MAX: usize = 8;

/// Two clients, of which the one for TLS is not made before it is needed: reading a system's roots
/// takes milliseconds.
///
/// It does without the check that each new client of a service makes of its HTTP client: that
/// would build a connector and parse all TLS roots, and throw both away.
#[derive(Debug)]
struct Shared {
    plain: SharedHttpClient,
    tls: SharedHttpClient,
}

impl HttpClient for Shared {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(ByScheme {
            plain: self.plain.http_connector(settings, components),
            tls: self.tls.clone(),
            settings: settings.clone(),
            components: components.clone(),
        })
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.tls.connector_metadata()
    }
}

/// Sends a request to an address of plain `http` without TLS, and any other with it.
#[derive(Debug)]
struct ByScheme {
    plain: SharedHttpConnector,
    tls: SharedHttpClient,
    settings: HttpConnectorSettings,
    components: RuntimeComponents,
}

impl HttpConnector for ByScheme {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        if request.uri().starts_with("http://") {
            self.plain.call(request)
        } else {
            self.tls.http_connector(&self.settings, &self.components).call(request)
        }
    }
}

/// The client. Its TLS roots are read at the first call of an address of `https`; endpoints of
/// plain `http` are allowed, and trust no proxy that is itself reached over TLS.
pub(crate) fn client(roots: TrustStore) -> SharedHttpClient {
    let (plain, tls) = (connecting(TrustStore::empty()), connecting(roots));
    SharedHttpClient::new(Shared { plain, tls })
}

/// A client that keeps one connector for each pair of time-outs.
fn connecting(roots: TrustStore) -> SharedHttpClient {
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
        builder.tls_provider(Provider::Rustls(CryptoMode::Ring)).tls_context(tls).build()
    };
    Builder::new().build_with_connector_fn(connector)
}
