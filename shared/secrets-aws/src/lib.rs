//! Signing secrets and the API key in AWS Secrets Manager.
