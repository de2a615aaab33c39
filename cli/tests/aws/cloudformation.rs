//! A strict CloudFormation on loopback that knows one call, and verifies its signature.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::world::{ACCESS_KEY, REGION, SECRET_KEY, SESSION_TOKEN};

/// A stack that it knows.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) status: &'static str,
    pub(crate) outputs: BTreeMap<&'static str, String>,
}

/// What goes wrong with one call.
#[derive(Clone, Copy)]
pub(crate) enum Trouble {
    /// The answer is this error.
    Refuse(u16, &'static str, &'static str),
    /// The connection is closed.
    Reset,
    /// The answer is not CloudFormation's.
    Page,
}

#[derive(Default)]
struct State {
    stacks: BTreeMap<String, Known>,
    planned: Vec<Trouble>,
    calls: Vec<String>,
}

/// A running CloudFormation; ends when it is dropped.
pub(crate) struct FakeCloudFormation {
    pub(crate) endpoint: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Drop for FakeCloudFormation {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeCloudFormation {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(Arc::clone(&shared), request));
                    let http = hyper::server::conn::http1::Builder::new();
                    drop(http.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Self { endpoint, state, task }
    }

    /// Deploys a stack, or another one in its place.
    pub(crate) fn deploy(&self, name: &str, stack: Known) {
        self.state.lock().unwrap().stacks.insert(name.to_owned(), stack);
    }

    /// Plans trouble for the next calls.
    pub(crate) fn plan(&self, trouble: impl IntoIterator<Item = Trouble>) {
        self.state.lock().unwrap().planned.extend(trouble);
    }

    /// The bodies of the calls so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state.lock().unwrap().calls.clone()
    }
}

async fn answer(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let mut state = state.lock().unwrap();
    state.calls.push(String::from_utf8(body.to_vec()).unwrap());
    if !state.planned.is_empty() {
        match state.planned.remove(0) {
            Trouble::Refuse(status, code, message) => return Ok(refused(status, code, message)),
            Trouble::Reset => return Err(std::io::Error::other("reset")),
            Trouble::Page => return Ok(said(200, "<html>a hotel's</html>".to_owned())),
        }
    }
    if let Err((status, code)) = verify(&parts, &body) {
        return Ok(refused(status, code, "It was not signed so."));
    }
    let form = String::from_utf8(body.to_vec()).unwrap();
    let fields: Vec<_> = form.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let name = match fields.as_slice() {
        [("Action", "DescribeStacks"), ("StackName", name), ("Version", "2010-05-15")] => *name,
        _ => return Ok(refused(501, "NotInThisFake", &form)),
    };
    let absent = || format!("Stack with id {name} does not exist");
    Ok(match state.stacks.get(name) {
        Some(stack) => said(200, described(name, stack)),
        None => refused(400, "ValidationError", &absent()),
    })
}

fn said(status: u16, body: String) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .header("content-type", "text/xml")
        .header("x-amzn-requestid", "REQUEST")
        .body(Full::new(body.into()))
        .unwrap()
}

fn refused(status: u16, code: &str, message: &str) -> Response<Full<Bytes>> {
    said(
        status,
        format!(
            "<ErrorResponse xmlns=\"http://cloudformation.amazonaws.com/doc/2010-05-15/\">\n  \
             <Error>\n    <Type>Sender</Type>\n    <Code>{code}</Code>\n    \
             <Message>{message}</Message>\n  </Error>\n  <RequestId>REQUEST</RequestId>\n\
             </ErrorResponse>\n"
        ),
    )
}

fn described(name: &str, stack: &Known) -> String {
    let output = |(key, value): (&&str, &String)| {
        let value = value.replace('&', "&amp;");
        format!(
            "<member><Description>It &lt;is&gt;.</Description><OutputKey>{key}</OutputKey>\
             <OutputValue>{value}</OutputValue></member>"
        )
    };
    let outputs = stack.outputs.iter().map(output).collect::<Vec<_>>().concat();
    // CloudFormation leaves the list out where there is none.
    let outputs =
        if outputs.is_empty() { outputs } else { format!("<Outputs>{outputs}</Outputs>") };
    let status = stack.status;
    format!(
        "<DescribeStacksResponse xmlns=\"http://cloudformation.amazonaws.com/doc/2010-05-15/\">\n\
         <DescribeStacksResult><Stacks><member>\
         <StackId>arn:aws:cloudformation:{REGION}:123456789012:stack/{name}/1</StackId>{outputs}\
         <StackName>{name}</StackName><StackStatus>{status}</StackStatus><Parameters/>\
         <CreationTime>2026-11-30T00:00:00Z</CreationTime><Capabilities/>\
         </member></Stacks></DescribeStacksResult>\n\
         <ResponseMetadata><RequestId>REQUEST</RequestId></ResponseMetadata>\n\
         </DescribeStacksResponse>\n"
    )
}

