//! Files that somebody else names.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// The file cannot be read, is not a regular file, or is larger: that is [`ErrorKind::FileTooLarge`].
pub(crate) fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    // Looked at before it is opened: opening a pipe waits for a writer, and a device may have no end.
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let told = format!("it is larger than {}", in_words(most));
        return Err(io::Error::new(ErrorKind::FileTooLarge, told));
    }
    Ok(bytes)
}

/// A size in the largest unit that it is a multiple of.
fn in_words(bytes: usize) -> String {
    match (bytes % (1 << 20), bytes % (1 << 10)) {
        (0, _) => format!("{} MiB", bytes >> 20),
        (_, 0) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_limit_and_no_larger_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"1234").unwrap();
        assert_eq!(read(file.path(), 4).unwrap(), b"1234");
        let error = read(file.path(), 3).unwrap_err();
        assert_eq!(
            (error.kind(), &*error.to_string()),
            (ErrorKind::FileTooLarge, "it is larger than 3 bytes")
        );
        assert_eq!((in_words(32 << 20), in_words(3 << 10)), ("32 MiB".into(), "3 KiB".into()));
    }

    #[test]
    fn a_pipe_is_not_waited_for_nor_a_device_read_without_end() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [pipe, "/dev/zero".into()] {
            let (sender, answer) = std::sync::mpsc::channel();
            std::thread::spawn(move || sender.send(read(&path, 4).unwrap_err().to_string()));
            let told = answer.recv_timeout(Duration::from_secs(60)).expect("it hangs");
            assert_eq!(told, "it is not a regular file");
        }
        let told = read(directory.path(), 4).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::IsADirectory);
    }
}
