//! The services, on loopback: each at an address of its own, over plain HTTP or TLS, and answering
//! at once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::events::SECRET;

/// How the services are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Transport {
    Http,
    Tls,
}

impl Transport {
    pub(super) const ALL: [Self; 2] = [Self::Http, Self::Tls];

    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Tls => "TLS",
        }
    }
}

/// A service, and the variable that says where it is.
const SERVICES: [&str; 3] =
    ["AWS_ENDPOINT_URL_SECRETS_MANAGER", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"];

/// A request: operation and body.
pub(super) type Seen = (String, Bytes);

/// The running services; stopped when dropped.
pub(super) struct Aws {
    /// What a function must know to call them.
    pub(super) variables: Vec<(&'static str, String)>,
    seen: Arc<Mutex<Vec<Seen>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Aws {
    /// Starts them. With TLS, the authority's certificate is laid into the folder.
    pub(super) async fn start(transport: Transport, folder: &Path) -> Result<Self> {
        let mut aws = Self { variables: Vec::new(), seen: Arc::default(), tasks: Vec::new() };
        let (scheme, acceptor) = match transport {
            Transport::Http => ("http", None),
            Transport::Tls => {
                let (bundle, acceptor) = authority(folder)?;
                let bundle = bundle.to_str().context("a folder whose name is no text")?.to_owned();
                aws.variables.push(("AWS_CA_BUNDLE", bundle));
                ("https", Some(acceptor))
            }
        };
        for variable in SERVICES {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            aws.variables.push((variable, format!("{scheme}://{}", listener.local_addr()?)));
            let serving = accept(listener, acceptor.clone(), Arc::clone(&aws.seen));
            aws.tasks.push(tokio::spawn(serving));
        }
        Ok(aws)
    }

    /// Takes the requests since the last call.
    pub(super) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Aws {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// An authority's certificate in a file, and a server that has one of its certificates.
fn authority(folder: &Path) -> Result<(PathBuf, TlsAcceptor)> {
    let authority = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    // By the name that both would have otherwise, OpenSSL would take the server's certificate for
    // one that signed itself.
    params.distinguished_name.push(DnType::CommonName, "benchmarks");
    let bundle = folder.join("authority.pem");
    std::fs::write(&bundle, params.self_signed(&authority)?.pem())?;
    let issuer = Issuer::new(params, authority);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    Ok((bundle, TlsAcceptor::from(Arc::new(tls))))
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, seen: Arc<Mutex<Vec<Seen>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, tls.clone(), Arc::clone(&seen)));
    }
}

async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, seen: Arc<Mutex<Vec<Seen>>>) {
    // Without it an answer may wait; nothing is wrong with it then.
    let _ = stream.set_nodelay(true);
    match tls {
        None => requests(stream, seen).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                requests(stream, seen).await;
            }
        }
    }
}

async fn requests<S>(stream: S, seen: Arc<Mutex<Vec<Seen>>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request| answer(request, &seen));
    // A process that ends breaks its connections.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    request: Request<Incoming>,
    seen: &Mutex<Vec<Seen>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok());
    let target = target.unwrap_or("no operation").to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let (status, text) = said(&target, &body);
    let version = if target.starts_with("secretsmanager") { "1.1" } else { "1.0" };
    let response = Response::builder()
        .status(status)
        .header("content-type", format!("application/x-amz-json-{version}"))
        .header("x-amzn-requestid", "c1a2b3c4-0000-4000-8000-000000000000")
        .body(Full::from(text));
    seen.lock().unwrap_or_else(PoisonError::into_inner).push((target, body));
    Ok(response.unwrap_or_default())
}

/// What the service says; the texts are as long as those of AWS.
fn said(target: &str, body: &[u8]) -> (u16, String) {
    let is_pending = || body.windows(10).any(|part| part == b"AWSPENDING");
    match target {
        "secretsmanager.GetSecretValue" if is_pending() => (
            400,
            r#"{"__type":"ResourceNotFoundException","Message":"Secrets Manager can't find the specified secret value for staging label: AWSPENDING"}"#.to_owned(),
        ),
        "secretsmanager.GetSecretValue" => (200, secret()),
        "DynamoDB_20120810.PutItem" | "DynamoDB_20120810.GetItem" => (200, "{}".to_owned()),
        "AmazonSQS.SendMessage" => (
            200,
            r#"{"MD5OfMessageBody":"00000000000000000000000000000000","MessageId":"5fea7756-0ea4-451a-a703-a558b933e274"}"#.to_owned(),
        ),
        "AmazonSQS.GetQueueAttributes" => (
            200,
            r#"{"Attributes":{"ApproximateNumberOfMessages":"0","ApproximateNumberOfMessagesDelayed":"0","ApproximateNumberOfMessagesNotVisible":"0"}}"#.to_owned(),
        ),
        _ => (400, r#"{"__type":"UnknownOperationException"}"#.to_owned()),
    }
}

fn secret() -> String {
    format!(
        r#"{{"ARN":"arn:aws:secretsmanager:eu-central-1:123456789012:secret:{name}-a1b2c3","CreatedDate":1700000000.123,"Name":"{name}","SecretString":"{SECRET}","VersionId":"a1b2c3d4-5678-90ab-cdef-1234567890ab","VersionStages":["AWSCURRENT"]}}"#,
        name = super::functions::SECRET_ID
    )
}
