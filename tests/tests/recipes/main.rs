//! The stock recipes on a real server, and what is asked of all of them: costs, no herd, faults.

mod barrier;
mod configuration;
mod costs;
mod count_down_latch;
mod counting;
mod double_barrier;
mod faults;
mod group_membership;
mod multi_lock;
mod name_service;
mod no_herd;
mod priority_queue;
mod queue;
mod read_write_lock;
mod refusals;
mod revoking;
mod semaphore;
mod two_phase_commit;
