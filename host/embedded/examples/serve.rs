//! Serves ZooKeeper on an address until it is killed:
//! `serve [127.0.0.1:2181] [3.8|3.9] [data directory] [txns between snapshots]`.

use std::time::Duration;

use wok_embedded::{Server, ServerOptions, ServerVersion};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let version = match arguments.next().as_deref() {
        Some("3.9") => ServerVersion::V3_9,
        _ => ServerVersion::V3_8,
    };
    let data_dir = arguments.next().map(Into::into);
    let snapshot_count = arguments.next().map_or(Ok(100_000), |count| count.parse())?;
    let options = ServerOptions {
        data_dir,
        snapshot_count,
        listen: vec![address.parse()?],
        tick_time: Duration::from_millis(500),
        max_session_timeout: None,
        container_check_interval: Duration::from_secs(2),
        super_digest: Some(wok_embedded::access::digest("super:secret")),
        version,
        ..ServerOptions::for_tests()
    };
    let server = Server::start(options).await?;
    eprintln!("serving on {}", server.connect_string());
    server.stopped().await;
    server.failure().map_or(Ok(()), |failure| Err(failure.to_string().into()))
}
