//! A component that gives back what it is given: the bridge between JSON, TOML and WIT is tested on it.

mod bindings;

use std::cell::RefCell;

use bindings::exports::wok::echo::echo::{
    Color, Config, Guest, Integers, Nested, Permissions, Shape,
};
use wok_sdk::zookeeper::Error;

/// One client's part in a conversation.
#[derive(Debug)]
pub struct Echo;

thread_local! {
    static CONFIG: RefCell<Option<Config>> = const { RefCell::new(None) };
}

impl Guest for Echo {
    fn configure(config: Config) -> Result<(), String> {
        if let Some(refusal) = config.refuse {
            return Err(refusal);
        }
        CONFIG.set(Some(config));
        Ok(())
    }

    fn configured() -> Option<Config> {
        CONFIG.with_borrow(Clone::clone)
    }

    fn echo_boolean(value: bool) -> bool {
        value
    }

    fn echo_integers(value: Integers) -> Integers {
        value
    }

    fn echo_unsigned64(value: u64) -> u64 {
        value
    }

    fn echo_signed64(value: i64) -> i64 {
        value
    }

    fn echo_float32(value: f32) -> f32 {
        value
    }

    fn echo_float64(value: f64) -> f64 {
        value
    }

    fn echo_character(value: char) -> char {
        value
    }

    fn echo_text(value: String) -> String {
        value
    }

    fn echo_bytes(value: Vec<u8>) -> Vec<u8> {
        value
    }

    fn echo_numbers(value: Vec<u16>) -> Vec<u16> {
        value
    }

    fn echo_texts(value: Vec<String>) -> Vec<String> {
        value
    }

    fn echo_color(value: Color) -> Color {
        value
    }

    fn echo_permissions(value: Permissions) -> Permissions {
        value
    }

    fn echo_shape(value: Shape) -> Shape {
        value
    }

    fn echo_pair(value: (u32, String, bool)) -> (u32, String, bool) {
        value
    }

    fn echo_maybe(value: Option<u32>) -> Option<u32> {
        value
    }

    fn echo_maybe_maybe(value: Option<Option<u32>>) -> Option<Option<u32>> {
        value
    }

    fn echo_outcome(value: Result<u32, String>) -> Result<u32, String> {
        value
    }

    fn echo_nested(value: Nested) -> Nested {
        value
    }

    fn several(number: u32, text: String, maybe: Option<Color>) -> (u32, String, Option<Color>) {
        (number, text, maybe)
    }

    fn nothing() {}

    fn fail(error: Option<Error>) -> Result<(), Error> {
        error.map_or(Ok(()), Err)
    }

    fn fail_bare(fails: bool) -> Result<u32, ()> {
        if fails { Err(()) } else { Ok(1) }
    }

    fn many_bytes(count: u32) -> Vec<u8> {
        vec![b'x'; usize::try_from(count).unwrap_or(usize::MAX)]
    }

    fn many_texts(count: u32) -> Vec<String> {
        (0..count).map(|number| number.to_string()).collect()
    }
}
