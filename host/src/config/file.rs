//! Small files that the configuration names: certificates, keys, credentials.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::report::Report;
use super::section::Field;
use crate::named_file;

/// A bundle of every public certificate authority has about 250 KB.
const MAX_BYTES: usize = 1 << 20;

/// Who may know what is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Anyone.
    Public,
    /// Only the user that the host runs as; others being able to read it is worth a warning.
    Secret,
}

/// Reads the file that a key names; relative paths begin at `directory`. What is wrong is reported.
pub(super) fn read(
    field: &Field<'_>,
    directory: &Path,
    content: Content,
    report: &mut Report<'_>,
) -> Option<String> {
    let name = field.string(report)?;
    let path = directory.join(name);
    let cannot_read = "name a file that this user can read";
    if name.is_empty() {
        field.wrong(report, "the file's name is empty", cannot_read);
        return None;
    }
    match read_text(&path, content) {
        Ok((text, Exposure::Closed)) => Some(text),
        Ok((text, Exposure::Open)) => {
            let what = format!("`{}`: every user can read {}", field.name(), path.display());
            report.warning(field.place(), what, format!("chmod 600 {}", path.display()));
            Some(text)
        }
        Err(why) => {
            field.wrong(report, format_args!("cannot read {}: {why}", path.display()), cannot_read);
            None
        }
    }
}

enum Exposure {
    Open,
    Closed,
}

fn read_text(path: &Path, content: Content) -> Result<(String, Exposure), String> {
    let explain = |error: std::io::Error| error.to_string();
    let bytes = named_file::read(path, MAX_BYTES).map_err(explain)?;
    let mode = std::fs::metadata(path).map_err(explain)?.permissions().mode();
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    let is_open = content == Content::Secret && mode & 0o004 != 0;
    Ok((text, if is_open { Exposure::Open } else { Exposure::Closed }))
}
