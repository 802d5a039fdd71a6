//! Custom sections: what `wok build` appends to a component, and anybody else may.

/// The last custom section of that name at the top level of a component.
pub fn custom_section<'a>(component: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut rest = component.get(8..)?;
    let mut found = None;
    while let Some((&id, after_id)) = rest.split_first() {
        let (length, body) = leb128(after_id)?;
        let (content, next) = body.split_at_checked(length)?;
        rest = next;
        if id != 0 {
            continue;
        }
        let (length, named) = leb128(content)?;
        let (found_name, content) = named.split_at_checked(length)?;
        if found_name == name.as_bytes() {
            found = Some(content);
        }
    }
    found
}

fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, bytes.get(index + 1..)?));
        }
    }
    None
}
