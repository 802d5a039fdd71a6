//! A daemon that serves apps.

use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempDir;

use super::client::Client;
use crate::patience::eventually;
use crate::process::{Program, Running};
use crate::{scratch, zookeeper};

/// A daemon that serves apps, ready for them.
#[derive(Debug)]
pub struct Serving {
    /// The daemon.
    pub daemon: Running,
    /// What its recipes' mounts stand below.
    pub root: String,
    directory: TempDir,
    socket: PathBuf,
}

/// What the daemon of a test is told beside its recipes.
#[derive(Debug, Clone)]
pub struct Setting<'a> {
    /// Where ZooKeeper is.
    pub connect: &'a str,
    /// What the mounts stand below; none for a place of its own.
    pub root: Option<&'a str>,
    /// More keys of `[api]`.
    pub api: &'a str,
}

/// Starts a daemon with these recipes, and waits until they can be joined. `api` has more keys of
/// `[api]`.
///
/// # Errors
/// It does not start.
pub async fn serve(connect: &str, api: &str, recipes: &str) -> Result<Serving> {
    serve_as(Setting { connect, root: None, api }, recipes).await
}

/// The same, with more to say.
///
/// # Errors
/// It does not start.
pub async fn serve_as(setting: Setting<'_>, recipes: &str) -> Result<Serving> {
    serve_by_way_of(setting, recipes, |wok| wok).await
}

/// The same, with a daemon that another program becomes, or has as its child.
///
/// # Errors
/// It does not start.
pub async fn serve_by_way_of(
    setting: Setting<'_>,
    recipes: &str,
    way: impl FnOnce(Program) -> Program,
) -> Result<Serving> {
    let Setting { connect, root, api } = setting;
    let (directory, root) =
        (scratch::dir()?, root.map_or_else(zookeeper::unique_path, str::to_owned));
    let (config, socket) = (directory.path().join("wok.toml"), directory.path().join("wok.sock"));
    let text = format!(
        "[zookeeper]\nconnect = \"{connect}\"\nroot = \"{root}\"\nsession-timeout = \"4s\"\n\n\
         [api]\nsocket = \"wok.sock\"\n{api}\n\n{recipes}\n"
    );
    std::fs::write(&config, text)?;
    let daemon = way(run(&config)?).start()?;
    let serving = Serving { daemon, root, directory, socket };
    serving.until_ready().await?;
    Ok(serving)
}

fn run(config: &Path) -> Result<Program> {
    Ok(Program::wok()?.args([Path::new("run"), config]))
}

impl Serving {
    /// Starts the daemon again, which has ended, and waits until its recipes can be joined.
    ///
    /// # Errors
    /// It does not start.
    pub async fn restart(&mut self) -> Result<()> {
        self.daemon = run(&self.directory().join("wok.toml"))?.start()?;
        self.until_ready().await
    }

    async fn until_ready(&self) -> Result<()> {
        let client = self.client();
        eventually("the daemon to be ready", async || {
            anyhow::ensure!(self.daemon.status().is_none(), "it ended: {:?}", self.daemon.lines());
            let ready = client.get("/readyz").await.is_ok_and(|answer| answer.status == 200);
            Ok(ready.then_some(()))
        })
        .await
    }

    /// An app.
    pub fn client(&self) -> Client {
        Client::new(&self.socket)
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A directory that is gone after the test.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}
