//! ZooKeeper's error codes.

use thiserror::Error;

/// An error as a reply tells it. The names are ZooKeeper's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{self:?} ({})", self.code())]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is documented by ZooKeeper under this very name")]
pub enum ErrorCode {
    RuntimeInconsistency,
    Marshalling,
    Unimplemented,
    BadArguments,
    UnknownSession,
    NoNode,
    NoAuth,
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NotEmpty,
    SessionExpired,
    InvalidAcl,
    AuthFailed,
    SessionMoved,
    NoWatcher,
    ReconfigDisabled,
    QuotaExceeded,
    /// A code from a log that this server does not produce itself.
    Other(i32),
}

const CODES: [(ErrorCode, i32); 18] = [
    (ErrorCode::RuntimeInconsistency, -2),
    (ErrorCode::Marshalling, -5),
    (ErrorCode::Unimplemented, -6),
    (ErrorCode::BadArguments, -8),
    (ErrorCode::UnknownSession, -12),
    (ErrorCode::NoNode, -101),
    (ErrorCode::NoAuth, -102),
    (ErrorCode::BadVersion, -103),
    (ErrorCode::NoChildrenForEphemerals, -108),
    (ErrorCode::NodeExists, -110),
    (ErrorCode::NotEmpty, -111),
    (ErrorCode::SessionExpired, -112),
    (ErrorCode::InvalidAcl, -114),
    (ErrorCode::AuthFailed, -115),
    (ErrorCode::SessionMoved, -118),
    (ErrorCode::NoWatcher, -121),
    (ErrorCode::ReconfigDisabled, -123),
    (ErrorCode::QuotaExceeded, -125),
];

impl ErrorCode {
    /// The number on the wire.
    pub fn code(self) -> i32 {
        if let ErrorCode::Other(code) = self {
            return code;
        }
        CODES.iter().find(|(error, _)| *error == self).map_or(-1, |(_, code)| *code)
    }

    /// The error of a number.
    pub fn from_code(code: i32) -> ErrorCode {
        CODES.iter().find(|(_, known)| *known == code).map_or(ErrorCode::Other(code), |(e, _)| *e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_as_itself() {
        for code in -130..0 {
            assert_eq!(ErrorCode::from_code(code).code(), code);
        }
    }
}
