//! The `wok` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A guardian is this binary, too, and must not start a thread first.
    if let Some(code) = wok::guardian::main_if_asked() {
        return code;
    }
    wok::cli::main()
}
