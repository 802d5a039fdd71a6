//! JSON in which no key of an object is given twice. RFC 8259 §4 leaves open which of the two counts,
//! and programs differ, so wok takes neither.

use std::fmt::{Formatter, Result as Written};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A value, and none of its objects has a key twice.
pub(crate) struct Unambiguous(pub(crate) Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Unambiguous)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Written {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number that is none"))?;
        Ok(number.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unambiguous(value)) = sequence.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let Unambiguous(value) = map.next_value()?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is given twice")));
            }
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        let read = serde_json::from_str(text).map(|Unambiguous(value)| value);
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn all_values_are_read_as_they_are() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,0.5,"\u00e9"],"b":{"a":{}}}"#;
        assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(read("7").unwrap(), Value::from(7));
    }

    #[test]
    fn a_key_that_is_given_twice_is_named_with_its_place() {
        for (text, key) in [
            (r#"{"call":"acquire","call":"release"}"#, "call"),
            (r#"{"call":{"put":{"data":"a","\u0064ata":"b"}}}"#, "data"),
            (r#"[{"a":1,"a":1}]"#, "a"),
        ] {
            let error = read(text).unwrap_err();
            let told = format!("the key \"{key}\" is given twice at line 1 column ");
            assert!(error.contains(&told), "{error}");
        }
    }

    #[test]
    fn what_is_no_json_is_not_read() {
        for text in ["", "{", "[1,]", "{\"a\":1}}", "nul", &"[".repeat(1_000)] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
