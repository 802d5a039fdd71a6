//! What a request asks for.

/// A request's operation, by ZooKeeper's own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are ZooKeeper's and say all there is")]
pub enum Opcode {
    Create,
    Delete,
    Exists,
    GetData,
    SetData,
    GetAcl,
    SetAcl,
    GetChildren,
    Sync,
    Ping,
    GetChildren2,
    Check,
    Multi,
    Create2,
    Reconfig,
    CheckWatches,
    RemoveWatches,
    CreateContainer,
    CreateTtl,
    MultiRead,
    Auth,
    SetWatches,
    Sasl,
    GetEphemerals,
    GetAllChildrenNumber,
    SetWatches2,
    AddWatch,
    WhoAmI,
    CloseSession,
    /// One that is not listed here.
    Other(i32),
}

const NUMBERS: [(i32, Opcode); 29] = [
    (1, Opcode::Create),
    (2, Opcode::Delete),
    (3, Opcode::Exists),
    (4, Opcode::GetData),
    (5, Opcode::SetData),
    (6, Opcode::GetAcl),
    (7, Opcode::SetAcl),
    (8, Opcode::GetChildren),
    (9, Opcode::Sync),
    (11, Opcode::Ping),
    (12, Opcode::GetChildren2),
    (13, Opcode::Check),
    (14, Opcode::Multi),
    (15, Opcode::Create2),
    (16, Opcode::Reconfig),
    (17, Opcode::CheckWatches),
    (18, Opcode::RemoveWatches),
    (19, Opcode::CreateContainer),
    (21, Opcode::CreateTtl),
    (22, Opcode::MultiRead),
    (100, Opcode::Auth),
    (101, Opcode::SetWatches),
    (102, Opcode::Sasl),
    (103, Opcode::GetEphemerals),
    (104, Opcode::GetAllChildrenNumber),
    (105, Opcode::SetWatches2),
    (106, Opcode::AddWatch),
    (107, Opcode::WhoAmI),
    (-11, Opcode::CloseSession),
];

impl Opcode {
    /// The operation of that number.
    pub fn from_number(number: i32) -> Self {
        let known = NUMBERS.iter().find(|(known, _)| *known == number);
        known.map_or(Opcode::Other(number), |(_, opcode)| *opcode)
    }

    /// Its number.
    pub fn number(self) -> i32 {
        match self {
            Opcode::Other(number) => number,
            opcode => {
                let known = NUMBERS.iter().find(|(_, known)| *known == opcode);
                known.expect("every operation is listed").0
            }
        }
    }

    /// Whether it creates a znode, of whatever kind. A `multi` that does so is not counted.
    pub fn is_create(self) -> bool {
        use Opcode::{Create, Create2, CreateContainer, CreateTtl};
        matches!(self, Create | Create2 | CreateContainer | CreateTtl)
    }

    /// Whether the first field of its message is a path.
    pub(super) fn starts_with_path(self) -> bool {
        use Opcode::{
            AddWatch, Check, CheckWatches, Delete, Exists, GetAcl, GetAllChildrenNumber,
            GetChildren, GetChildren2, GetData, GetEphemerals, RemoveWatches, SetAcl, SetData,
            Sync,
        };
        let reads = matches!(
            self,
            Exists | GetData | GetAcl | GetChildren | GetChildren2 | GetEphemerals | Sync
        );
        let writes = matches!(self, Delete | SetData | SetAcl | Check);
        let watches = matches!(self, AddWatch | CheckWatches | RemoveWatches);
        reads || writes || watches || self.is_create() || self == GetAllChildrenNumber
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_operation_has_one_number() {
        for (number, opcode) in NUMBERS {
            assert_eq!(Opcode::from_number(number), opcode);
            assert_eq!(opcode.number(), number);
        }
        assert_eq!(Opcode::from_number(4711).number(), 4711);
    }
}
