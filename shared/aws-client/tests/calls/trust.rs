use std::sync::Arc;

use aws_client::{Patience, port_error};
use aws_sdk_secretsmanager::Client;
use domain::ports::ErrorKind;
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::wire::{Answer, Wire, config, variables};

/// An authority's certificate in PEM form, and a server of its own.
async fn server() -> (String, Wire) {
    let authority = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = params.self_signed(&authority).unwrap().pem();
    let issuer = Issuer::new(params, authority);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let answer = Answer::Body { status: 200, body: "{\"SecretString\":\"good\"}".to_owned() };
    let wire = Wire::at(&listener, vec![answer]);
    let served = wire.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, served) = (acceptor.clone(), served.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    served.serve(stream).await;
                }
            });
        }
    });
    (pem, wire)
}

/// A test's own authority is trusted when it is named, and nobody else's is.
#[tokio::test]
async fn the_named_certificates_are_trusted_and_no_others() {
    let (pem, wire) = server().await;
    let (other, _wire) = server().await;
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("ca.pem");
    let mut variables = variables();
    variables.insert("AWS_ENDPOINT_URL".to_owned(), format!("https://{}", wire.address));
    variables.insert("AWS_CA_BUNDLE".to_owned(), bundle.to_str().unwrap().to_owned());
    let once = Patience { attempts: 1, ..Patience::RECEIVER };

    std::fs::write(&bundle, format!("{other}{pem}")).unwrap();
    let client = Client::new(&config(&variables, once));
    let output = client.get_secret_value().secret_id("it").send().await.unwrap();
    assert_eq!(output.secret_string(), Some("good"));

    std::fs::write(&bundle, other).unwrap();
    let client = Client::new(&config(&variables, once));
    let error = client.get_secret_value().secret_id("it").send().await.unwrap_err();
    let error = port_error("secrets", "load", error);
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(format!("{error:?}").contains("certificate"), "{error:?}");
    assert_eq!(wire.heads().len(), 1);
}