/// Verifies a signature of the fourth version, as the service does. Source: AWS, "Create a signed
/// AWS API request".
fn verify(parts: &Parts, body: &[u8]) -> Result<(), (u16, &'static str)> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let missing = (403, "MissingAuthenticationToken");
    let authorization = header("authorization").ok_or(missing)?;
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or(missing)?;
    let fields: BTreeMap<_, _> =
        fields.split(',').filter_map(|field| field.trim().split_once('=')).collect();
    let incomplete = (400, "IncompleteSignature");
    let field = |name: &str| fields.get(name).copied().ok_or(incomplete);
    let at = header("x-amz-date").ok_or(incomplete)?;
    let date = at.get(..8).ok_or(incomplete)?;
    let scope = format!("{date}/{REGION}/cloudformation/aws4_request");
    if field("Credential")? != format!("{ACCESS_KEY}/{scope}") {
        return Err((403, "InvalidClientTokenId"));
    }
    if header("x-amz-security-token") != Some(SESSION_TOKEN) {
        return Err((403, "InvalidClientTokenId"));
    }
    let signed = field("SignedHeaders")?;
    let names: Vec<_> = signed.split(';').collect();
    let must = |name: &&str| *name == "host" || name.starts_with("x-amz-");
    let mut sent = parts.headers.keys().map(http::HeaderName::as_str).filter(must);
    if parts.method != Method::POST || !sent.all(|name| names.contains(&name)) {
        return Err((403, "SignatureDoesNotMatch"));
    }
    let line = |name: &&str| format!("{name}:{}\n", header(name).unwrap_or_default().trim());
    let headers = names.iter().map(line).collect::<Vec<_>>().concat();
    let path = parts.uri.path();
    let canonical =
        format!("POST\n{path}\n\n{headers}\n{signed}\n{}", hex::encode(Sha256::digest(body)));
    let text = format!(
        "AWS4-HMAC-SHA256\n{at}\n{scope}\n{}",
        hex::encode(Sha256::digest(canonical.as_bytes()))
    );
    let mut key = format!("AWS4{SECRET_KEY}").into_bytes();
    for part in [date, REGION, "cloudformation", "aws4_request", &text] {
        key = mac(&key, part);
    }
    if field("Signature")? == hex::encode(key) {
        Ok(())
    } else {
        Err((403, "SignatureDoesNotMatch"))
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// The fake is no flatterer: what is not signed, or with another key, does not pass.
#[test]
fn what_is_not_signed_so_is_refused() {
    let refused = |authorization: Option<String>| {
        let mut request = Request::post("/")
            .header("host", "127.0.0.1")
            .header("x-amz-date", "20261130T000000Z")
            .header("x-amz-security-token", SESSION_TOKEN);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        verify(&parts, b"").unwrap_err().1
    };
    let signed = |key: &str, headers: &str| {
        format!(
            "AWS4-HMAC-SHA256 Credential={key}/20261130/{REGION}/cloudformation/aws4_request, \
             SignedHeaders={headers}, Signature={}",
            "0".repeat(64)
        )
    };
    let headers = "host;x-amz-date;x-amz-security-token";
    assert_eq!(refused(None), "MissingAuthenticationToken");
    assert_eq!(refused(Some(signed("AKIDOTHER", headers))), "InvalidClientTokenId");
    assert_eq!(refused(Some(signed(ACCESS_KEY, "host"))), "SignatureDoesNotMatch");
    assert_eq!(refused(Some(signed(ACCESS_KEY, headers))), "SignatureDoesNotMatch");
}
