//! The guest's heap: as few touched pages as can be, since a host may keep thousands of guests that
//! only wait.
//!
//! The allocator that Rust brings along begins at a fresh 64 KiB and marks both of its ends.
//! This one begins right behind the data, and grows by what the machine counts memory in.

#![allow(unsafe_code, reason = "an allocator's source of memory")]

use core::alloc::Layout;
use core::arch::wasm32::{memory_grow, memory_size};
use core::ptr::NonNull;

use talc::base::Talc;
use talc::base::binning::Binning;
use talc::cell::TalcSyncCell;
use talc::min_first_heap_size;
use talc::source::Source;
use talc::wasm::WasmBinning;

#[global_allocator]
static HEAP: TalcSyncCell<BehindTheData, WasmBinning> =
    TalcSyncCell::new_wasm(BehindTheData { end: None });

/// A page of WebAssembly's memory.
const WASM_PAGE: usize = 64 << 10;
/// A page of the machine's.
const PAGE: usize = 4 << 10;
/// What the allocator adds to one allocation, at most: its tags, and the rounding at both ends.
const OVERHEAD: usize = 64;

unsafe extern "C" {
    /// Where the linker's data end. Only its address means anything.
    static __heap_base: u8;
}

/// One heap, from the end of the data on.
#[derive(Debug)]
struct BehindTheData {
    /// Where it ends so far.
    end: Option<NonNull<u8>>,
}

// SAFETY: allocates nothing, and leaves the allocator that calls it alone otherwise.
unsafe impl Source for BehindTheData {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let end = talc.source.end;
        let begin = end.map_or(&raw const __heap_base as usize, |end| end.as_ptr() as usize);
        let first = if end.is_none() { min_first_heap_size::<B>() } else { 0 };
        let wanted = layout.size().checked_add(layout.align()).ok_or(())?;
        let wanted = wanted.checked_add(first + OVERHEAD).ok_or(())?;
        let wanted = begin.checked_add(wanted).ok_or(())?;
        let new_end = wanted.checked_next_multiple_of(PAGE).ok_or(())?;
        let missing = new_end.saturating_sub(memory_size::<0>() * WASM_PAGE);
        if missing > 0 && memory_grow::<0>(missing.div_ceil(WASM_PAGE)) == usize::MAX {
            return Err(());
        }
        let new_end = new_end as *mut u8;
        talc.source.end = match end {
            // SAFETY: nobody else grows the memory or uses what is behind the data, and all of it
            // up to the new end is there.
            Some(end) => Some(unsafe { talc.extend(end, new_end) }),
            // SAFETY: the same.
            None => unsafe { talc.claim(begin as *mut u8, new_end as usize - begin) },
        };
        talc.source.end.map(|_| ()).ok_or(())
    }
}
