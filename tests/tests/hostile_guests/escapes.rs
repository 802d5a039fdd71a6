//! Paths that should not be named.

use anyhow::Result;
use serde_json::{Value, json};
use wok_tests::admin::Znode;

use crate::scene::{Guest, Scene};

/// Refused as they are by every host call: none is normalised into something else.
const MALFORMED: [&str; 26] = [
    "",
    "a",
    "mount",
    // Appended to the mount these would be its sibling's.
    "-evil",
    "-evil/secret",
    "../mount-evil/secret",
    "..",
    "/..",
    "/../mount-evil",
    "/../mount-evil/secret",
    "/a/../../mount-evil/secret",
    "/.",
    "/./a",
    "/a/.",
    "//",
    "//mount-evil",
    "/a//b",
    "/a/",
    "/a/../",
    "/\0",
    "/a\0/../../mount-evil",
    "/\u{1}",
    "/\u{7f}",
    "/\u{e000}",
    "/\u{ffff}",
    "/\u{1f600}",
];

/// Odd, and taken literally: names of znodes within the mount.
const LITERAL: [&str; 7] = [
    "/mount-evil",
    "/...",
    "/%2e%2e",
    "/..%2fmount-evil",
    "/\u{202e}live-tnuom",
    "/e\u{301}",
    "/a b",
];

