//! The types of a recipe's parameters, results and config, apart from wasmtime's own.

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "WIT's own names")]
pub enum ValueType {
    Bool,
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
    F32,
    F64,
    Char,
    String,
    /// `list<u8>`.
    Bytes,
    List(Box<ValueType>),
    Option(Box<ValueType>),
    Tuple(Vec<ValueType>),
    Result {
        ok: Option<Box<ValueType>>,
        err: Option<Box<ValueType>>,
    },
    Record(RecordType),
    Variant(VariantType),
    Enum(Labels),
    Flags(Labels),
}

/// What the WIT of a recipe calls a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeName {
    /// The name, in kebab-case.
    pub name: String,
    /// The full name of the interface that defines the type. The recipe's own interface may only use
    /// it.
    pub interface: String,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordType {
    /// What the recipe's WIT calls it, where that is known.
    pub name: Option<TypeName>,
    /// What the recipe's WIT says of it.
    pub docs: Option<String>,
    /// Its fields, in their order.
    pub fields: Vec<Field>,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name, in kebab-case.
    pub name: String,
    /// Its type.
    pub ty: ValueType,
    /// What the recipe's WIT says of it.
    pub docs: Option<String>,
}

/// A variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantType {
    /// What the recipe's WIT calls it, where that is known.
    pub name: Option<TypeName>,
    /// What the recipe's WIT says of it.
    pub docs: Option<String>,
    /// Its cases, in their order.
    pub cases: Vec<Case>,
}

/// A case of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its name, in kebab-case.
    pub name: String,
    /// What it carries, if it carries something.
    pub ty: Option<ValueType>,
    /// What the recipe's WIT says of it.
    pub docs: Option<String>,
}

/// The names of an enum or of flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// What the recipe's WIT calls it, where that is known.
    pub name: Option<TypeName>,
    /// What the recipe's WIT says of it.
    pub docs: Option<String>,
    /// The names, in their order.
    pub labels: Vec<Label>,
}

/// One name of an enum or of flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The name, in kebab-case.
    pub name: String,
    /// What the recipe's WIT says of it.
    pub docs: Option<String>,
}

impl ValueType {
    /// What an error calls it.
    pub fn noun(&self) -> &'static str {
        match self {
            ValueType::Bool => "true or false",
            ValueType::S8
            | ValueType::U8
            | ValueType::S16
            | ValueType::U16
            | ValueType::S32
            | ValueType::U32 => "a number",
            ValueType::S64 | ValueType::U64 => "a number or a decimal string",
            ValueType::F32 | ValueType::F64 => "a number",
            ValueType::Char => "a string of one character",
            ValueType::String => "a string",
            ValueType::Bytes => "a string or {\"base64\": …}",
            ValueType::List(_) | ValueType::Tuple(_) | ValueType::Flags(_) => "an array",
            ValueType::Option(inner) => inner.noun(),
            ValueType::Record(_) => "an object",
            ValueType::Variant(_) | ValueType::Result { .. } => "a case or {case: payload}",
            ValueType::Enum(_) => "a string",
        }
    }

    /// Whether it has a list, and with it many values of the host's for few bytes of the
    /// component's.
    pub(super) fn has_list(&self) -> bool {
        match self {
            ValueType::Bytes | ValueType::List(_) => true,
            ValueType::Option(inner) => inner.has_list(),
            ValueType::Tuple(types) => types.iter().any(ValueType::has_list),
            ValueType::Result { ok, err } => {
                [ok, err].into_iter().flatten().any(|ty| ty.has_list())
            }
            ValueType::Record(record) => record.fields.iter().any(|field| field.ty.has_list()),
            ValueType::Variant(variant) => {
                variant.cases.iter().filter_map(|case| case.ty.as_ref()).any(Self::has_list)
            }
            _ => false,
        }
    }

    /// The type without the names and docs that only its WIT tells.
    pub(super) fn bare(&self) -> ValueType {
        let boxed = |ty: &Option<Box<ValueType>>| ty.as_ref().map(|ty| Box::new(ty.bare()));
        match self {
            ValueType::List(element) => ValueType::List(Box::new(element.bare())),
            ValueType::Option(inner) => ValueType::Option(Box::new(inner.bare())),
            ValueType::Tuple(types) => {
                ValueType::Tuple(types.iter().map(ValueType::bare).collect())
            }
            ValueType::Result { ok, err } => ValueType::Result { ok: boxed(ok), err: boxed(err) },
            ValueType::Record(record) => ValueType::Record(record.bare()),
            ValueType::Variant(variant) => {
                let bare = |case: &Case| Case {
                    name: case.name.clone(),
                    ty: case.ty.as_ref().map(ValueType::bare),
                    docs: None,
                };
                let cases = variant.cases.iter().map(bare).collect();
                ValueType::Variant(VariantType { name: None, docs: None, cases })
            }
            ValueType::Enum(labels) => ValueType::Enum(labels.bare()),
            ValueType::Flags(labels) => ValueType::Flags(labels.bare()),
            plain => plain.clone(),
        }
    }
}

impl RecordType {
    pub(super) fn bare(&self) -> RecordType {
        let bare =
            |field: &Field| Field { name: field.name.clone(), ty: field.ty.bare(), docs: None };
        RecordType { name: None, docs: None, fields: self.fields.iter().map(bare).collect() }
    }
}

impl Labels {
    fn bare(&self) -> Labels {
        let bare = |label: &Label| Label { name: label.name.clone(), docs: None };
        Labels { name: None, docs: None, labels: self.labels.iter().map(bare).collect() }
    }
}
