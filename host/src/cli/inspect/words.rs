//! Types as WIT writes them, by their names where the module has them.

use crate::guest::{Interface, ValueType};

/// The types of an interface that have names, each once, in the order in which they are met.
pub(super) struct NamedTypes<'a> {
    types: Vec<(&'a str, &'a ValueType)>,
}

impl<'a> NamedTypes<'a> {
    pub(super) fn of(interface: &'a Interface) -> Self {
        let mut named = NamedTypes { types: Vec::new() };
        for operation in &interface.operations {
            let parameters = operation.parameters.iter().map(|parameter| &parameter.ty);
            parameters.chain(&operation.result).for_each(|ty| named.collect(ty));
        }
        let config = interface.configure.iter().flat_map(|config| &config.fields);
        config.for_each(|field| named.collect(&field.ty));
        named
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a ValueType)> {
        self.types.iter().copied()
    }

    /// A type by its name if it has one, otherwise by its parts.
    pub(super) fn in_words(&self, ty: &ValueType) -> String {
        match name(ty) {
            // Two packages may give one name to two types; the second is told by its parts.
            Some(name) if self.iter().any(|known| known == (name, ty)) => name.to_owned(),
            _ => self.by_parts(ty),
        }
    }

    fn by_parts(&self, ty: &ValueType) -> String {
        let optional = |ty: &Option<Box<ValueType>>| {
            ty.as_deref().map_or("_".to_owned(), |it| self.in_words(it))
        };
        let plain = match ty {
            ValueType::Bool => "bool",
            ValueType::S8 => "s8",
            ValueType::U8 => "u8",
            ValueType::S16 => "s16",
            ValueType::U16 => "u16",
            ValueType::S32 => "s32",
            ValueType::U32 => "u32",
            ValueType::S64 => "s64",
            ValueType::U64 => "u64",
            ValueType::F32 => "f32",
            ValueType::F64 => "f64",
            ValueType::Char => "char",
            ValueType::String => "string",
            ValueType::Bytes => "list<u8>",
            ValueType::List(item) => return format!("list<{}>", self.in_words(item)),
            ValueType::Option(some) => return format!("option<{}>", self.in_words(some)),
            ValueType::Tuple(items) => {
                let items: Vec<String> = items.iter().map(|item| self.in_words(item)).collect();
                return format!("tuple<{}>", items.join(", "));
            }
            ValueType::Result { ok, err } => {
                return format!("result<{}, {}>", optional(ok), optional(err));
            }
            _ => return format!("{} {{ {} }}", kind(ty), self.parts(ty).join(", ")),
        };
        plain.to_owned()
    }

    /// The fields, cases or names of a type, each as WIT writes it.
    fn parts(&self, ty: &ValueType) -> Vec<String> {
        self.documented_parts(ty).into_iter().map(|(part, _)| part).collect()
    }

    /// The same, with what the module's WIT says of each.
    pub(super) fn documented_parts<'b>(&self, ty: &'b ValueType) -> Vec<(String, Option<&'b str>)> {
        match ty {
            ValueType::Record(record) => record
                .fields
                .iter()
                .map(|it| (format!("{}: {}", it.name, self.in_words(&it.ty)), it.docs.as_deref()))
                .collect(),
            ValueType::Variant(variant) => variant
                .cases
                .iter()
                .map(|it| match &it.ty {
                    Some(ty) => (format!("{}({})", it.name, self.in_words(ty)), it.docs.as_deref()),
                    None => (it.name.clone(), it.docs.as_deref()),
                })
                .collect(),
            ValueType::Enum(names) | ValueType::Flags(names) => {
                names.labels.iter().map(|it| (it.name.clone(), it.docs.as_deref())).collect()
            }
            _ => Vec::new(),
        }
    }

    fn collect(&mut self, ty: &'a ValueType) {
        if let Some(name) = name(ty) {
            if self.types.iter().any(|(known, _)| *known == name) {
                return;
            }
            self.types.push((name, ty));
        }
        match ty {
            ValueType::List(inner) | ValueType::Option(inner) => self.collect(inner),
            ValueType::Tuple(types) => types.iter().for_each(|ty| self.collect(ty)),
            ValueType::Result { ok, err } => {
                [ok, err].into_iter().flatten().for_each(|ty| self.collect(ty));
            }
            ValueType::Record(record) => {
                record.fields.iter().for_each(|field| self.collect(&field.ty));
            }
            ValueType::Variant(variant) => {
                variant
                    .cases
                    .iter()
                    .filter_map(|case| case.ty.as_ref())
                    .for_each(|ty| self.collect(ty));
            }
            _ => {}
        }
    }
}

/// What WIT calls a type that has parts with names.
pub(super) fn kind(ty: &ValueType) -> &'static str {
    match ty {
        ValueType::Record(_) => "record",
        ValueType::Variant(_) => "variant",
        ValueType::Enum(_) => "enum",
        ValueType::Flags(_) => "flags",
        _ => "type",
    }
}

/// What its WIT says of a type.
pub(super) fn docs(ty: &ValueType) -> Option<&str> {
    match ty {
        ValueType::Record(record) => record.docs.as_deref(),
        ValueType::Variant(variant) => variant.docs.as_deref(),
        ValueType::Enum(names) | ValueType::Flags(names) => names.docs.as_deref(),
        _ => None,
    }
}

fn name(ty: &ValueType) -> Option<&str> {
    let name = match ty {
        ValueType::Record(record) => record.name.as_ref(),
        ValueType::Variant(variant) => variant.name.as_ref(),
        ValueType::Enum(names) | ValueType::Flags(names) => names.name.as_ref(),
        _ => None,
    };
    name.map(|it| it.name.as_str())
}