/// Operations that take a path, and what they take it as.
fn operations(path: &str) -> [(&'static str, Value); 11] {
    let body = json!({ "path": path });
    let contend = json!({"parent": path, "before": "_c_", "after": "-lock-"});
    [
        ("escape-exists", body.clone()),
        ("escape-get-data", body.clone()),
        ("escape-get-children", body.clone()),
        ("escape-create", body.clone()),
        ("escape-delete", body.clone()),
        ("escape-multi", body.clone()),
        ("escape-claim", body.clone()),
        ("escape-claim-all", body.clone()),
        ("escape-release", body),
        ("escape-contend", contend.clone()),
        ("escape-contend-and-list", contend),
    ]
}

/// A scene whose mount has a sibling with the same prefix.
async fn scene() -> Result<Scene> {
    let scene = Scene::new().await?;
    scene.admin.create(&format!("{}-evil/secret", scene.mount), b"secret").await?;
    scene.admin.create(&format!("{}/a", scene.mount), b"inside").await?;
    scene.neighbour_works().await?;
    Ok(scene)
}

/// All of the test's directory but what the neighbour does with its own.
async fn dump(scene: &Scene) -> Result<Vec<Znode>> {
    let mut tree = scene.admin.tree(&scene.base).await?;
    tree.retain(|znode| !znode.path.starts_with(&format!("{}/neighbour", scene.base)));
    Ok(tree)
}

/// No request went outside the mount, the neighbour's apart. Heartbeats look at `/`.
fn assert_all_within(scene: &Scene) {
    let own = [format!("{}/mount/", scene.base), format!("{}/neighbour/", scene.base)];
    for seen in scene.proxy.log() {
        let Some(path) = seen.path else { continue };
        let path = format!("{path}/");
        let is_within = own.iter().any(|own| path.starts_with(own.as_str()));
        assert!(is_within || path == "//", "{:?} of {path}", seen.opcode);
    }
}

async fn attempt(guest: &Guest, operation: &str, body: Value) -> Result<Value, Value> {
    guest.answer(operation, body).await
}

#[tokio::test]
async fn malformed_paths_are_refused_by_every_operation_and_nothing_outside_is_touched()
-> Result<()> {
    let scene = scene().await?;
    let guest = scene.hostile()?;
    let before = dump(&scene).await?;
    let attacking = async {
        for path in MALFORMED {
            for (operation, body) in operations(path) {
                let refused = attempt(&guest, operation, body).await;
                let refused = refused.expect_err(&format!("{operation} of {path:?}"));
                assert!(refused["invalid"].is_string(), "{operation} of {path:?}: {refused}");
            }
        }
        Ok(())
    };
    scene.beside(attacking).await?;
    assert_eq!(dump(&scene).await?, before);
    assert_all_within(&scene);
    Ok(())
}

#[tokio::test]
async fn contenders_names_stay_names() -> Result<()> {
    let scene = scene().await?;
    let guest = scene.hostile()?;
    let before = dump(&scene).await?;
    for (prefix, suffix) in [
        ("../mount-evil/", "-lock-"),
        ("_c_", "/../../mount-evil/"),
        ("a/", "-"),
        ("\0", "-"),
        ("_c_", "\u{1f600}"),
    ] {
        let body = json!({"parent": "/", "before": prefix, "after": suffix});
        let contending = async { Ok(attempt(&guest, "escape-contend", body).await) };
        let (refused, _) = scene.beside(contending).await?;
        let refused = refused.unwrap_err();
        assert!(refused["invalid"].is_string(), "{prefix:?} {suffix:?}: {refused}");
    }
    assert_eq!(dump(&scene).await?, before);
    assert_all_within(&scene);
    Ok(())
}

/// The server appends the number to the path: to that of the mount it would make a neighbour's of it.
#[tokio::test]
async fn no_number_is_appended_to_the_mounts_own_path() -> Result<()> {
    let scene = scene().await?;
    let guest = scene.hostile()?;
    let before = dump(&scene).await?;
    for in_multi in [false, true] {
        let body = json!({ "path": "/", "in-multi": in_multi });
        let refused = attempt(&guest, "escape-create-numbered", body).await.unwrap_err();
        let text = refused["invalid"].as_str().unwrap_or_default();
        assert!(text.contains("needs a name"), "{refused}");
    }
    assert_eq!(dump(&scene).await?, before);
    assert_all_within(&scene);
    Ok(())
}

#[tokio::test]
async fn as_many_claims_at_once_as_requests_and_no_more() -> Result<()> {
    let scene = scene().await?;
    let guest = scene.hostile()?;
    for (count, told) in [(128, "not an ephemeral znode"), (129, "129 requests at once")] {
        let refused = attempt(&guest, "claim-flood", json!({ "count": count })).await.unwrap_err();
        let text = refused["invalid"].as_str().unwrap_or_default();
        assert!(text.contains(told), "{refused}");
    }
    Ok(())
}

#[tokio::test]
async fn odd_names_are_znodes_within_the_mount_and_nowhere_else() -> Result<()> {
    let scene = scene().await?;
    let guest = scene.hostile()?;
    let before = dump(&scene).await?;
    for path in LITERAL {
        // It is told of them by the names that it gave them.
        let created = async { Ok(attempt(&guest, "escape-create", json!({"path": path})).await) };
        assert_eq!(scene.beside(created).await?.0, Ok(json!(path)));
        let absolute = format!("{}{path}", scene.mount);
        let (data, _) = scene.admin.get(&absolute).await?.expect(path);
        assert_eq!(data, b"escaped");
        let deleted = attempt(&guest, "escape-delete", json!({"path": path})).await;
        assert_eq!(deleted, Ok(json!(null)), "{path}");
    }
    let outside = |znodes: Vec<Znode>| -> Vec<Znode> {
        let within = format!("{}/", scene.mount);
        let is_outside = |it: &Znode| it.path != scene.mount && !it.path.starts_with(&within);
        // The test's own directory counts the neighbour's lock in its children.
        znodes.into_iter().filter(is_outside).collect()
    };
    let names = |znodes: &[Znode]| -> Vec<String> {
        znodes.iter().map(|znode| znode.path.clone()).collect()
    };
    let after = dump(&scene).await?;
    assert_eq!(names(&after), names(&before));
    assert_eq!(outside(after), outside(before));
    assert_all_within(&scene);
    Ok(())
}

#[tokio::test]
async fn the_claim_of_another_participant_is_neither_claimed_nor_released() -> Result<()> {
    let scene = scene().await?;
    let holder = scene.hostile()?;
    let held = holder.answer("hold", json!({})).await.unwrap();
    let guest = scene.hostile()?;
    for operation in ["escape-claim", "escape-claim-all", "escape-release"] {
        let body = json!({"path": held["path"]});
        let (refused, _) =
            scene.beside(async { Ok(attempt(&guest, operation, body).await) }).await?;
        let refused = refused.unwrap_err();
        let text = refused["invalid"].as_str().unwrap_or_default();
        assert!(text.contains("not an ephemeral znode that this participant created"), "{refused}");
    }
    assert!(holder.participant.holds());
    Ok(())
}
