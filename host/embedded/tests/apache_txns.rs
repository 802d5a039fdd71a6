//! Txns as a server of Apache ZooKeeper 3.8.0 wrote them to its log.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use wok_embedded::jute::{Reader, Writer};
use wok_embedded::txn::{Txn, TxnHeader};

/// Header and record, without the digest that follows most of them in the log, one for each kind.
const TXNS: [(i32, &str); 13] = [
    (
        -11,
        "0100003571a20000000000580000000000000027000001a1fee424ecfffffff50000000100000003 \
         2f6531",
    ),
    (-10, "0100003571a20000000000000000000000000001000001a1fee40c6cfffffff600002710"),
    (-1, "0100003571a200000000000d0000000000000008000001a1fee4244cffffffffffffff85"),
    (
        1,
        "0100003571a200110000001800000000000000a8000001a1fee4381100000001000000042f657068 \
         00000000000000010000001f00000005776f726c6400000006616e796f6e650100000010",
    ),
    (2, "0100003571a2000900000006000000000000002e000001a1fee4263a00000002000000042f736563"),
    (
        5,
        "0100003571a20000000000410000000000000018000001a1fee424bb00000005000000012f000000 \
         017200000001",
    ),
    (
        7,
        "0100003571a2000900000003000000000000002c000001a1fee4262f00000007000000042f736563 \
         000000010000001f000000066469676573740000001e643a7156555a524331722f6b474f6b4e4450 \
         77644f583746636e4677553d00000001",
    ),
    (
        13,
        "0100003571a20002000000010000000000000004000001a1fee40cbb0000000d000000012f000000 \
         01",
    ),
    (
        14,
        "0100003571a20008000000740000000000000089000001a1fee426f00000000e0000000200000015 \
         00000035000000062f6d2f74746c00000000000000010000001f00000005776f726c640000000661 \
         6e796f6e65000000030000000000989680000000130000002b000000042f6d2f6300000000000000 \
         010000001f00000005776f726c6400000006616e796f6e6500000004",
    ),
    (
        15,
        "0100003571a20008000000100000000000000037000001a1fee426560000000f000000032f743600 \
         000000000000010000001f00000005776f726c6400000006616e796f6e650000000009",
    ),
    (
        19,
        "0100003571a20008000000110000000000000038000001a1fee4265a00000013000000032f743700 \
         000000000000010000001f00000005776f726c6400000006616e796f6e650000000a",
    ),
    (20, "0000000000000000000000000000000000000097000001a1fee427eb00000014000000022f74"),
    (
        21,
        "0100003571a200080000000c0000000000000033000001a1fee4264d00000015000000022f740000 \
         0000000000010000001f00000005776f726c6400000006616e796f6e650000000800000000000000 \
         64",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn apaches_txns_are_read_and_written_byte_for_byte() {
    for (kind, hex) in TXNS {
        let bytes = bytes(hex);
        let mut reader = Reader::new(&bytes);
        let header = TxnHeader::decode(&mut reader).unwrap();
        assert_eq!(header.op.code(), kind);
        let txn = Txn::decode(header.op, &mut reader).unwrap();
        assert!(reader.is_empty(), "{kind}: {txn:?}");
        let mut writer = Writer::new();
        header.encode(&mut writer);
        txn.encode(&mut writer);
        assert_eq!(writer.finish(), bytes, "{kind}: {txn:?}");
    }
}
