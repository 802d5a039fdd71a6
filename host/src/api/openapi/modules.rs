//! The types of the modules' operations.

use serde_json::Value;

use super::Recipe;
use super::components::{Components, any_of, referred};
use super::endpoint::Need;
use super::errors;
use crate::guest::values::Schemas;
use crate::guest::{Interface, Operation, TypeName, ValueType};

/// A recipe's module.
#[derive(Debug)]
pub(super) struct Module<'a> {
    pub(super) recipe: Recipe<'a>,
    /// Its interface's name without the package, which the names of its schemas begin with.
    pub(super) stem: &'a str,
    pub(super) operations: Vec<Described<'a>>,
}

/// An operation with its schemas.
#[derive(Debug)]
pub(super) struct Described<'a> {
    pub(super) operation: &'a Operation,
    /// What it takes, if anything.
    pub(super) arguments: Option<Arguments>,
    pub(super) answer: Value,
    /// Its own error, if it has one.
    pub(super) error: Option<Value>,
}

/// What an operation takes.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) schema: Value,
    /// Optional where every one of them is.
    pub(super) need: Need,
}

/// The modules of the recipes, with the schemas of all their types in `components`.
pub(super) fn read<'a>(recipes: &[Recipe<'a>], components: &mut Components) -> Vec<Module<'a>> {
    let mut modules: Vec<Module<'a>> =
        recipes.iter().map(|recipe| answering(*recipe, components)).collect();
    // A type that is both asked for and answered has its plain name where it is answered.
    for module in &mut modules {
        for described in &mut module.operations {
            described.arguments =
                arguments(module.recipe, module.stem, described.operation, components);
        }
    }
    modules
}

/// A module without what its operations take.
fn answering<'a>(recipe: Recipe<'a>, components: &mut Components) -> Module<'a> {
    let mut keep = |name: &TypeName, schema: Value| {
        let TypeName { name, interface } = name;
        let names = [format!("{}-{name}", stem(interface)), format!("{}-{name}", recipe.name)];
        components.keep(&names.each_ref().map(String::as_str), schema)
    };
    let mut schemas = Schemas::new(&mut keep);
    let described = recipe.interface.operations.iter().map(|operation| Described {
        operation,
        arguments: None,
        answer: schemas.answer(operation),
        error: schemas.error(operation),
    });
    let operations = described.collect();
    Module { recipe, stem: stem(&recipe.interface.name), operations }
}

fn arguments(
    recipe: Recipe<'_>,
    stem: &str,
    operation: &Operation,
    components: &mut Components,
) -> Option<Arguments> {
    if operation.parameters.is_empty() {
        return None;
    }
    let mut keep = |name: &TypeName, schema: Value| {
        let TypeName { name, interface } = name;
        let home = self::stem(interface);
        let names = [
            format!("{home}-{name}"),
            format!("{home}-{name}-argument"),
            format!("{}-{name}-argument", recipe.name),
        ];
        components.keep(&names.each_ref().map(String::as_str), schema)
    };
    let schema = Schemas::new(&mut keep).arguments(operation);
    let names = [
        format!("{stem}-{}-arguments", operation.name),
        format!("{}-{}-arguments", recipe.name, operation.name),
    ];
    let schema = components.keep(&names.each_ref().map(String::as_str), schema);
    Some(Arguments { schema, need: need(operation) })
}

fn need(operation: &Operation) -> Need {
    let is_needed = |ty: &ValueType| !matches!(ty, ValueType::Option(_));
    let is_any_needed = match operation.body() {
        Some(record) => record.fields.iter().any(|field| is_needed(&field.ty)),
        None => operation.parameters.iter().any(|parameter| is_needed(&parameter.ty)),
    };
    if is_any_needed { Need::Needed } else { Need::Optional }
}

/// The name of an interface without its package: `seats` of `acme:theatre/seats@1.0.0`.
fn stem(interface: &str) -> &str {
    let name = interface.rsplit('/').next().unwrap_or(interface);
    name.split('@').next().unwrap_or(name)
}

impl<'a> Module<'a> {
    /// Keeps a schema of this module's under its interface's name, or, where that is taken, under its
    /// recipe's.
    pub(super) fn keep(&self, rest: &str, schema: Value, components: &mut Components) -> Value {
        let names = [format!("{}-{rest}", self.stem), format!("{}-{rest}", self.recipe.name)];
        components.keep(&names.each_ref().map(String::as_str), schema)
    }

    pub(super) fn interface(&self) -> &'a Interface {
        self.recipe.interface
    }

    /// What any of its operations answers.
    pub(super) fn any_answer(&self) -> Value {
        any_of(self.operations.iter().map(|it| it.answer.clone()))
    }

    /// The error of any of its operations; none if none has one.
    pub(super) fn any_error(&self) -> Option<Value> {
        let mut errors = self.operations.iter().filter_map(|it| it.error.clone()).peekable();
        errors.peek()?;
        Some(any_of(errors))
    }
}

/// The body with an operation's own error, under the name of the error's type if that has one.
pub(super) fn refusal(name: &str, error: &Value, components: &mut Components) -> Value {
    let schema = errors::refusal(error.clone());
    match referred(error) {
        Some(error) => components.keep(&[&format!("{error}-refusal"), name], schema),
        None => components.keep(&[name], schema),
    }
}
