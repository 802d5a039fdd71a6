//! Apache ZooKeeper, as Debian's package `zookeeper` and Java bring it. Nothing is mocked.

mod certificates;
mod ensemble;
mod log;
mod options;
mod server;
mod shared;
mod site;

pub use certificates::{CertificateFiles, Certificates};
pub use ensemble::Ensemble;
pub use options::{Fsync, Options};
pub use server::Server;
pub use shared::{shared, unique_path};
