//! A daemon that serves apps, and an app's side of it without any code of wok.

mod client;
mod serving;

pub use client::{Answer, Client, Events};
pub use serving::{Serving, Setting, serve, serve_as, serve_by_way_of};
