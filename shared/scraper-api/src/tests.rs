//! The client as a whole against a server that answers anything.

mod connections;
mod deadlines;
mod odd_json;
mod paths;
mod secrets;
mod statuses;
