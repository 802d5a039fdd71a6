//! The local API: what apps ask of this host over HTTP.

pub mod openapi;
