//! The parts together, without sockets.
