//! The guide's page on the contract, made from the contract.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use wit_parser::{
    Docs, Function, FunctionKind, Handle, Interface, Resolve, Type, TypeDef, TypeDefKind, TypeId,
};

/// The page, in Markdown.
///
/// # Errors
/// If the text is no WIT, or uses what no contract of ours does.
pub fn contract_page(name: &str, wit: &str) -> Result<String> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str(name, wit)?;
    let package = resolve.packages.get(package).context("the package")?;
    let mut page = Page { resolve: &resolve, text: String::new() };
    page.text.push_str("# The contract\n\n");
    page.paragraph(&format!(
        "What a recipe can ask of its host: the package `{}`.\nThis page is made from \
         `guest-sdk/wit/recipe.wit`; a recipe has it in `wok-sdk/wit`.\nIn Rust the names are \
         `wok_sdk::zookeeper::get_data` and so on, and `wok_sdk` has helpers above them.",
        package.name
    ));
    page.docs(&package.docs);
    for id in package.interfaces.values() {
        page.interface(resolve.interfaces.get(*id).context("an interface")?)?;
    }
    Ok(format!("{}\n", page.text.trim_end()))
}

struct Page<'a> {
    resolve: &'a Resolve,
    text: String,
}

impl Page<'_> {
    fn paragraph(&mut self, text: &str) {
        // One sentence per line would be nicer; WIT's docs are wrapped, and that is all the same to a
        // reader of HTML.
        self.text.push_str(text.trim());
        self.text.push_str("\n\n");
    }

    fn docs(&mut self, docs: &Docs) {
        if let Some(contents) = &docs.contents {
            self.paragraph(contents);
        }
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.paragraph(&format!("{} {text}", "#".repeat(level)));
    }

    fn interface(&mut self, interface: &Interface) -> Result<()> {
        self.heading(2, interface.name.as_deref().context("an interface without a name")?);
        self.docs(&interface.docs);
        for function in interface.functions.values() {
            if function.kind == FunctionKind::Freestanding {
                self.function(3, function)?;
            }
        }
        for id in interface.types.values() {
            let ty = self.resolve.types.get(*id).context("a type")?;
            self.ty(ty, *id, interface)?;
        }
        Ok(())
    }

    fn function(&mut self, level: usize, function: &Function) -> Result<()> {
        self.heading(level, function.item_name());
        let is_method = matches!(function.kind, FunctionKind::Method(_));
        let parameters = function.params.iter().skip(usize::from(is_method));
        let parameters: Vec<String> = parameters
            .map(|it| Ok(format!("{}: {}", it.name, self.spell(&it.ty)?)))
            .collect::<Result<_>>()?;
        let result = match &function.result {
            Some(ty) => format!(" -> {}", self.spell(ty)?),
            None => String::new(),
        };
        let name = function.item_name();
        self.paragraph(&format!("```wit\n{name}: func({}){result};\n```", parameters.join(", ")));
        self.docs(&function.docs);
        Ok(())
    }

    fn ty(&mut self, ty: &TypeDef, id: TypeId, interface: &Interface) -> Result<()> {
        let name = ty.name.as_deref().context("a type without a name")?;
        let (kind, parts) = match &ty.kind {
            TypeDefKind::Record(record) => {
                let field = |it: &wit_parser::Field| {
                    Ok((format!("{}: {}", it.name, self.spell(&it.ty)?), it.docs.clone()))
                };
                ("record", record.fields.iter().map(field).collect::<Result<Vec<_>>>()?)
            }
            TypeDefKind::Variant(variant) => {
                let case = |it: &wit_parser::Case| {
                    let payload = it.ty.as_ref().map(|ty| self.spell(ty)).transpose()?;
                    let payload = payload.map(|it| format!("({it})")).unwrap_or_default();
                    Ok((format!("{}{payload}", it.name), it.docs.clone()))
                };
                ("variant", variant.cases.iter().map(case).collect::<Result<Vec<_>>>()?)
            }
            TypeDefKind::Enum(names) => {
                ("enum", names.cases.iter().map(|it| (it.name.clone(), it.docs.clone())).collect())
            }
            TypeDefKind::Resource => ("resource", Vec::new()),
            // From another interface, which has it.
            TypeDefKind::Type(Type::Id(_)) => return Ok(()),
            TypeDefKind::Type(alias) => {
                let alias = self.spell(alias)?;
                self.heading(3, &format!("type {name}"));
                self.paragraph(&format!("Is `{alias}`."));
                self.docs(&ty.docs);
                return Ok(());
            }
            other => anyhow::bail!("{name}: a {}", other.as_str()),
        };
        self.heading(3, &format!("{kind} {name}"));
        self.docs(&ty.docs);
        if !parts.is_empty() {
            let mut table = format!("| {} | |\n|---|---|\n", part_of(kind));
            for (part, docs) in parts {
                let docs = docs.contents.unwrap_or_default().trim().replace('\n', " ");
                writeln!(table, "| `{part}` | {docs} |")?;
            }
            self.paragraph(&table);
        }
        for function in interface.functions.values() {
            if function.kind == FunctionKind::Method(id) {
                self.function(4, function)?;
            }
        }
        Ok(())
    }

    /// A type as WIT writes it.
    fn spell(&self, ty: &Type) -> Result<String> {
        let plain = match ty {
            Type::Bool => "bool",
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::U64 => "u64",
            Type::S8 => "s8",
            Type::S16 => "s16",
            Type::S32 => "s32",
            Type::S64 => "s64",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::Char => "char",
            Type::String => "string",
            Type::ErrorContext => "error-context",
            Type::Id(id) => return self.spell_defined(*id),
        };
        Ok(plain.to_owned())
    }

    fn spell_defined(&self, id: TypeId) -> Result<String> {
        let ty = self.resolve.types.get(id).context("a type")?;
        if let Some(name) = &ty.name {
            return Ok(name.clone());
        }
        let optional = |ty: &Option<Type>| match ty {
            Some(ty) => self.spell(ty),
            None => Ok("_".to_owned()),
        };
        Ok(match &ty.kind {
            TypeDefKind::List(item) => format!("list<{}>", self.spell(item)?),
            TypeDefKind::Option(some) => format!("option<{}>", self.spell(some)?),
            TypeDefKind::Result(result) => {
                format!("result<{}, {}>", optional(&result.ok)?, optional(&result.err)?)
            }
            TypeDefKind::Tuple(tuple) => {
                let items = tuple.types.iter().map(|ty| self.spell(ty));
                format!("tuple<{}>", items.collect::<Result<Vec<_>>>()?.join(", "))
            }
            TypeDefKind::Handle(Handle::Own(id)) => self.spell_defined(*id)?,
            TypeDefKind::Handle(Handle::Borrow(id)) => {
                format!("borrow<{}>", self.spell_defined(*id)?)
            }
            other => anyhow::bail!("a {}", other.as_str()),
        })
    }
}

fn part_of(kind: &str) -> &'static str {
    match kind {
        "record" => "field",
        "variant" => "case",
        _ => "name",
    }
}
