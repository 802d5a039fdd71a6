//! Znodes that have to be there before a recipe can work.

use super::bounds::PIPELINE;
use super::core::parent;
use super::failure::{Failure, Refusal};
use super::persistent::{Unanswered, persistent_room};
use super::request::{CreateMode, Reply, Request, Watching, Write};
use super::seat::Seat;

/// How often those that are missing are created: a parent may vanish between being created and being
/// used, and a connection may be lost, but not again and again.
const ATTEMPTS: usize = 10;

/// A bound on how far up missing parents are looked for; a path cannot have more segments and fit
/// into a request that anyone would send.
const MOST_SEGMENTS: usize = 1_000;

impl Seat {
    /// Creates the znodes that are missing, in their order, and missing parents as containers.
    ///
    /// Looks first: what is there already, as it mostly is, costs the ensemble no transaction.
    ///
    /// # Errors
    /// Never `OutcomeUnknown`: a create whose reply was lost is sent again. After any other error
    /// some of them may have been created.
    ///
    /// # Cancellation
    /// Some of them may have been created.
    pub async fn ensure(&self, paths: Vec<String>, mode: CreateMode) -> Result<(), Failure> {
        if !matches!(mode, CreateMode::Persistent | CreateMode::Container) {
            let text = "ensure creates persistent znodes and containers only";
            return Err(Failure::Invalid(text.to_owned()));
        }
        if paths.len() > PIPELINE {
            return Err(Failure::OverLimit(format!(
                "ensure of {} znodes; the limit is {PIPELINE}: ask for them in parts",
                paths.len()
            )));
        }
        let mut missing = self.missing(paths).await?;
        let mut mode = mode;
        for _ in 0..ATTEMPTS {
            let creates: Vec<_> = missing.iter().map(|path| create(path, mode)).collect();
            self.check_persistent(creates.iter().map(persistent_room).sum()).await?;
            let unanswered: Vec<_> = creates.iter().map(|write| self.unanswered(write)).collect();
            let requests = creates.into_iter().map(Request::Write).collect();
            let answers = match self.core.send_all(requests).await {
                Ok(answers) => answers,
                Err(unsent) => {
                    unanswered.into_iter().flatten().for_each(Unanswered::decided);
                    return Err(unsent);
                }
            };
            let (mut again, mut has_containers) = (Vec::new(), true);
            for ((path, answer), unanswered) in missing.into_iter().zip(answers).zip(unanswered) {
                let refusal = match answer {
                    // What is not decided counts, which is right for what is there.
                    Ok(_) => continue,
                    Err(Failure::OutcomeUnknown) => {
                        again.push(path);
                        continue;
                    }
                    Err(Failure::Refused { refusal, .. }) => refusal,
                    Err(other) => return Err(other),
                };
                unanswered.into_iter().for_each(Unanswered::decided);
                match refusal {
                    Refusal::NodeExists => {}
                    Refusal::NoNode => again.push(path),
                    // A server before 3.5 knows no containers.
                    Refusal::Unimplemented if mode == CreateMode::Container => {
                        has_containers = false;
                        again.push(path);
                    }
                    other => return Err(other.into()),
                }
            }
            missing = again;
            if missing.is_empty() {
                return Ok(());
            }
            if !has_containers {
                mode = CreateMode::Persistent;
            }
            self.create_above(&missing).await?;
        }
        Err(Refusal::NoNode.into())
    }

    /// Creates a znode and, where its parents are missing, these before it as containers. So it comes with
    /// its data or not at all, which [`ensure`](Seat::ensure) and a write behind that could not promise.
    ///
    /// # Errors
    /// Those of the create; or those of [`ensure`](Seat::ensure), and then some of the parents may have been
    /// created. `NoNode` if a parent that was there a moment ago is gone again.
    ///
    /// # Cancellation
    /// Some of them may have been created.
    pub async fn create_with_parents(&self, create: Write) -> Result<Reply, Failure> {
        let request = Request::Write(create);
        match self.submit(request.clone()).await {
            Err(Failure::Refused { refusal: Refusal::NoNode, .. }) => {}
            answered => return answered,
        }
        if let Request::Write(Write::Create { path, .. }) = &request
            && let Some(above) = parent(path)
            && above != "/"
        {
            self.create_parents(above).await?;
        }
        self.submit(request).await
    }

