//! The interface of a recipe, from the component's own types.

use wasmtime::component::Type;
use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem};

use super::interface::{Interface, Operation, Parameter};
use super::value_type::{Case, Field, Label, Labels, RecordType, ValueType, VariantType};
use super::wit_docs::DocState;

/// Most parts of all the types of an interface, with its names, of which each 64 bytes count as one. Types are
/// shared in a component and copied here, so a small component could describe a huge one.
const MAX_PARTS: usize = 10_000;

/// Bytes of a name that count as a part.
const BYTES_OF_ONE: usize = 64;

/// An item of an interface that a recipe may not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) item: String,
    pub(super) problem: String,
}

impl Unfit {
    pub(super) fn new(item: impl Into<String>, problem: impl Into<String>) -> Self {
        Unfit { item: item.into(), problem: problem.into() }
    }
}

/// A function of an interface, from wherever it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) docs: Option<String>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) result: Option<ValueType>,
}

/// What a component's exported instance offers.
pub(super) fn interface(
    engine: &wasmtime::Engine,
    name: &str,
    instance: &ComponentInstance,
) -> Result<Interface, Unfit> {
    let mut parts = Parts { left: MAX_PARTS };
    let mut functions = Vec::new();
    for (item, export) in instance.exports(engine) {
        match export.ty {
            ComponentItem::ComponentFunc(function) => {
                functions.push(parts.function(item, &function)?);
            }
            // Its uses are in the functions, where they are looked at.
            ComponentItem::Type(_) => {}
            ComponentItem::Resource(_) => {
                return Err(Unfit::new(item, "a resource; a recipe's interface has values only"));
            }
            _ => return Err(Unfit::new(item, "neither a function nor a type")),
        }
    }
    assemble(name, functions)
}

/// Tells the reserved functions from the operations.
pub(super) fn assemble(name: &str, functions: Vec<Function>) -> Result<Interface, Unfit> {
    let mut interface = Interface {
        name: name.to_owned(),
        docs: None,
        operations: Vec::new(),
        configure: None,
        configure_result: None,
        has_wake: false,
        doc_state: DocState::Absent,
    };
    for function in functions {
        match function.name.as_str() {
            "configure" => {
                interface.configure_result = function.result.clone();
                interface.configure = Some(configure(function)?);
            }
            "wake" => {
                check_wake(&function)?;
                interface.has_wake = true;
            }
            _ => interface.operations.push(Operation {
                name: function.name,
                docs: function.docs,
                parameters: function.parameters,
                result: function.result,
            }),
        }
    }
    if interface.operations.is_empty() {
        return Err(Unfit::new(name, "it has no operation: a function besides configure and wake"));
    }
    Ok(interface)
}

fn configure(function: Function) -> Result<RecordType, Unfit> {
    let unfit = |problem| Err(Unfit::new("configure", format!("it takes one record, {problem}")));
    if !matches!(function.result, None | Some(ValueType::Result { .. })) {
        return unfit("and answers nothing or a result");
    }
    let mut parameters = function.parameters.into_iter();
    match (parameters.next().map(|parameter| parameter.ty), parameters.next()) {
        (Some(ValueType::Record(record)), None) => Ok(record),
        (Some(_), None) => unfit("not another type"),
        (None, _) => unfit("not nothing"),
        (Some(_), Some(_)) => unfit("not several parameters"),
    }
}

fn check_wake(function: &Function) -> Result<(), Unfit> {
    let takes_tags = match function.parameters.as_slice() {
        [Parameter { ty: ValueType::List(element), .. }] => **element == ValueType::U64,
        _ => false,
    };
    if takes_tags && function.result.is_none() {
        return Ok(());
    }
    Err(Unfit::new("wake", "it is `wake: func(fired: list<u64>)` and answers nothing"))
}

/// Reads types and counts their parts.
struct Parts {
    left: usize,
}

