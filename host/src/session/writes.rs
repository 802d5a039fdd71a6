//! Requests of one participant, on their way to the ensemble and back, and the ledger told of them.

use std::mem;

use super::failure::Failure;
use super::outcome::Chance;
use super::request::{Reply, Request, Write, Written};
use super::seat::Seat;
use super::tickets::{GivingUp, Ticket, writes};

/// Requests whose answers have come and are not entered into the ledger yet.
#[derive(Debug)]
pub(super) struct Exchanged<'a> {
    pub(super) answers: Vec<Result<Reply, Failure>>,
    tickets: Vec<Vec<Ticket<'a>>>,
    /// To the reads that were sent behind the requests: `OutcomeUnknown`, where one of those was
    /// lost.
    pub(super) behind: Vec<Result<Reply, Failure>>,
}

impl Seat {
    pub(super) async fn write(&self, write: Write) -> Result<Written, Failure> {
        let requests = vec![Request::Write(write)];
        let exchanged = self.exchange(requests, Vec::new(), GivingUp::TheClaim).await?;
        self.enter(exchanged).pop().unwrap_or(Err(Failure::OutcomeUnknown))?.written()
    }

    /// Sends requests back to back, and reads behind them. What became of a write to the own ledger
    /// is known when it is answered.
    ///
    /// # Errors
    /// None of them was sent.
    pub(super) async fn exchange(
        &self,
        requests: Vec<Request>,
        behind: Vec<Request>,
        giving_up: GivingUp,
    ) -> Result<Exchanged<'_>, Failure> {
        self.forget_shown();
        self.before_sending(&requests, giving_up).await?;
        let mut tickets = self.open_tickets(&requests, giving_up).await?;
        // Kept for the case that a reply is lost, as far as the outcome can be found out of this request, or
        // of one before it that this one may have undone.
        let kept: Vec<_> = requests
            .iter()
            .zip(&tickets)
            .map(|(request, tickets)| tickets.iter().any(Ticket::speaks).then(|| request.clone()))
            .collect();
        let reads: Vec<bool> = requests.iter().map(|request| writes(request).is_empty()).collect();
        let mut all = requests;
        all.extend(behind);
        let sending = || tickets.iter_mut().flatten().for_each(Ticket::note_sent);
        let mut answers = match self.core.send_all_noting(all, sending).await {
            Ok(answers) => answers,
            Err(unsent) => {
                tickets.into_iter().for_each(|tickets| self.void(tickets));
                return Err(unsent);
            }
        };
        let mut behind = answers.split_off(tickets.len().min(answers.len()));
        let is_lost = |answer: &Result<_, _>| matches!(answer, Err(Failure::OutcomeUnknown));
        if let Some(lost) = answers.iter().position(is_lost) {
            // What was read behind it may have gone out on the next connection, before it is sent
            // again there.
            let later = answers.iter_mut().zip(&reads).skip(lost).filter(|(_, is_read)| **is_read);
            later.for_each(|(answer, _)| *answer = Err(Failure::OutcomeUnknown));
            behind.fill_with(|| Err(Failure::OutcomeUnknown));
            // Boxed, as it is rare: a future has room for every branch.
            Box::pin(self.find_out_all(&mut answers, &tickets, kept)).await;
        }
        Ok(Exchanged { answers, tickets, behind })
    }

    /// In the order in which they were sent: each is settled before the next is sent again.
    async fn find_out_all(
        &self,
        answers: &mut [Result<Reply, Failure>],
        tickets: &[Vec<Ticket<'_>>],
        kept: Vec<Option<Request>>,
    ) {
        let batch: Vec<Request> = kept.iter().flatten().cloned().collect();
        let mut rest = answers;
        for (tickets, request) in tickets.iter().zip(kept) {
            let Some((answer, behind)) = mem::take(&mut rest).split_first_mut() else { return };
            if let (Err(Failure::OutcomeUnknown), Some(request)) = (&*answer, request) {
                let chance = match behind.iter().any(is_decided) {
                    true => Chance::Passed,
                    false => Chance::Open,
                };
                *answer = self.find_out(&request, tickets, &batch, chance).await;
            }
            rest = behind;
        }
    }

    /// Enters the answers into the ledger.
    pub(super) fn enter(&self, exchanged: Exchanged<'_>) -> Vec<Result<Reply, Failure>> {
        let Exchanged { answers, tickets, .. } = exchanged;
        for (answer, tickets) in answers.iter().zip(tickets) {
            self.settle(answer, tickets);
        }
        answers
    }
}

/// Whether the ensemble has carried a request out, or refused it.
fn is_decided(answer: &Result<Reply, Failure>) -> bool {
    matches!(answer, Ok(_) | Err(Failure::Refused { .. }))
}
