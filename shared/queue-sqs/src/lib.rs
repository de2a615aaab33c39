//! The queue in Amazon SQS.
