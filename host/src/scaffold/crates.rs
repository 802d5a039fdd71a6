//! The crates in this binary, and what they become where they stand alone.

use super::{File, PackageName, ScaffoldError, lock_file, vendored};

/// The paths and texts of a crate's own files.
pub(super) type Sources = &'static [(&'static str, &'static str)];

/// The stock recipes, as the build script found them.
const RECIPES: &[(&str, Sources)] = include!(concat!(env!("OUT_DIR"), "/recipe_sources.rs"));

/// The templates, likewise.
const TEMPLATES: &[(&str, Sources)] = include!(concat!(env!("OUT_DIR"), "/template_sources.rs"));

const MANIFEST: &str = include_str!("../../../guest-sdk/standalone/recipe.toml");
const JUDGE_MANIFEST: &str = include_str!("../../../guest-sdk/standalone/judge.toml");
const GITIGNORE: &str = include_str!("../../../guest-sdk/standalone/gitignore");
const RUSTFMT: &str = include_str!("../../../rustfmt.toml");
pub(super) const LICENSE: &str = include_str!("../../../LICENSE");

/// What a new crate is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A fork of a stock recipe, by its name.
    Stock(String),
    /// A template, by its name.
    Template(String),
}

/// The stock recipes that can be forked.
pub fn stock_names() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|(name, _)| *name)
}

/// The templates.
pub fn template_names() -> impl Iterator<Item = &'static str> {
    TEMPLATES.iter().map(|(name, _)| *name)
}

impl Origin {
    /// Every file of the new crate.
    pub(super) fn files(&self, package: &PackageName) -> Result<Vec<File>, ScaffoldError> {
        let mut files = vec![
            File::new("Cargo.toml", manifest(MANIFEST, package)),
            File::new("promise/judge/Cargo.toml", manifest(JUDGE_MANIFEST, package)),
            File::new("Cargo.lock", lock_file::naming(package)),
            File::new(".gitignore", GITIGNORE),
            File::new("rustfmt.toml", RUSTFMT),
        ];
        if let Origin::Stock(_) = self {
            // The code is ours, and its licence asks to go along.
            files.push(File::new("LICENSE", LICENSE));
        }
        let sources = self.sources()?;
        let naming = match self {
            Origin::Stock(_) => None,
            Origin::Template(_) => Naming::of(sources, package),
        };
        for (path, text) in sources {
            let (path, text) = ((*path).to_owned(), with_sdk_beside(text));
            files.push(match &naming {
                Some(naming) => File::new(naming.applied(&path), naming.applied(&text)),
                None => File::new(path, text),
            });
        }
        files.extend(vendored::files());
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }

    fn sources(&self) -> Result<Sources, ScaffoldError> {
        let (what, name, there) = match self {
            Origin::Stock(name) => ("stock recipe", name, RECIPES),
            Origin::Template(name) => ("template", name, TEMPLATES),
        };
        let found = there.iter().find(|(known, _)| known == name);
        found.map(|(_, sources)| *sources).ok_or_else(|| ScaffoldError::Unknown {
            what,
            name: name.clone(),
            known: there.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", "),
        })
    }
}

/// A manifest with the crate's name: it begins the name of the package.
fn manifest(text: &str, package: &PackageName) -> String {
    text.replacen("name = \"recipe", &format!("name = \"{package}"), 1)
}

/// What a template is called in its own files, and what a crate made of it is called there.
struct Naming {
    /// The template's word, which its WIT file is named by.
    word: &'static str,
    name: String,
}

impl Naming {
    /// None where the crate's name cannot be one in WIT: then the template's word stays.
    fn of(sources: Sources, package: &PackageName) -> Option<Self> {
        let wit = sources.iter().find_map(|(path, _)| path.strip_prefix("wit/"))?;
        let word = wit.strip_suffix(".wit")?;
        let name = package.to_string().to_lowercase().replace('_', "-");
        is_wit_name(&name).then_some(Naming { word, name })
    }

    fn applied(&self, text: &str) -> String {
        // What wit-bindgen makes of the names of the package and of the interface.
        let path = |name: &str| format!("my::{name}::{name}").replace('-', "_");
        text.replace(&path(self.word), &path(&self.name)).replace(self.word, &self.name)
    }
}

/// Whether WIT takes it as a name as it stands: words of letters and digits, none of its own.
fn is_wit_name(name: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    };
    let is_parsed = || {
        let text = format!("package my:{name};\ninterface {name} {{}}\n");
        wit_parser::Resolve::default().push_str("name", &text).is_ok()
    };
    name.split('-').all(is_word) && is_parsed()
}

/// The source with the contract where a crate that stands alone has it.
fn with_sdk_beside(source: &str) -> String {
    const BINDING: &str = "wok_sdk::bind!(\"";
    let parts = source.split_once(BINDING).and_then(|(before, rest)| {
        let (_, after) = rest.split_once('"')?;
        Some((before, after))
    });
    match parts {
        Some((before, after)) => format!("{before}{BINDING}{}/wit\"{after}", vendored::DIRECTORY),
        None => source.to_owned(),
    }
}
