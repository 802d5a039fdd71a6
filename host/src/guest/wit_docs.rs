//! What a recipe's WIT says of its interface.
//!
//! Components carry no docs, so `wok build` appends the WIT package. It is only words beside the
//! code: it is believed where it describes the very types that the component has.

use std::cell::Cell;

use wit_parser::decoding::DecodedWasm;
use wit_parser::{Docs, FunctionKind, InterfaceId, Resolve, Type, TypeDef, TypeDefKind, TypeOwner};

use super::interface::{Interface, Parameter};
use super::reflect::{Function, assemble};
use super::sections::custom_section;
use super::value_type::{Case, Field, Label, Labels, RecordType, TypeName, ValueType, VariantType};

/// The custom section that `wok build` appends.
const SECTION: &str = "wok:wit";

/// Largest section that is looked at; the stock recipes' have under 5,000 bytes.
const MAX_SECTION: usize = 1 << 20;

/// Most bytes that are copied of it. A type is shared in the section, and copied with its docs wherever it is
/// used, so a small section could describe a huge interface.
const MAX_COPIED: usize = 8 << 20;

/// What a type or a label takes besides its texts.
const OF_A_TYPE: usize = 100;

/// Deepest type; what is deeper is not in any component that was compiled.
const MAX_DEPTH: usize = 100;

/// Where an interface's docs come from, or why there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocState {
    /// From the module's own WIT, which describes the very types that it has.
    Documented,
    /// The module has no section `wok:wit`: it was not made by `wok build`.
    Absent,
    /// The section is not used, for this reason.
    Unusable(String),
}

/// The interface with the docs of the component's own WIT, if that describes the same interface.
pub(super) fn documented(component: &[u8], bare: Interface) -> Interface {
    let Some(section) = custom_section(component, SECTION) else {
        return Interface { doc_state: DocState::Absent, ..bare };
    };
    match described(section, &bare.name, |full| full == bare.name) {
        Ok(described) if described.bare() == bare.bare() => {
            Interface { doc_state: DocState::Documented, ..described }
        }
        Ok(_) => {
            let reason = "the WIT in wok:wit describes other types than the component has";
            Interface { doc_state: DocState::Unusable(reason.to_owned()), ..bare }
        }
        Err(reason) => Interface { doc_state: DocState::Unusable(reason), ..bare },
    }
}

/// Whether a component's own WIT describes an interface with that word for its name, in whatever package,
/// and with the very operations of this one.
#[cfg(feature = "simulation")]
pub(crate) fn describes(component: &[u8], own_name: &str, interface: &Interface) -> bool {
    let described = custom_section(component, SECTION).and_then(|section| {
        described(section, own_name, |full| own_name_of(full) == own_name).ok()
    });
    described.is_some_and(|described| described.bare().operations == interface.bare().operations)
}

/// An interface's own name: `lock` of `wok:lock/lock@0.1.0`.
#[cfg(feature = "simulation")]
pub(crate) fn own_name_of(interface: &str) -> &str {
    let name = interface.rsplit('/').next().unwrap_or_default();
    name.split('@').next().unwrap_or_default()
}

/// The interface as the section's WIT describes it: the one whose full name is the right one.
fn described(
    section: &[u8],
    name: &str,
    is_its_name: impl Fn(&str) -> bool,
) -> Result<Interface, String> {
    if section.len() > MAX_SECTION {
        return Err(format!("the section wok:wit is longer than {MAX_SECTION} bytes"));
    }
    let resolve = match wit_parser::decoding::decode(section) {
        Ok(DecodedWasm::WitPackage(resolve, _)) => resolve,
        Ok(DecodedWasm::Component(..)) => return Err("wok:wit is no WIT package".to_owned()),
        Err(error) => return Err(format!("wok:wit cannot be read: {error:#}")),
    };
    let found = resolve.interfaces.iter().find(|(id, _)| is_its_name(&full_name(&resolve, *id)));
    let (_, interface) = found.ok_or_else(|| format!("wok:wit does not describe {name}"))?;
    let reading = Reading { resolve: &resolve, left: Cell::new(MAX_COPIED) };
    let mut functions = Vec::new();
    for function in interface.functions.values() {
        if function.kind != FunctionKind::Freestanding {
            return Err(format!("wok:wit: {} is not a plain function", function.name));
        }
        let mut parameters = Vec::new();
        for parameter in &function.params {
            let ty = reading.read(&parameter.ty, 0)?;
            parameters.push(Parameter { name: parameter.name.clone(), ty });
        }
        functions.push(Function {
            name: function.name.clone(),
            docs: reading.text(&function.docs)?,
            parameters,
            result: function.result.as_ref().map(|ty| reading.read(ty, 0)).transpose()?,
        });
    }
    let described = assemble(name, functions)
        .map_err(|unfit| format!("wok:wit: {}: {}", unfit.item, unfit.problem))?;
    Ok(Interface { docs: reading.text(&interface.docs)?, ..described })
}

