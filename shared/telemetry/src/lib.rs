//! Logs and metrics: what is counted and where it is told.
