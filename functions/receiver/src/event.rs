//! What Lambda hands over.

use http::HeaderMap;
use http::header::HOST;
use lambda_http::aws_lambda_events::query_map::QueryMap;
use lambda_http::request::LambdaRequest;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Whoever sees an event that is none wants to know which function it reached, and what it takes.
const EXPECTED: &str = "the receiver expects an HTTP request as API Gateway, a load balancer or a \
                        Function URL hands it over: see events/receiver for what an event looks like";
/// The other header, beside the host, that the address of a request is made of.
const SCHEME: &str = "x-forwarded-proto";

/// An event of one of the front doors, less what an address would be made of.
///
/// The library makes each request's address of its host, its scheme and its query, and panics where
/// they do not fit together. All of them are the sender's, or that of a proxy on the way, and none is
/// read here: the path alone is.
pub struct Event(LambdaRequest);

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut request =
            LambdaRequest::deserialize(deserializer).map_err(|_| D::Error::custom(EXPECTED))?;
        match &mut request {
            LambdaRequest::ApiGatewayV1(event) => {
                take_address(&mut event.headers);
                event.query_string_parameters = QueryMap::default();
                event.multi_value_query_string_parameters = QueryMap::default();
            }
            LambdaRequest::ApiGatewayV2(event) => {
                take_address(&mut event.headers);
                event.raw_query_string = None;
            }
            LambdaRequest::Alb(event) => {
                take_address(&mut event.headers);
                event.query_string_parameters = QueryMap::default();
                event.multi_value_query_string_parameters = QueryMap::default();
            }
            _ => {}
        }
        Ok(Self(request))
    }
}

impl From<Event> for LambdaRequest {
    fn from(event: Event) -> Self {
        event.0
    }
}

fn take_address(headers: &mut HeaderMap) {
    headers.remove(HOST);
    headers.remove(SCHEME);
}