fn full_name(resolve: &Resolve, id: InterfaceId) -> String {
    resolve.id_of(id).unwrap_or_default()
}

/// What is read, and how much more may be copied of it.
struct Reading<'a> {
    resolve: &'a Resolve,
    left: Cell<usize>,
}

impl Reading<'_> {
    fn read(&self, ty: &Type, depth: usize) -> Result<ValueType, String> {
        if depth > MAX_DEPTH {
            return Err("wok:wit: a type is too deep".to_owned());
        }
        self.charge(OF_A_TYPE)?;
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
            Type::F32 => ValueType::F32,
            Type::F64 => ValueType::F64,
            Type::Char => ValueType::Char,
            Type::String => ValueType::String,
            Type::ErrorContext => return Err("wok:wit: an error-context".to_owned()),
            Type::Id(id) => {
                let defined = self
                    .resolve
                    .types
                    .get(*id)
                    .ok_or_else(|| "wok:wit: a dangling type".to_owned())?;
                self.read_defined(defined, depth + 1)?
            }
        })
    }

    fn read_defined(&self, defined: &TypeDef, depth: usize) -> Result<ValueType, String> {
        let boxed = |ty: &Type| self.read(ty, depth).map(Box::new);
        let optional = |ty: &Option<Type>| ty.as_ref().map(boxed).transpose();
        // A type that an interface only uses belongs to another, and so do its words.
        let (name, docs) = match defined.owner {
            TypeOwner::Interface(id) => {
                let interface = full_name(self.resolve, id);
                let name = defined.name.clone().map(|name| TypeName { name, interface });
                (name, self.text(&defined.docs)?)
            }
            // An interface has no types of a world's.
            TypeOwner::None | TypeOwner::World(_) => (None, None),
        };
        Ok(match &defined.kind {
            TypeDefKind::Type(alias) => self.read(alias, depth)?,
            TypeDefKind::List(Type::U8) => ValueType::Bytes,
            TypeDefKind::List(element) => match self.read(element, depth)? {
                ValueType::U8 => ValueType::Bytes,
                element => ValueType::List(Box::new(element)),
            },
            TypeDefKind::Option(inner) => ValueType::Option(boxed(inner)?),
            TypeDefKind::Tuple(tuple) => {
                let types = tuple.types.iter().map(|ty| self.read(ty, depth));
                ValueType::Tuple(types.collect::<Result<_, _>>()?)
            }
            TypeDefKind::Result(result) => {
                ValueType::Result { ok: optional(&result.ok)?, err: optional(&result.err)? }
            }
            TypeDefKind::Record(record) => {
                let mut fields = Vec::new();
                for field in &record.fields {
                    self.charge(field.name.len())?;
                    let ty = self.read(&field.ty, depth)?;
                    fields.push(Field {
                        name: field.name.clone(),
                        ty,
                        docs: self.text(&field.docs)?,
                    });
                }
                ValueType::Record(RecordType { name, docs, fields })
            }
            TypeDefKind::Variant(variant) => {
                let mut cases = Vec::new();
                for case in &variant.cases {
                    self.charge(OF_A_TYPE + case.name.len())?;
                    let ty = optional(&case.ty)?.map(|ty| *ty);
                    cases.push(Case { name: case.name.clone(), ty, docs: self.text(&case.docs)? });
                }
                ValueType::Variant(VariantType { name, docs, cases })
            }
            TypeDefKind::Enum(defined) => {
                let labels = defined
                    .cases
                    .iter()
                    .map(|case| self.label(&case.name, &case.docs))
                    .collect::<Result<_, _>>()?;
                ValueType::Enum(Labels { name, docs, labels })
            }
            TypeDefKind::Flags(defined) => {
                let labels = defined
                    .flags
                    .iter()
                    .map(|flag| self.label(&flag.name, &flag.docs))
                    .collect::<Result<_, _>>()?;
                ValueType::Flags(Labels { name, docs, labels })
            }
            other => return Err(format!("wok:wit: a {}", other.as_str())),
        })
    }

    fn label(&self, name: &str, docs: &Docs) -> Result<Label, String> {
        self.charge(OF_A_TYPE + name.len())?;
        Ok(Label { name: name.to_owned(), docs: self.text(docs)? })
    }

    fn text(&self, docs: &Docs) -> Result<Option<String>, String> {
        let Some(text) = docs.contents.as_deref().map(str::trim) else { return Ok(None) };
        self.charge(text.len())?;
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    fn charge(&self, bytes: usize) -> Result<(), String> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.ok_or_else(|| "wok:wit: its types have too many parts".to_owned())?);
        Ok(())
    }
}
