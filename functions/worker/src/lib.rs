//! The function that works tasks.
