//! What a component holds handles to.

/// Values at small numbers, which are used again once they are free.
///
/// A component never sees the numbers: wasmtime's handle tables stand before them.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(number as usize)
        {
            *slot = Some(value);
            return number;
        }
        // Most components have one, and there may be thousands of them.
        if self.slots.is_empty() {
            self.slots.reserve_exact(1);
        }
        self.slots.push(Some(value));
        u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(value)
    }

    /// In the order of their numbers.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_number_is_gone_and_then_used_again() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.remove(a), Some('a'));
        assert_eq!((slab.remove(a), slab.len()), (None, 1));
        assert_eq!(slab.get_mut(a), None);
        assert_eq!(slab.insert('c'), a);
        assert_eq!(slab.get_mut(b).copied(), Some('b'));
        assert_eq!(slab.len(), 2);
    }
}
