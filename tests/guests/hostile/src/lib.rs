//! A component that misbehaves on demand. What each operation does is said in `wit/hostile.wit`.

mod attacks;
mod bindings;
mod escapes;
mod floods;
mod told;
mod wake;

use std::cell::RefCell;

use bindings::exports::wok::hostile::hostile::{
    Attack, Call, Config, Guest, Handle, Held, Hoarded, Line, OnWake,
};
use wok_sdk::zookeeper::{Error, Stat};

/// One client's part in nothing good.
#[derive(Debug)]
pub struct Hostile;

thread_local! {
    static HOARD: RefCell<Vec<floods::Hoard>> = const { RefCell::new(Vec::new()) };
    static WAKE: RefCell<wake::State> = const { RefCell::new(wake::State::new()) };
}

impl Guest for Hostile {
    fn configure(config: Config) -> Result<(), String> {
        if config.waits == Some(true) {
            attacks::wait_for_ever().map_err(|error| format!("{error:?}"))?;
        }
        if config.misspells == Some(true) {
            attacks::misspell();
        }
        Ok(())
    }

    fn wake(fired: Vec<u64>) {
        wake::wake(&fired);
    }

    fn attack_when_told(attack: Attack) -> Result<(), Error> {
        told::attack_when_told(attack)
    }

    fn persist(count: u32) -> Hoarded {
        floods::persist(count)
    }

    fn pair_flood(count: u32, pairs: u32) {
        floods::pairs(count, pairs);
    }

    fn read_often(path: String, count: u32) -> u32 {
        floods::reads(&path, count)
    }

    fn write_often(count: u32, bytes: u32) -> Result<(), Error> {
        floods::writes(count, bytes)
    }

    fn spin() {
        attacks::spin();
    }

    fn memory_bomb() -> u32 {
        attacks::memory_bomb()
    }

    fn allocate() {
        attacks::allocate();
    }

    fn recurse() {
        attacks::recurse();
    }

    fn trap() {
        attacks::trap();
    }

    fn panic(message: String) {
        attacks::panic_with(&message);
    }

    fn trap_while_holding() {
        if attacks::hold().is_ok() {
            attacks::trap();
        }
    }

    fn spin_while_holding() {
        if attacks::hold().is_ok() {
            attacks::spin();
        }
    }

    fn hold() -> Result<Held, Error> {
        attacks::hold()
    }

    fn hold_both() -> Result<Vec<Held>, Error> {
        attacks::hold_both()
    }

    fn hold_the_first_of_two() -> Result<Held, Error> {
        let first = attacks::hold()?;
        let second = attacks::hold()?;
        wok_sdk::participant::release(&second.path)?;
        Ok(first)
    }

    fn contend_and_leave(count: u32) -> Result<Vec<String>, Error> {
        (0..count).map(|_| attacks::contend()).collect()
    }

    fn call_flood(call: Call, count: u32) -> u32 {
        floods::calls(call, count)
    }

    fn yield_loop() {
        attacks::yield_loop();
    }

    fn hoard(handle: Handle, count: u32) -> Hoarded {
        HOARD.with_borrow_mut(|hoard| floods::hoard(hoard, handle, count))
    }

    fn drop_hoard() -> u32 {
        let hoard = HOARD.take();
        floods::length(&hoard)
    }

    fn alarm_flood(count: u32) -> Hoarded {
        floods::alarms(count)
    }

    fn log_flood(count: u32, bytes: u32) {
        floods::logs(count, bytes);
    }

    fn emit_flood(count: u32, bytes: u32) {
        floods::events(count, bytes);
    }

    fn emit_as(event: String) {
        wok_sdk::participant::emit(&event, &[]);
    }

    fn big_create(bytes: u32) -> Result<(), Error> {
        floods::big_create(bytes)
    }

    fn create_flood(count: u32) -> Hoarded {
        floods::creates(count)
    }

    fn claim_flood(count: u32) -> Result<(), Error> {
        floods::claims(count)
    }

    fn big_multi(count: u32) -> Result<(), Error> {
        floods::big_multi(count)
    }

    fn big_pipeline(count: u32) -> u32 {
        floods::big_pipeline(count)
    }

    fn big_list() -> Result<u32, Error> {
        floods::big_list()
    }

    fn order_flood(lines: u8, infixes: u32, bytes: u32) -> Result<(), Error> {
        floods::order_flood(lines, infixes, bytes)
    }

    fn escape_exists(path: String) -> Result<Option<Stat>, Error> {
        escapes::exists(&path)
    }

    fn escape_get_data(path: String) -> Result<Vec<u8>, Error> {
        escapes::get_data(&path)
    }

    fn escape_get_children(path: String) -> Result<Vec<String>, Error> {
        escapes::get_children(&path)
    }

    fn escape_create(path: String) -> Result<String, Error> {
        escapes::create(&path)
    }

    fn escape_create_numbered(path: String, in_multi: bool) -> Result<String, Error> {
        escapes::create_numbered(&path, in_multi)
    }

    fn escape_delete(path: String) -> Result<(), Error> {
        escapes::delete(&path)
    }

    fn escape_multi(path: String) -> Result<(), Error> {
        escapes::multi(&path)
    }

    fn escape_contend(parent: String, before: String, after: String) -> Result<String, Error> {
        escapes::contend(&parent, before, after)
    }

    fn escape_contend_and_list(
        parent: String,
        before: String,
        after: String,
    ) -> Result<Line, Error> {
        escapes::contend_and_list(&parent, before, after)
    }

    fn escape_claim(path: String) -> Result<u64, Error> {
        wok_sdk::participant::claim(&path)
    }

    fn escape_claim_all(path: String) -> Result<Vec<u64>, Error> {
        wok_sdk::participant::claim_all(&[path])
    }

    fn escape_release(path: String) -> Result<(), Error> {
        wok_sdk::participant::release(&path)
    }

    fn never_return_on_cancel() {
        if attacks::contend().is_ok() && attacks::wait_for_ever().is_err() {
            attacks::yield_loop();
        }
    }

    fn spin_on_cancel() {
        if attacks::contend().is_ok() && attacks::wait_for_ever().is_err() {
            attacks::spin();
        }
    }

    fn leave_on_cancel() -> Result<(), Error> {
        attacks::contend()?;
        attacks::wait_for_ever()
    }

    fn hold_on_cancel() -> Result<(), Error> {
        attacks::hold()?;
        attacks::wait_for_ever()
    }

    fn wait_for_ever() -> Result<(), Error> {
        attacks::wait_for_ever()
    }

    fn wait_for_nothing() -> Result<u32, Error> {
        wok_sdk::zookeeper::wait(&[])
    }

    fn wake_when(path: Option<String>, after_ms: Option<u64>, then: OnWake) -> Result<(), Error> {
        wake::wake_when(path, after_ms, then)
    }

    fn woken() -> (u32, u32) {
        WAKE.with_borrow(|state| state.woken())
    }
}
