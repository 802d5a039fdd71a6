//! A compiler that is run once and speaks at its end.

use std::process::{Command, Stdio};

use crate::Error;

/// Runs it to its end. What it says of a success, such as warnings, is progress.
///
/// # Errors
/// [`Error::Compile`] with all that it said, or [`Error::Run`].
pub(crate) fn run(
    command: &mut Command,
    package: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Run { program: command.get_program().into(), source })?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if !output.status.success() {
        // Killed, for instance, it has said nothing.
        let diagnostics = format!("{said}({})", output.status);
        return Err(Error::Compile { packages: package.to_owned(), diagnostics });
    }
    said.lines().for_each(progress);
    Ok(())
}
