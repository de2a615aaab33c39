//! The function that takes deliveries.
