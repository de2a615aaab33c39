//! The function that looks after what is overdue.
