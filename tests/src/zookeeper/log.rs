//! A change to what a server has written down: the count of a directory's children.

use std::fs;
use std::ops::Range;

use adler2::Adler32;
use anyhow::{Context, Result, ensure};

use super::server::Server;

/// What a log begins with, before its first txn.
const HEADER: usize = 16;
/// The checksum of a txn, eight bytes, and its length, four.
const HEAD: usize = 12;
/// The byte behind a txn.
const END: usize = 1;

impl Server {
    /// Has the log say that so many children had been created below the parent of `child` when `child`
    /// was: as if billions had been. The server must have been killed, and `child` be persistent.
    ///
    /// # Errors
    /// If no log tells of `child`, or a log cannot be read or written.
    pub fn count_to(&self, child: &str, count: i32) -> Result<()> {
        for file in fs::read_dir(self.data().join("version-2"))? {
            let file = file?.path();
            let is_log =
                file.file_name().is_some_and(|it| it.to_string_lossy().starts_with("log."));
            if !is_log {
                continue;
            }
            let mut log = fs::read(&file)?;
            if let Some(txn) = txn_of(&log, child)? {
                write_count(&mut log, txn, child, count)?;
                return Ok(fs::write(&file, log)?);
            }
        }
        anyhow::bail!("no log tells of {child}")
    }
}

/// Where the txn is that names the path first.
fn txn_of(log: &[u8], path: &str) -> Result<Option<Range<usize>>> {
    let mut at = HEADER;
    loop {
        let length = usize::try_from(int(log, at + HEAD - 4).unwrap_or_default())?;
        if length == 0 {
            return Ok(None);
        }
        let txn = at + HEAD..at + HEAD + length;
        let bytes = log.get(txn.clone()).context("the log ends within a txn")?;
        if find(bytes, path).is_some() {
            return Ok(Some(txn));
        }
        at = txn.end + END;
    }
}

/// `CreateTxn`: path, data, ACL, whether it is ephemeral, and the count that the parent has then.
fn write_count(log: &mut [u8], txn: Range<usize>, path: &str, count: i32) -> Result<()> {
    let entry = log.get_mut(txn.start - HEAD..txn.end).context("the txn")?;
    let (head, txn) = entry.split_at_mut(HEAD);
    let mut at = find(txn, path).context("the path")? + path.len();
    at = behind(txn, at)?;
    let entries = int(txn, at).context("the ACL")?;
    at += 4;
    for _ in 0..entries {
        let scheme = at + 4;
        let id = behind(txn, scheme)?;
        at = behind(txn, id)?;
    }
    ensure!(txn.get(at) == Some(&0), "{path} is ephemeral, or something else stands there");
    put(txn, at + 1, count.to_be_bytes())?;
    let mut sum = Adler32::new();
    sum.write_slice(txn);
    put(head, 0, u64::from(sum.checksum()).to_be_bytes())
}

/// Where what begins there with its length ends.
fn behind(bytes: &[u8], at: usize) -> Result<usize> {
    let length = int(bytes, at).context("a length")?.max(0);
    Ok(at + 4 + usize::try_from(length)?)
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, number: [u8; N]) -> Result<()> {
    let place = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
    *place.context("the end comes too soon")? = number;
    Ok(())
}

fn find(bytes: &[u8], path: &str) -> Option<usize> {
    bytes.windows(path.len()).position(|it| it == path.as_bytes())
}

fn int(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|it| i32::from_be_bytes(*it))
}
