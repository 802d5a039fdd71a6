//! What requests and txns are, as numbers.

/// The kind of a request or a txn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is documented by ZooKeeper under this very name")]
#[repr(i32)]
pub enum OpCode {
    Create = 1,
    Delete = 2,
    Exists = 3,
    GetData = 4,
    SetData = 5,
    GetAcl = 6,
    SetAcl = 7,
    GetChildren = 8,
    Sync = 9,
    Ping = 11,
    GetChildren2 = 12,
    Check = 13,
    Multi = 14,
    Create2 = 15,
    Reconfig = 16,
    CheckWatches = 17,
    RemoveWatches = 18,
    CreateContainer = 19,
    DeleteContainer = 20,
    CreateTtl = 21,
    MultiRead = 22,
    Auth = 100,
    SetWatches = 101,
    Sasl = 102,
    GetEphemerals = 103,
    GetAllChildrenNumber = 104,
    SetWatches2 = 105,
    AddWatch = 106,
    WhoAmI = 107,
    CreateSession = -10,
    CloseSession = -11,
    Error = -1,
}

const ALL: [OpCode; 32] = [
    OpCode::Create,
    OpCode::Delete,
    OpCode::Exists,
    OpCode::GetData,
    OpCode::SetData,
    OpCode::GetAcl,
    OpCode::SetAcl,
    OpCode::GetChildren,
    OpCode::Sync,
    OpCode::Ping,
    OpCode::GetChildren2,
    OpCode::Check,
    OpCode::Multi,
    OpCode::Create2,
    OpCode::Reconfig,
    OpCode::CheckWatches,
    OpCode::RemoveWatches,
    OpCode::CreateContainer,
    OpCode::DeleteContainer,
    OpCode::CreateTtl,
    OpCode::MultiRead,
    OpCode::Auth,
    OpCode::SetWatches,
    OpCode::Sasl,
    OpCode::GetEphemerals,
    OpCode::GetAllChildrenNumber,
    OpCode::SetWatches2,
    OpCode::AddWatch,
    OpCode::WhoAmI,
    OpCode::CreateSession,
    OpCode::CloseSession,
    OpCode::Error,
];

impl OpCode {
    /// The number on the wire and in the log.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The kind of a number.
    pub fn from_code(code: i32) -> Option<OpCode> {
        ALL.into_iter().find(|op| op.code() == code)
    }

    /// The four letters by which the word `cons` tells a connection's last operation.
    pub fn abbreviation(self) -> &'static str {
        match self {
            OpCode::Create | OpCode::Create2 => "CREA",
            OpCode::CreateContainer => "CRCO",
            OpCode::CreateTtl => "CRTT",
            OpCode::Delete => "DELE",
            OpCode::DeleteContainer => "DECO",
            OpCode::Exists => "EXIS",
            OpCode::GetData => "GETD",
            OpCode::SetData => "SETD",
            OpCode::GetAcl => "GETA",
            OpCode::SetAcl => "SETA",
            OpCode::GetChildren | OpCode::GetChildren2 => "GETC",
            OpCode::Sync => "SYNC",
            OpCode::Ping => "PING",
            OpCode::Check => "CHEC",
            OpCode::Multi => "MULT",
            OpCode::Reconfig => "RECO",
            OpCode::CheckWatches => "CHKW",
            OpCode::RemoveWatches => "REMW",
            OpCode::MultiRead => "MURD",
            OpCode::Auth => "AUTH",
            OpCode::SetWatches | OpCode::SetWatches2 => "SETW",
            OpCode::Sasl => "SASL",
            OpCode::GetEphemerals => "GETE",
            OpCode::GetAllChildrenNumber => "GACN",
            OpCode::AddWatch => "ADDW",
            OpCode::WhoAmI => "WHOA",
            OpCode::CreateSession => "SESS",
            OpCode::CloseSession => "CLOS",
            OpCode::Error => "ERRO",
        }
    }
}
