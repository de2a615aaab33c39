//! The embedded server over raw HTTP, in this process and as one of its own, and the verbs around
//! it.

mod delivered;
mod http;
mod process;
mod refused;
mod settings;
mod site;
mod storage;
mod texts;
mod webhooks;
