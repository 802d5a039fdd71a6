//! Puts items in.

use wok_sdk::time_and_chance::random_u64;
use wok_sdk::zookeeper::{CreateMode, CreateRequest, Error, Write};

use crate::decide::Layout;
use crate::marked::{self, Unmade};
use crate::place;

/// As long as an item may be: whoever takes it writes it once more, with more beside it than who put it
/// in, and a request has 900 KiB.
const MOST_BYTES: usize = 800 << 10;

/// Puts the items in at the end, all or none. The counter that the server appends says where that is, and
/// one transaction gives out counters without a gap.
pub(crate) fn put(items: Vec<Vec<u8>>, layout: Layout) -> Result<(), Error> {
    if let Some(long) = items.iter().map(Vec::len).find(|length| *length > MOST_BYTES) {
        return Err(Error::Invalid(format!(
            "put: an item of {long} bytes, and {MOST_BYTES} are the most: keep it elsewhere and put \
             its address here"
        )));
    }
    let create = |data| {
        let path = place::item(&layout.stem(&uuid()));
        Write::Create(CreateRequest { path, data, mode: CreateMode::PersistentSequential })
    };
    let writes: Vec<Write> = items.into_iter().map(create).collect();
    loop {
        match marked::write(&writes) {
            Ok(()) => return Ok(()),
            // Nobody has put anything in yet, or the server has removed what nobody used.
            Err(Unmade::Part(_, Error::NoNode)) => place::furnish()?,
            Err(unmade) => return Err(unmade.error()),
        }
    }
}

/// A fresh UUID, of the random kind.
fn uuid() -> String {
    let (high, low) = (random_u64(), random_u64());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}
