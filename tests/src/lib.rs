//! What the tests of wok share: servers, faults, processes and an independent eye.
//!
//! In reading order:
//!
//! - [`zookeeper`] runs Apache ZooKeeper: one server, an ensemble, or one shared by a test binary.
//! - [`network`] puts servers and hosts in network namespaces of their own, cuts the links and slows
//!   them down; [`partition`] plays a hand-over there.
//! - [`admin`] looks at the tree and expires sessions, without any code of wok.
//! - [`proxy`] stands between a client and a server, understands their frames and breaks them.
//! - [`process`] runs the `wok` binary and other programs, and judges the order of what they did.
//! - [`stubborn`] has commands that do not end when they are asked to, and looks whether they did.
//! - [`api`] is a daemon that serves apps, and an app's side of it.
//! - [`authors`] is where a recipe's author works: outside the repository, with `wok` in `PATH`.
//! - [`wire`] runs one script on two servers, frame by frame, and compares what they say.
//! - [`outside`] has the tests of other clients run on the embedded server and on Apache ZooKeeper.
//! - [`openapi`] has validators that are not ours look at the API's document, and at answers by it.
//! - [`peers`] has Apache Curator and kazoo take part in the znodes that wok uses.
//! - [`patience`] waits for facts, with a bound that only stops a hang.
//! - [`stock`] is a stock recipe in the test's own process, for operations that only a holder can call.
//! - [`scene`] is a stock recipe behind a proxy that counts; [`losses`] has each request or reply of a play
//!   lost in turn.
//! - [`bare_session`] is a session without a server, for measuring the host alone.
//! - [`scratch`], [`ports`], [`launch`], [`frames`] and [`python`] are what the others stand on.
//! - [`guide`] plays the pages of the guide, [`generated`] keeps files true that a program can write.
//! - [`tidy`] checks the repository against its own style guide.
//!
//! Invariants: nothing that a test starts outlives the test process, even one that is killed; no
//! time is waited for its own sake. Deliberately absent: any mock of ZooKeeper that a
//! recipe is judged by.
//!
//! ```no_run
//! use wok_tests::{admin::Admin, proxy::{Action, Cut, Match, Proxy}, zookeeper};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let server = zookeeper::shared().await;
//! let path = zookeeper::unique_path();
//! let proxy = Proxy::start(server.address())?;
//! let fault = proxy.inject(Match::creates().under(&path), Action::DropReplyAndCut(Cut::Fin));
//! // ... run a client through `proxy.address()` ...
//! fault.struck().await?;
//! let admin = Admin::connect(server.address()).await?;
//! println!("{:#?}", admin.tree(&path).await?);
//! # Ok(())
//! # }
//! ```

pub mod zookeeper;

pub mod network;
pub mod partition;

pub mod faults;

pub mod admin;
pub mod proxy;

pub mod process;
pub mod stubborn;

pub mod api;
pub mod authors;

pub mod wire;

pub mod outside;
pub mod peers;
pub mod python;

pub mod openapi;

pub mod patience;

pub mod contract_page;
pub mod frames;
pub mod generated;
pub mod guests;
pub mod guide;
pub mod launch;
pub mod ports;
pub mod scratch;

pub mod bare_session;
pub mod losses;
pub mod scene;
pub mod stock;

pub mod tidy;
