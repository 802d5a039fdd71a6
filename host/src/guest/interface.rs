//! What a recipe offers.

use super::value_type::{RecordType, ValueType};
use super::wit_docs::DocState;

/// The one interface that a recipe exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its full name, as `wok:lock/lock@0.1.0`.
    pub name: String,
    /// What its WIT says of it.
    pub docs: Option<String>,
    /// The operations, in the component's order.
    pub operations: Vec<Operation>,
    /// What `configure` takes; none if the recipe takes no config.
    pub configure: Option<RecordType>,
    /// What `configure` answers, if anything: a result.
    pub(super) configure_result: Option<ValueType>,
    /// Whether it has a `wake`.
    pub has_wake: bool,
    /// Where the docs come from, or why there are none.
    pub doc_state: DocState,
}

/// An operation of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its name, in kebab-case.
    pub name: String,
    /// What its WIT says of it.
    pub docs: Option<String>,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// What it answers, if anything.
    pub result: Option<ValueType>,
}

/// A parameter of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, in kebab-case.
    pub name: String,
    /// Its type.
    pub ty: ValueType,
}

impl Interface {
    /// The operation of that name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// What an operation or `configure` answers, if anything.
    pub(super) fn result_of(&self, function: &str) -> Option<&ValueType> {
        match function {
            "configure" => self.configure_result.as_ref(),
            _ => self.operation(function)?.result.as_ref(),
        }
    }

    /// The interface without what only its WIT tells, its operations in the order of their names.
    pub(super) fn bare(&self) -> Interface {
        let mut operations: Vec<_> = self.operations.iter().map(Operation::bare).collect();
        operations.sort_by(|a, b| a.name.cmp(&b.name));
        Interface {
            name: self.name.clone(),
            docs: None,
            operations,
            configure: self.configure.as_ref().map(RecordType::bare),
            configure_result: self.configure_result.as_ref().map(ValueType::bare),
            has_wake: self.has_wake,
            doc_state: DocState::Absent,
        }
    }
}

impl Operation {
    /// The record that is the whole body of a call: that of a single record parameter.
    pub fn body(&self) -> Option<&RecordType> {
        match self.parameters.as_slice() {
            [Parameter { ty: ValueType::Record(record), .. }] => Some(record),
            _ => None,
        }
    }

    fn bare(&self) -> Operation {
        let bare = |parameter: &Parameter| Parameter {
            name: parameter.name.clone(),
            ty: parameter.ty.bare(),
        };
        Operation {
            name: self.name.clone(),
            docs: None,
            parameters: self.parameters.iter().map(bare).collect(),
            result: self.result.as_ref().map(ValueType::bare),
        }
    }
}