impl Parts {
    fn function(&mut self, name: &str, function: &ComponentFunc) -> Result<Function, Unfit> {
        if function.async_() {
            return Err(Unfit::new(
                name,
                "async; a recipe's functions are plain, the host suspends",
            ));
        }
        let mut parameters = Vec::new();
        for (parameter, ty) in function.params() {
            let ty = self.read(&format!("{name}.{parameter}"), &ty)?;
            parameters.push(Parameter { name: parameter.to_owned(), ty });
        }
        let result = function.results().next();
        let result = result.map(|ty| self.read(&format!("{name}.result"), &ty)).transpose()?;
        Ok(Function { name: name.to_owned(), docs: None, parameters, result })
    }

    fn read(&mut self, item: &str, ty: &Type) -> Result<ValueType, Unfit> {
        self.charge(item, "")?;
        Ok(match ty {
            Type::Bool => ValueType::Bool,
            Type::S8 => ValueType::S8,
            Type::U8 => ValueType::U8,
            Type::S16 => ValueType::S16,
            Type::U16 => ValueType::U16,
            Type::S32 => ValueType::S32,
            Type::U32 => ValueType::U32,
            Type::S64 => ValueType::S64,
            Type::U64 => ValueType::U64,
            Type::Float32 => ValueType::F32,
            Type::Float64 => ValueType::F64,
            Type::Char => ValueType::Char,
            Type::String => ValueType::String,
            Type::List(list) => match list.ty() {
                Type::U8 => ValueType::Bytes,
                element => ValueType::List(Box::new(self.read(&format!("{item}[]"), &element)?)),
            },
            Type::Option(option) => ValueType::Option(Box::new(self.read(item, &option.ty())?)),
            Type::Tuple(tuple) => {
                let mut types = Vec::new();
                for (index, ty) in tuple.types().enumerate() {
                    types.push(self.read(&format!("{item}.{index}"), &ty)?);
                }
                ValueType::Tuple(types)
            }
            Type::Result(result) => ValueType::Result {
                ok: self.optional(&format!("{item}.ok"), result.ok())?.map(Box::new),
                err: self.optional(&format!("{item}.err"), result.err())?.map(Box::new),
            },
            Type::Record(record) => {
                let mut fields = Vec::new();
                for field in record.fields() {
                    self.charge(item, field.name)?;
                    let ty = self.read(&format!("{item}.{}", field.name), &field.ty)?;
                    fields.push(Field { name: field.name.to_owned(), ty, docs: None });
                }
                ValueType::Record(RecordType { name: None, docs: None, fields })
            }
            Type::Variant(variant) => {
                let mut cases = Vec::new();
                for case in variant.cases() {
                    self.charge(item, case.name)?;
                    let ty = self.optional(&format!("{item}.{}", case.name), case.ty)?;
                    cases.push(Case { name: case.name.to_owned(), ty, docs: None });
                }
                ValueType::Variant(VariantType { name: None, docs: None, cases })
            }
            Type::Enum(names) => ValueType::Enum(self.labels(item, names.names())?),
            Type::Flags(names) => ValueType::Flags(self.labels(item, names.names())?),
            Type::Own(_) | Type::Borrow(_) => return Err(not_a_value(item, "a resource")),
            Type::Future(_) | Type::Stream(_) => return Err(not_a_value(item, "a stream")),
            _ => return Err(not_a_value(item, "a type with no counterpart in JSON")),
        })
    }

    fn optional(&mut self, item: &str, ty: Option<Type>) -> Result<Option<ValueType>, Unfit> {
        ty.map(|ty| self.read(item, &ty)).transpose()
    }

    fn labels<'a>(
        &mut self,
        item: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Labels, Unfit> {
        let label = |name: &str| {
            self.charge(item, name)?;
            Ok(Label { name: name.to_owned(), docs: None })
        };
        let labels = names.map(label).collect::<Result<_, _>>()?;
        Ok(Labels { name: None, docs: None, labels })
    }

    /// Counts a part with that name.
    fn charge(&mut self, item: &str, name: &str) -> Result<(), Unfit> {
        let left = self.left.checked_sub(1 + name.len() / BYTES_OF_ONE);
        self.left =
            left.ok_or_else(|| Unfit::new(item, "the types of the interface have too many parts"))?;
        Ok(())
    }
}

fn not_a_value(item: &str, what: &str) -> Unfit {
    Unfit::new(item, format!("{what}; a recipe's interface has values only"))
}
