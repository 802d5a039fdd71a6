//! ZooKeeper's rules for paths, and paths that are known to keep them.
//!
//! Nothing is normalised: a path that is not well formed is refused, never repaired, because a
//! repaired path may name another znode than its writer meant. Paths are compared segment by
//! segment, so `/locks-evil` is not inside `/locks`.

use std::fmt;
use std::str::FromStr;

/// The subtree in which an ensemble keeps its own state: quotas and its membership.
const RESERVED: &str = "zookeeper";

/// Why a text is not the path of a znode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{}: {}", self.fault(), self.remedy())]
pub enum PathError {
    /// It does not begin with a slash.
    NotAbsolute,
    /// It ends with a slash, and is not `/` itself.
    TrailingSlash,
    /// Two slashes stand side by side.
    EmptyComponent,
    /// A component is `.` or `..`, which ZooKeeper never resolves.
    RelativeComponent(&'static str),
    /// A component to be joined has a slash in it.
    SlashInComponent(String),
    /// ZooKeeper refuses this character.
    ForbiddenCharacter {
        /// The character.
        character: char,
        /// Where it stands, in bytes from the beginning of the path or component.
        at: usize,
    },
    /// It is `/zookeeper` or inside it.
    Reserved,
}

impl PathError {
    /// What is wrong.
    pub fn fault(&self) -> String {
        match self {
            PathError::NotAbsolute => "the path is not absolute".to_owned(),
            PathError::TrailingSlash => "the path ends with `/`".to_owned(),
            PathError::EmptyComponent => "the path has an empty component".to_owned(),
            PathError::RelativeComponent(name) => format!("the path has a component `{name}`"),
            PathError::SlashInComponent(name) => {
                format!("the component `{}` has a slash in it", name.escape_debug())
            }
            PathError::ForbiddenCharacter { character, .. } => {
                format!("ZooKeeper does not allow U+{:04X} in a path", u32::from(*character))
            }
            PathError::Reserved => "`/zookeeper` belongs to the ensemble itself".to_owned(),
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            PathError::NotAbsolute => "begin it with `/`",
            PathError::TrailingSlash => "leave the last slash out",
            PathError::EmptyComponent => "write one `/` where there are two",
            PathError::RelativeComponent(_) => {
                "write the whole path: ZooKeeper has no relative ones"
            }
            PathError::SlashInComponent(_) => "give each component by itself",
            PathError::ForbiddenCharacter { .. } => "leave the character out",
            PathError::Reserved => "choose another path",
        }
    }
}

/// Checks an absolute path against ZooKeeper's rules, and that it is not the ensemble's own.
///
/// The rules are those of ZooKeeper's `PathUtils`. It looks at UTF-16 units and refuses surrogates,
/// so every character above U+FFFF is refused here too.
///
/// # Errors
/// The first rule that the path breaks.
pub fn check(path: &str) -> Result<(), PathError> {
    check_form(path)?;
    match segments_of(path).next() {
        Some(RESERVED) => Err(PathError::Reserved),
        _ => Ok(()),
    }
}

/// An absolute path that keeps ZooKeeper's rules and is outside `/zookeeper`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZnodePath(String);

impl ZnodePath {
    /// The root of the ensemble.
    pub fn root() -> Self {
        ZnodePath("/".to_owned())
    }

    /// Takes an absolute path.
    ///
    /// # Errors
    /// As [`check`].
    pub fn parse(path: &str) -> Result<Self, PathError> {
        check(path)?;
        Ok(ZnodePath(path.to_owned()))
    }

    /// The path below this one that these components lead to; this path itself if there are none.
    ///
    /// # Errors
    /// The first rule that a component breaks; nothing outside this path can be named.
    pub fn join<'a>(
        &self,
        segments: impl IntoIterator<Item = &'a str>,
    ) -> Result<ZnodePath, PathError> {
        let mut joined = self.0.clone();
        for segment in segments {
            check_segment(segment)?;
            if joined == "/" {
                if segment == RESERVED {
                    return Err(PathError::Reserved);
                }
            } else {
                joined.push('/');
            }
            joined.push_str(segment);
        }
        Ok(ZnodePath(joined))
    }

    /// The path that `path`, absolute in itself, names when this path is its `/`.
    ///
    /// # Errors
    /// The first rule that `path` breaks; nothing outside this path can be named.
    pub fn resolve(&self, path: &str) -> Result<ZnodePath, PathError> {
        check_form(path)?;
        self.join(segments_of(path))
    }

    /// Whether `other` is this path or below it.
    pub fn contains(&self, other: &ZnodePath) -> bool {
        self.strip(other.as_str()).is_some()
    }

    /// The reverse of [`resolve`](Self::resolve): how a path of the ensemble is called when this
    /// path is `/`. None if it is not inside this path.
    pub fn strip<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = if self.0 == "/" { path } else { path.strip_prefix(self.0.as_str())? };
        match rest {
            "" => Some("/"),
            _ if rest.starts_with('/') => Some(rest),
            _ => None,
        }
    }

    /// The components, none for the root.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        segments_of(&self.0)
    }

    /// The path as ZooKeeper takes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ZnodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ZnodePath> for String {
    fn from(path: ZnodePath) -> Self {
        path.0
    }
}

impl FromStr for ZnodePath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        ZnodePath::parse(path)
    }
}

/// The rules that hold for every absolute path, in an ensemble or in a mount.
fn check_form(path: &str) -> Result<(), PathError> {
    let Some(below) = path.strip_prefix('/') else {
        return Err(PathError::NotAbsolute);
    };
    if below.is_empty() {
        return Ok(());
    }
    if below.ends_with('/') {
        return Err(PathError::TrailingSlash);
    }
    // Each component is preceded by one slash, the first one included.
    let mut begins = 1;
    for segment in below.split('/') {
        check_segment(segment).map_err(|error| match error {
            PathError::ForbiddenCharacter { character, at } => {
                PathError::ForbiddenCharacter { character, at: at + begins }
            }
            other => other,
        })?;
        begins += segment.len() + 1;
    }
    Ok(())
}

/// Checks one component of a path, which stands between two slashes.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_segment(segment: &str) -> Result<(), PathError> {
    match segment {
        "" => return Err(PathError::EmptyComponent),
        "." => return Err(PathError::RelativeComponent(".")),
        ".." => return Err(PathError::RelativeComponent("..")),
        _ if segment.contains('/') => {
            return Err(PathError::SlashInComponent(segment.to_owned()));
        }
        _ => {}
    }
    match segment.char_indices().find(|(_, character)| is_forbidden(*character)) {
        Some((at, character)) => Err(PathError::ForbiddenCharacter { character, at }),
        None => Ok(()),
    }
}

fn is_forbidden(character: char) -> bool {
    matches!(
        u32::from(character),
        0..=0x1F | 0x7F..=0x9F | 0xD800..=0xF8FF | 0xFFF0..=0xFFFF | 0x1_0000..
    )
}

fn segments_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

#[cfg(test)]
mod tests;
