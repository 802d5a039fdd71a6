//! What users run, on a real server: the commands, the daemon, its API and the apps that use the API, and
//! programs that embed the library.

mod api;
mod bad_input;
mod calling;
mod client_programs;
mod connecting;
mod daemon;
mod holding;
mod library;
mod openapi;
mod serving;
mod through_the_daemon;
mod widening;
