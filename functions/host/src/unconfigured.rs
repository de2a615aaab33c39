//! All that is missing or wrong in a function's variables.

use std::error::Error;
use std::fmt;

use aws_client::EnvironmentError;
use settings::Problems;
use telemetry::Chain;

/// What a function cannot start with. Shows no value.
#[derive(Debug)]
pub(crate) struct Unconfigured(Vec<String>);

impl Unconfigured {
    /// What is wrong with our own variables, and with those of AWS.
    pub(crate) fn of(own: Option<&Problems>, aws: Option<&EnvironmentError>) -> Self {
        let own = own.into_iter().flat_map(Problems::all).map(ToString::to_string);
        let aws = aws.into_iter().flat_map(|error| &error.problems).map(|it| Chain(it).to_string());
        Self(own.chain(aws).collect())
    }
}

impl fmt::Display for Unconfigured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(problems) = self;
        write!(out, "wrong variables: {}", problems.join("; "))
    }
}

impl Error for Unconfigured {}
