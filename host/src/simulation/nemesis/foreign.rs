//! Another program, which knows nothing of the recipe and creates znodes among the recipe's.

use std::time::Duration;

use super::Nemesis;

impl Nemesis {
    /// Sets the alarms for what the plan has another program create.
    pub(super) fn leave_foreign_znodes(&self) {
        for foreign in &self.world.plan.foreign {
            let (nemesis, foreign) = (self.clone(), foreign.clone());
            self.tasks.spawn("foreign znode", async move {
                tokio::time::sleep(Duration::from_millis(foreign.at_ms)).await;
                // A plan whose paths do not resolve is not run.
                let Ok(path) = nemesis.world.mount.resolve(&foreign.path) else { return };
                if !nemesis.over.is_cancelled() {
                    nemesis.world.network.create_foreign(path, foreign.data.bytes());
                }
            });
        }
    }
}
