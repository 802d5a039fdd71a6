//! Builds the test guests and embeds them, as the host does with the stock recipes.

use std::process::ExitCode;

fn main() -> ExitCode {
    let guests = wok_build::Embedding {
        crates: "guests",
        table: "guests.rs",
        ready_made: "WOK_TEST_GUESTS_DIR",
        judges: Some("judges.rs"),
    };
    match wok_build::embed(guests) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut source: Option<&dyn std::error::Error> = Some(&error);
            while let Some(error) = source {
                eprintln!("test guests: {error}");
                source = error.source();
            }
            ExitCode::FAILURE
        }
    }
}
