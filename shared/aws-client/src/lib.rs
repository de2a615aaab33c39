//! What all adapters of AWS share: one configuration, time-outs, retries, and what an error means.
