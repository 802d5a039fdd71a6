//! What is refused, and what is given up: each is told with its remedy, and leaves nothing behind.

use anyhow::{Result, ensure};
use wok_tests::admin::Admin;
use wok_tests::process::Program;
use wok_tests::zookeeper;

/// The exit code of a module that answered an error, and of a wait that was given up.
const REFUSED: i32 = 70;
const NOT_ACQUIRED: i32 = 75;

/// The exit code of a config that is wrong, as its types or the module say.
const WRONG_CONFIG: i32 = 78;

/// A semaphore's directory, and somebody to look at it.
struct Scene {
    path: String,
    admin: Admin,
}

impl Scene {
    /// Where that many permits are stored, and nobody holds any.
    async fn of(data: &[u8]) -> Result<Scene> {
        let admin = Admin::connect(zookeeper::shared().await.address()).await?;
        let path = zookeeper::unique_path();
        for part in ["", "/locks"] {
            admin.create(&format!("{path}{part}"), b"").await?;
        }
        admin.create(&format!("{path}/leases"), data).await?;
        Ok(Scene { path, admin })
    }

    /// `wok hold` with these settings ends with that code and says all of this, and leaves the znodes as
    /// they were.
    async fn ends(&self, hold: &[&str], code: i32, words: &[&str]) -> Result<()> {
        let before = self.admin.tree(&self.path).await?;
        let server = zookeeper::shared().await;
        let ended = Program::wok()?
            .args(["hold", "semaphore", "--mount", &self.path, "--connect", server.address()])
            .args(hold)
            .args(["--", "true"])
            .run()
            .await?;
        ensure!(ended.code() == Some(code), "{hold:?}: {ended:?}");
        for word in words {
            ensure!(
                ended.stderr.contains(word),
                "{word:?} is not in what {hold:?} says: {ended:?}"
            );
        }
        let after = self.admin.tree(&self.path).await?;
        let names = |tree: &[wok_tests::admin::Znode]| -> Vec<(String, Vec<u8>)> {
            tree.iter().map(|znode| (znode.path.clone(), znode.data.clone())).collect()
        };
        ensure!(names(&before) == names(&after), "{hold:?}: {before:?} became {after:?}");
        Ok(())
    }
}

#[tokio::test]
async fn settings_and_wishes_that_cannot_be_met_are_refused_with_the_remedy() -> Result<()> {
    let scene = Scene::of(&[0, 0, 0, 2]).await?;
    let differs = ["there are 2 permits", "`permits` is 3", "call resize"];
    scene.ends(&["--config", "permits=3", "acquire"], REFUSED, &differs).await?;
    let too_many = ["5 permits would never be free", "only 2"];
    scene.ends(&["acquire", "permits=5"], REFUSED, &too_many).await?;
    for wanted in ["0", "101"] {
        let wish = format!("permits={wanted}");
        scene.ends(&["acquire", &wish], REFUSED, &[wanted, "from 1 to 100"]).await?;
    }
    scene.ends(&["--config", "permits=0", "acquire"], WRONG_CONFIG, &["from 1 to 1000000"]).await
}

#[tokio::test]
async fn a_number_that_nobody_has_said_or_that_is_none_is_refused_with_the_remedy() -> Result<()> {
    let unsaid = Scene::of(b"").await?;
    unsaid.ends(&["acquire"], REFUSED, &["give `permits` in the settings", "call resize"]).await?;
    // What somebody has typed in.
    let typed = Scene::of(b"10").await?;
    let told = ["/leases", "four bytes", "call resize"];
    typed.ends(&["--config", "permits=10", "acquire"], REFUSED, &told).await
}

#[tokio::test]
async fn a_wait_that_is_given_up_leaves_nothing_and_holds_nobody_up() -> Result<()> {
    let scene = Scene::of(&[0, 0, 0, 2]).await?;
    // Any child counts as a lease, as for Curator.
    scene.admin.create(&format!("{}/leases/somebodys", scene.path), b"").await?;
    let given_up = ["--wait", "5s", "acquire", "permits=2"];
    scene.ends(&given_up, NOT_ACQUIRED, &["standing in line", "not held within --wait"]).await?;
    scene.ends(&["--wait", "30s", "acquire"], 0, &["holding"]).await
}
