//! A function that says 202 to whatever comes, on the runtime that ours has: what the receiver's
//! start is compared with.

use std::convert::Infallible;

use lambda_http::{Body, Error, Request, Response, service_fn};

fn main() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(lambda_http::run(service_fn(accept)))
}

async fn accept(_: Request) -> Result<Response<Body>, Infallible> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = lambda_http::http::StatusCode::ACCEPTED;
    Ok(response)
}