    /// Those that are not there.
    async fn missing(&self, paths: Vec<String>) -> Result<Vec<String>, Failure> {
        let look = |path: &String| Request::Exists(path.clone(), Watching::No);
        let answers = self.core.send_all(paths.iter().map(look).collect()).await?;
        let looked = paths.into_iter().zip(answers);
        let missing = looked.filter(|(_, answer)| !matches!(answer, Ok(Reply::Exists(Some(_), _))));
        Ok(missing.map(|(path, _)| path).collect())
    }

    async fn create_above(&self, missing: &[String]) -> Result<(), Failure> {
        let mut seen: Vec<&str> = Vec::new();
        for above in missing.iter().filter_map(|path| parent(path)) {
            if above != "/" && !seen.contains(&above) {
                self.create_parents(above).await?;
                seen.push(above);
            }
        }
        Ok(())
    }

    /// Creates a container, and what is missing above it. Never fails for a container that exists.
    ///
    /// Each counts as a persistent znode until it is found to be gone: a server removes a container only
    /// once that was used and is empty, and one that knows no containers makes a persistent znode.
    ///
    /// # Errors
    /// `OverLimit` before the first that there is no room for. What is above that may have been created.
    ///
    /// # Cancellation
    /// As its errors. The one that was under way counts.
    pub(super) async fn create_parents(&self, path: &str) -> Result<(), Failure> {
        let (mut missing, mut mode) = (vec![path.to_owned()], CreateMode::Container);
        while let Some(path) = missing.last() {
            let create = create(path, mode);
            self.check_persistent(persistent_room(&create)).await?;
            let unanswered = self.unanswered(&create);
            let answer = loop {
                match self.core.send(Request::Write(create.clone())).await {
                    // It may be there: then the next answer says that it exists, and not who made it.
                    Err(Failure::OutcomeUnknown) => self.persistent().add(path),
                    answer => break answer,
                }
                self.core.after_connection_loss().await;
            };
            let refusal = match answer {
                // What is not decided counts, which is right for what is there.
                Ok(_) => {
                    missing.pop();
                    continue;
                }
                Err(Failure::Refused { refusal, .. }) => refusal,
                Err(other) => return Err(other),
            };
            unanswered.into_iter().for_each(Unanswered::decided);
            match (refusal, parent(path)) {
                (Refusal::NodeExists, _) => drop(missing.pop()),
                (Refusal::NoNode, Some(above)) if missing.len() < MOST_SEGMENTS => {
                    missing.push(above.to_owned());
                }
                // A server before 3.5 knows no containers.
                (Refusal::Unimplemented, _) if mode == CreateMode::Container => {
                    mode = CreateMode::Persistent;
                }
                (other, _) => return Err(other.into()),
            }
        }
        Ok(())
    }
}

fn create(path: &str, mode: CreateMode) -> Write {
    Write::Create { path: path.to_owned(), data: Vec::new(), mode }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::seat::SeatLimits;
    use crate::session::stand_in::{StandIn, at};

    #[tokio::test]
    async fn a_znode_comes_with_its_parents_and_is_not_taken_for_one_that_is_there() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let created = || seat.create_with_parents(create(&at("a/b/c"), CreateMode::Persistent));
        let (path, _) = created().await.unwrap().created().unwrap();
        assert_eq!(path, at("a/b/c"));
        assert_eq!(stand_in.tree(), [at("a"), at("a/b"), at("a/b/c")]);
        assert_eq!(created().await.unwrap_err(), Failure::from(Refusal::NodeExists));
    }
}
