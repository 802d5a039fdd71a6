//! Answers as text, without what may differ between two runs.

use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

use super::run::Ground;
use crate::frames::{Fields, Malformed, Opcode};

/// How long before a run a time may lie that is of the run: clocks are read at both ends.
const SLACK_MS: i64 = 1_000;

#[derive(Debug)]
pub(super) struct Spelling {
    ground: Rc<dyn Ground>,
    /// The zxid at the start.
    base: i64,
    start_ms: i64,
    sessions: HashMap<i64, String>,
}

impl Spelling {
    pub(super) fn new(ground: Rc<dyn Ground>, base: i64) -> Self {
        let start_ms = ground.now_ms();
        Spelling { ground, base, start_ms, sessions: HashMap::new() }
    }

    pub(super) fn name(&mut self, session: i64, name: &str) {
        self.sessions.insert(session, name.to_owned());
    }

    pub(super) fn zxid(&self, zxid: i64) -> String {
        match zxid {
            -1 | 0 => zxid.to_string(),
            // How many epochs an election takes is nobody's business.
            zxid if epoch(zxid) > epoch(self.base) => {
                format!("a later epoch's +{}", zxid & i64::from(u32::MAX))
            }
            zxid if zxid > self.base => format!("+{}", zxid - self.base),
            _ => "before".to_owned(),
        }
    }

    pub(super) fn session(&self, id: i64) -> &str {
        match (id, self.sessions.get(&id)) {
            (0, _) => "0",
            (_, Some(name)) => name,
            (_, None) => "unknown",
        }
    }

    fn time(&self, ms: i64) -> &'static str {
        match ms {
            0 => "0",
            ms if ms < self.start_ms - SLACK_MS => "before",
            ms if ms > self.ground.now_ms() + SLACK_MS => "later",
            _ => "now",
        }
    }

    pub(super) fn event(&self, body: &[u8]) -> String {
        let spelled = || {
            let mut fields = Fields::new(body);
            let (kind, state, path) = (fields.int()?, fields.int()?, fields.string()?);
            Ok(format!("{kind} {path:?} state {state}{}", rest(fields)))
        };
        spelled().unwrap_or_else(|Malformed| hex(body))
    }

    pub(super) fn body(&self, opcode: Opcode, body: &[u8]) -> String {
        let mut fields = Fields::new(body);
        match self.fields(opcode, &mut fields) {
            Ok(text) => format!("{text}{}", rest(fields)),
            Err(Malformed) => format!("malformed {}", hex(body)),
        }
    }

    fn fields(&self, opcode: Opcode, fields: &mut Fields<'_>) -> Result<String, Malformed> {
        Ok(match opcode {
            Opcode::Create | Opcode::Sync => fields.string()?,
            Opcode::Create2 | Opcode::CreateContainer | Opcode::CreateTtl => {
                format!("{} {}", fields.string()?, self.stat(fields)?)
            }
            Opcode::Exists | Opcode::SetData | Opcode::SetAcl => self.stat(fields)?,
            Opcode::GetData => {
                let data = fields.optional_buffer()?.map(|data| data.escape_ascii().to_string());
                format!("{data:?} {}", self.stat(fields)?)
            }
            Opcode::GetAcl => {
                let acl = |fields: &mut Fields<'_>| {
                    let (permissions, scheme) = (fields.int()?, fields.string()?);
                    Ok(format!("{permissions} {scheme}:{}", fields.string()?))
                };
                format!("{:?} {}", list(fields, acl)?, self.stat(fields)?)
            }
            Opcode::GetChildren | Opcode::GetEphemerals => format!("{:?}", names(fields)?),
            Opcode::GetChildren2 => format!("{:?} {}", names(fields)?, self.stat(fields)?),
            Opcode::WhoAmI => {
                let id = |fields: &mut Fields<'_>| Ok(fields.string()? + ":" + &fields.string()?);
                let mut ids = list(fields, id)?;
                ids.sort();
                format!("{ids:?}")
            }
            Opcode::Multi | Opcode::MultiRead => self.parts(fields)?,
            // The rest of the message is told as it is.
            _ => String::new(),
        })
    }

    fn parts(&self, fields: &mut Fields<'_>) -> Result<String, Malformed> {
        let mut text = String::new();
        loop {
            let (number, is_end, error) = (fields.int()?, fields.bool()?, fields.int()?);
            let told = match number {
                -1 if is_end => return Ok(format!("[{text}] {error}")),
                -1 => fields.int()?.to_string(),
                2 | 13 => String::new(),
                number => self.fields(Opcode::from_number(number), fields)?,
            };
            write!(text, "({number} {error} {told})").map_err(|_| Malformed)?;
        }
    }

    fn stat(&self, fields: &mut Fields<'_>) -> Result<String, Malformed> {
        let (czxid, mzxid) = (self.zxid(fields.long()?), self.zxid(fields.long()?));
        let (ctime, mtime) = (self.time(fields.long()?), self.time(fields.long()?));
        let (version, cversion, aversion) = (fields.int()?, fields.int()?, fields.int()?);
        let owner = self.session(fields.long()?);
        let (length, children) = (fields.int()?, fields.int()?);
        let pzxid = self.zxid(fields.long()?);
        Ok(format!(
            "{{c {czxid} {ctime} m {mzxid} {mtime} p {pzxid} versions {version} {cversion} \
             {aversion} owner {owner} length {length} children {children}}}"
        ))
    }
}

fn list<'a, T>(
    fields: &mut Fields<'a>,
    element: impl Fn(&mut Fields<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = fields.int()?;
    (0..count).map(|_| element(fields)).collect()
}

fn names(fields: &mut Fields<'_>) -> Result<Vec<String>, Malformed> {
    let mut names = list(fields, Fields::string)?;
    names.sort();
    Ok(names)
}

fn rest(fields: Fields<'_>) -> String {
    match fields.rest() {
        [] => String::new(),
        bytes => format!(" and {}", hex(bytes)),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Which leader's txn it is.
fn epoch(zxid: i64) -> i64 {
    zxid >> 32
}
