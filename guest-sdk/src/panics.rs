//! Panics in words.

use std::panic;

use crate::participant::{Level, log};

/// Has every panic logged through the host, with its message and place. Without it all that is known
/// of a panic is that the component trapped.
pub fn log_panics() {
    panic::set_hook(Box::new(|panicked| log(Level::Error, &panicked.to_string())));
}
