//! The mapping, by examples and by round trips.

use proptest::prelude::*;
use serde_json::{Value, json};
use wasmtime::component::Val;

use super::reader::{read_fields, read_record};
use super::schema::{Side, answer_schema, error_schema, schema};
use super::writer::write;
use super::{EXACT, error_in_words};
use crate::guest::interface::Operation;
use crate::guest::value_type::{Case, Field, Label, Labels, RecordType, ValueType, VariantType};

fn record(fields: &[(&str, ValueType)]) -> RecordType {
    let field = |(name, ty): &(&str, ValueType)| Field {
        name: (*name).to_owned(),
        ty: ty.clone(),
        docs: None,
    };
    RecordType { name: None, docs: None, fields: fields.iter().map(field).collect() }
}

fn labels(names: &[&str]) -> Labels {
    let label = |name: &&str| Label { name: (*name).to_owned(), docs: None };
    Labels { name: None, docs: None, labels: names.iter().map(label).collect() }
}

fn variant(cases: &[(&str, Option<ValueType>)]) -> ValueType {
    let case = |(name, ty): &(&str, Option<ValueType>)| Case {
        name: (*name).to_owned(),
        ty: ty.clone(),
        docs: None,
    };
    let cases = cases.iter().map(case).collect();
    ValueType::Variant(VariantType { name: None, docs: None, cases })
}

fn list(element: ValueType) -> ValueType {
    ValueType::List(Box::new(element))
}

fn option(inner: ValueType) -> ValueType {
    ValueType::Option(Box::new(inner))
}

/// Reads one value and writes it again.
fn through(ty: &ValueType, json: &Value) -> Result<(Val, Value), String> {
    let fields = [("it", ty)];
    let mut values = read_fields(fields.into_iter(), &json!({ "it": json }))
        .map_err(|errors| errors.to_string())?;
    let value = values.remove(0);
    let written = write(ty, &value);
    Ok((value, written))
}

#[track_caller]
fn check(ty: &ValueType, json: &Value, expected: &Value) {
    let (_, written) = through(ty, json).unwrap();
    assert_eq!(&written, expected, "{json}");
}

#[track_caller]
fn check_refused(ty: &ValueType, json: &Value, expected: &str) {
    assert_eq!(through(ty, json).unwrap_err(), expected, "{json}");
}

#[test]
fn long_integers_are_numbers_as_far_as_every_reader_knows_them() {
    let exact = 1_u64 << 53;
    check(&ValueType::U64, &json!(exact), &json!(exact));
    check(&ValueType::U64, &json!(exact.to_string()), &json!(exact));
    check(&ValueType::U64, &json!(exact + 1), &json!("9007199254740993"));
    check(&ValueType::U64, &json!("18446744073709551615"), &json!("18446744073709551615"));
    check(&ValueType::S64, &json!(i64::MIN), &json!("-9223372036854775808"));
    check(&ValueType::S64, &json!("-9007199254740992"), &json!(-9_007_199_254_740_992_i64));
    check_refused(
        &ValueType::U64,
        &json!("18446744073709551616"),
        "it: expected a whole number from 0 to 18446744073709551615, got 18446744073709551616",
    );
    check_refused(
        &ValueType::S64,
        &json!(1e20),
        &format!(
            "it: expected a whole number from -9223372036854775808 to 9223372036854775807, got {}",
            json!(1e20)
        ),
    );
    check_refused(
        &ValueType::S32,
        &json!(1_u64 << 31),
        "it: expected a whole number from -2147483648 to 2147483647, got 2147483648",
    );
    check_refused(
        &ValueType::U64,
        &json!("0x10"),
        "it: expected a number or a decimal string, got a string",
    );
}

#[test]
fn numbers_out_of_range_or_not_whole_are_refused() {
    let expected = |got| format!("it: expected a whole number from 0 to 255, got {got}");
    for got in ["256", "-1", "1.5", "256.0"] {
        let json: Value = serde_json::from_str(got).unwrap();
        check_refused(&ValueType::U8, &json, &expected(got));
    }
    check_refused(&ValueType::U8, &json!("1"), "it: expected a number, got a string");
    check_refused(
        &ValueType::F32,
        &json!(1e300),
        &format!("it: expected a number that fits, got {}", 1e300),
    );
    check(&ValueType::F64, &json!("-inf"), &json!("-inf"));
    check(&ValueType::F32, &json!("nan"), &json!("nan"));
    // As a shell's word it is no JSON, and so a text.
    for text in ["NaN", "Infinity", "1e999x"] {
        let refused = through(&ValueType::F64, &json!(text)).unwrap_err();
        let told = "it: expected a number, got a string; JSON has no NaN and no infinity";
        assert!(refused.starts_with(told), "{refused}");
    }
}

#[test]
fn a_whole_number_is_one_however_it_is_written() {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for (written, number) in [("1.0", 1), ("1e2", 100), ("-0.0", 0)] {
        check(&ValueType::U8, &read(written), &json!(number));
        check(&ValueType::S64, &read(written), &json!(number));
    }
    let exact = 1_u64 << 53;
    check(&ValueType::U64, &read("9007199254740992.0"), &json!(exact));
    // A double has it as 9007199254740992, and so perhaps not as it was written.
    let refused = through(&ValueType::U64, &read("9007199254740994.0")).unwrap_err();
    assert!(refused.contains("from 0 to 18446744073709551615"), "{refused}");
}

#[test]
fn bytes_are_text_where_they_are_text() {
    let bytes = &ValueType::Bytes;
    check(bytes, &json!("Ω\n"), &json!("Ω\n"));
    check(bytes, &json!(""), &json!(""));
    check(bytes, &json!({"base64": "aGk="}), &json!("hi"));
    check(bytes, &json!({"base64": "/wA="}), &json!({"base64": "/wA="}));
    check(bytes, &json!("\u{0}"), &json!({"base64": "AA=="}));
    let refused = through(bytes, &json!({"base64": "?"})).unwrap_err();
    assert!(refused.starts_with("it: not base64: "), "{refused}");
    check_refused(bytes, &json!([1, 2]), "it: expected a string or {\"base64\": …}, got an array");
}

#[test]
fn cases_are_strings_or_objects_of_one_key() {
    let ty = variant(&[("forever", None), ("at-most", Some(ValueType::U32))]);
    check(&ty, &json!("forever"), &json!("forever"));
    check(&ty, &json!({"forever": null}), &json!("forever"));
    check(&ty, &json!({"at-most": 3}), &json!({"at-most": 3}));
    check_refused(&ty, &json!("at-most"), "it: at-most carries a number: write {\"at-most\": …}");
    check_refused(&ty, &json!({"forever": 1}), "it: forever carries nothing: write \"forever\"");
    check_refused(&ty, &json!({"at-most": "x"}), "it.at-most: expected a number, got a string");
    check_refused(&ty, &json!("for-ever"), "it: unknown case \"for-ever\"; did you mean forever?");
    let result = ValueType::Result { ok: Some(Box::new(ValueType::Bool)), err: None };
    check(&result, &json!({"ok": true}), &json!({"ok": true}));
    check(&result, &json!("err"), &json!("err"));
}

#[test]
fn records_are_ordered_and_completed_for_wasmtime() {
    let ty =
        record(&[("z", ValueType::U8), ("a", option(ValueType::String)), ("m", ValueType::Bool)]);
    let value = read_record(&ty, &json!({"m": true, "z": 1})).unwrap();
    let expected = Val::Record(vec![
        ("z".to_owned(), Val::U8(1)),
        ("a".to_owned(), Val::Option(None)),
        ("m".to_owned(), Val::Bool(true)),
    ]);
    assert_eq!(value, expected);
    assert_eq!(write(&ValueType::Record(ty), &value), json!({"z": 1, "m": true}));
}

#[test]
fn all_that_is_wrong_is_told_with_its_place() {
    let limit = record(&[("name", ValueType::U32), ("fair", ValueType::Bool)]);
    let ty = record(&[
        ("limits", list(ValueType::Record(limit))),
        ("revocable", ValueType::Bool),
        ("mode", ValueType::Enum(labels(&["read", "write"]))),
    ]);
    let json = json!({
        "limits": [{"name": 1, "fair": true}, {"name": "x", "fair": true}, {"fair": 1}],
        "revokable": true,
        "mode": "reed",
    });
    let errors = read_record(&ty, &json).unwrap_err().to_string();
    assert_eq!(
        errors,
        "limits[1].name: expected a number, got a string; \
         limits[2].name: missing; expected a number; \
         limits[2].fair: expected true or false, got a number; \
         revocable: missing; expected true or false; \
         mode: unknown name \"reed\"; did you mean read?; \
         revokable: unknown field; did you mean revocable?"
    );
}

#[test]
fn tuples_flags_and_characters_keep_to_their_shape() {
    let tuple = ValueType::Tuple(vec![ValueType::Bool, ValueType::Char]);
    check(&tuple, &json!([true, "é"]), &json!([true, "é"]));
    check_refused(&tuple, &json!([true]), "it: expected an array of 2 items, got 1");
    check_refused(
        &tuple,
        &json!([true, "ab"]),
        "it[1]: expected a string of one character, got a string",
    );
    let flags = ValueType::Flags(labels(&["a", "b"]));
    check(&flags, &json!(["b", "a", "b"]), &json!(["b", "a"]));
    check_refused(&flags, &json!(["c"]), "it[0]: unknown name \"c\"; did you mean a?");
}

#[test]
fn more_bytes_than_a_znode_can_have_are_refused_before_they_are_values() {
    let fits = "x".repeat(1_000_000);
    through(&ValueType::Bytes, &json!(fits)).unwrap();
    let refused = through(&ValueType::Bytes, &json!("x".repeat(2_000_000))).unwrap_err();
    assert!(refused.starts_with("it: too large"), "{refused}");
    let many = Value::Array(vec![json!(0); 1_100_000]);
    let refused = through(&list(ValueType::U16), &many).unwrap_err();
    assert!(refused.starts_with("it[1048"), "{refused}");
}

/// A type and JSON of it, as [`write`] would spell it.
fn typed_json() -> impl Strategy<Value = (ValueType, Value)> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(|it| (ValueType::Bool, json!(it))),
        any::<i8>().prop_map(|it| (ValueType::S8, json!(it))),
        any::<u32>().prop_map(|it| (ValueType::U32, json!(it))),
        any::<u64>().prop_map(|it| {
            let json = if it <= 1 << 53 { json!(it) } else { json!(it.to_string()) };
            (ValueType::U64, json)
        }),
        any::<f64>()
            .prop_filter("finite", |it| it.is_finite())
            .prop_map(|it| (ValueType::F64, json!(it))),
        any::<char>().prop_map(|it| (ValueType::Char, json!(it))),
        any::<String>().prop_map(|it| (ValueType::String, json!(it))),
        "[a-zé\n]{0,9}".prop_map(|it| (ValueType::Bytes, json!(it))),
        "[ab]".prop_map(|it| (ValueType::Enum(labels(&["a", "b"])), json!(it))),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| {
                let (types, json): (_, Vec<_>) = items.into_iter().unzip();
                (ValueType::Tuple(types), Value::Array(json))
            }),
            (inner.clone(), 0..3_usize).prop_map(|((ty, json), count)| {
                let ty = if ty == ValueType::U8 { ValueType::Bool } else { ty };
                (list(ty), Value::Array(vec![json; count]))
            }),
            (inner.clone(), any::<bool>()).prop_map(|((ty, json), some)| {
                match (some, &ty) {
                    (true, ValueType::Option(_)) => (option(ty), json!({ "some": json })),
                    (true, _) => (option(ty), json),
                    (false, _) => (option(ty), Value::Null),
                }
            }),
            (inner.clone(), inner.clone()).prop_map(|((a, first), (b, second))| {
                let ty = ValueType::Record(record(&[("first", a), ("second", b)]));
                let fields = [("first", first), ("second", second)];
                // As a missing field, which is how none is written.
                let fields = fields.into_iter().filter(|(_, json)| !json.is_null());
                (ty, fields.map(|(name, json)| (name.to_owned(), json)).collect())
            }),
            inner.prop_map(|(ty, json)| {
                (variant(&[("plain", None), ("full", Some(ty))]), json!({ "full": json }))
            }),
        ]
    })
}

/// Whether a schema, of the few words that ours use, takes a value.
fn takes(schema: &Value, json: &Value) -> bool {
    // `1.0` is an integer, too (JSON Schema core, section 4.2.3).
    let wide = |number: &Value| match number {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() <= EXACT as f64);
            number.map(|whole| whole as i128)
        }
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    };
    let is_type = |name: &Value| match (name.as_str().unwrap(), json) {
        ("null", Value::Null) | ("boolean", Value::Bool(_)) | ("string", Value::String(_)) => true,
        ("number", Value::Number(_)) => true,
        ("array", Value::Array(_)) | ("object", Value::Object(_)) => true,
        ("integer", number) => wide(number).is_some(),
        _ => false,
    };
    let length =
        || json.as_array().map_or_else(|| json.as_str().unwrap().chars().count(), Vec::len);
    schema.as_object().unwrap().iter().all(|(word, rule)| match word.as_str() {
        "type" => rule.as_array().map_or_else(|| is_type(rule), |any| any.iter().any(is_type)),
        "anyOf" => rule.as_array().unwrap().iter().any(|schema| takes(schema, json)),
        "const" => rule == json,
        "enum" => rule.as_array().unwrap().contains(json),
        // Only where the type is right: the other rules look at other types.
        "minimum" => wide(json).is_none_or(|number| number >= wide(rule).unwrap()),
        "maximum" => wide(json).is_none_or(|number| number <= wide(rule).unwrap()),
        "minLength" | "minItems" => {
            !(json.is_string() || json.is_array()) || length() >= rule.as_u64().unwrap() as usize
        }
        "maxLength" | "maxItems" => {
            !(json.is_string() || json.is_array()) || length() <= rule.as_u64().unwrap() as usize
        }
        "pattern" => json.as_str().is_none_or(|text| {
            let rule = rule.as_str().unwrap().strip_prefix('^').unwrap();
            let (rule, digits) = match rule.strip_prefix("-?") {
                Some(rule) => (rule, text.strip_prefix('-').unwrap_or(text)),
                None => (rule, text),
            };
            let counts = rule.strip_prefix("[0-9]{").unwrap().strip_suffix("}$").unwrap();
            let (least, most) = counts.split_once(',').unwrap();
            (least.parse().unwrap()..=most.parse().unwrap()).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        }),
        "items" => json.as_array().is_none_or(|all| all.iter().all(|it| takes(rule, it))),
        "prefixItems" => json.as_array().is_none_or(|all| {
            all.iter().zip(rule.as_array().unwrap()).all(|(it, schema)| takes(schema, it))
        }),
        "required" => json.as_object().is_none_or(|object| {
            rule.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap()))
        }),
        "properties" => json.as_object().is_none_or(|object| {
            object.iter().all(|(key, it)| rule.get(key).is_none_or(|schema| takes(schema, it)))
        }),
        "additionalProperties" => json
            .as_object()
            .is_none_or(|object| object.keys().all(|key| schema["properties"].get(key).is_some())),
        "description" | "title" | "contentEncoding" | "$schema" => true,
        other => panic!("{other}"),
    })
}

#[track_caller]
fn check_schema(ty: &ValueType, json: &Value) {
    assert_eq!(takes(&schema(Side::Read, ty), json), through(ty, json).is_ok(), "{json} as {ty:?}");
}

#[test]
fn the_schema_takes_at_the_bounds_what_the_reader_takes() {
    for ty in [
        ValueType::S8,
        ValueType::U8,
        ValueType::S16,
        ValueType::U16,
        ValueType::S32,
        ValueType::U32,
        ValueType::S64,
        ValueType::U64,
    ] {
        for bits in [7, 8, 15, 16, 31, 32, 63] {
            for number in [-(1_i128 << bits) - 1, -(1 << bits), (1 << bits) - 1, 1 << bits] {
                if let Ok(json) = serde_json::from_str::<Value>(&number.to_string())
                    && !json.is_f64()
                {
                    check_schema(&ty, &json);
                }
            }
        }
        check_schema(&ty, &json!(0));
        check_schema(&ty, &json!("12"));
        check_schema(&ty, &json!("x"));
    }
    check_schema(&ValueType::F64, &json!("inf"));
    check_schema(&ValueType::Char, &json!("ab"));
    check_schema(&ValueType::Bytes, &json!({ "base64": "AA==" }));
    check_schema(&ValueType::Bytes, &json!({ "base32": "AA==" }));
    let flags = ValueType::Flags(labels(&["a", "b"]));
    check_schema(&flags, &json!(["a", "b"]));
    check_schema(&flags, &json!(["c"]));
    let result = ValueType::Result { ok: None, err: Some(Box::new(ValueType::Bool)) };
    for json in [json!("ok"), json!("err"), json!({ "err": true }), json!({ "ok": true })] {
        check_schema(&result, &json);
    }
}

proptest! {
    #[test]
    fn the_schema_takes_what_the_reader_takes((ty, own) in typed_json(), (_, other) in typed_json()) {
        for json in [own, other] {
            prop_assert_eq!(takes(&schema(Side::Read, &ty), &json), through(&ty, &json).is_ok(), "{}", json);
        }
    }

    #[test]
    fn the_schema_of_answers_takes_what_is_written((ty, json) in typed_json(), (other, _) in typed_json()) {
        let (_, written) = through(&ty, &json).unwrap();
        prop_assert!(takes(&schema(Side::Written, &ty), &written), "{}", written);
        // It takes nothing that is of another type.
        if takes(&schema(Side::Written, &other), &written) {
            prop_assert!(through(&other, &written).is_ok(), "{} as {:?}", written, other);
        }
    }

    #[test]
    fn what_is_written_is_what_was_read((ty, json) in typed_json()) {
        let (value, written) = through(&ty, &json).unwrap();
        prop_assert_eq!(&written, &json);
        let (again, _) = through(&ty, &written).unwrap();
        prop_assert_eq!(again, value);
    }
}

#[test]
fn the_schema_of_answers_takes_one_spelling_of_a_value() {
    let check = |ty: &ValueType, json: Value| {
        let (_, written) = through(ty, &json).unwrap();
        let schema = schema(Side::Written, ty);
        assert!(takes(&schema, &written), "{written}");
        assert_eq!(takes(&schema, &json), written == json, "{json} is written as {written}");
    };
    let exact = 1_i64 << 53;
    for number in [0, exact, exact + 1, -exact, -exact - 1, i64::MIN, i64::MAX] {
        check(&ValueType::S64, json!(number));
    }
    for number in [0, 1 << 53, (1 << 53) + 1, u64::MAX] {
        check(&ValueType::U64, json!(number));
    }
    for ty in [ValueType::S64, ValueType::U64] {
        check(&ty, json!("0"));
        check(&ty, json!("9007199254740993"));
    }
    let ty = ValueType::Record(record(&[("a", option(ValueType::Bool)), ("b", ValueType::Bool)]));
    check(&ty, json!({ "b": true }));
    check(&ty, json!({ "a": null, "b": true }));
    check(&option(ValueType::Bool), Value::Null);
    check(&option(option(ValueType::Bool)), json!({ "some": null }));
}

#[test]
fn a_result_is_split_into_an_answer_and_an_error() {
    let of = |result: Option<ValueType>| {
        let operation =
            Operation { name: "ask".to_owned(), docs: None, parameters: Vec::new(), result };
        let bare = |mut schema: Value| {
            let dialect = schema.as_object_mut().unwrap().remove("$schema");
            assert!(dialect.is_some_and(|it| it.is_string()));
            schema
        };
        (bare(answer_schema(&operation)), error_schema(&operation).map(bare))
    };
    let (null, boolean) = (json!({ "type": "null" }), json!({ "type": "boolean" }));
    let some = || Some(Box::new(ValueType::Bool));
    assert_eq!(of(None), (null.clone(), None));
    assert_eq!(of(Some(ValueType::Bool)), (boolean.clone(), None));
    let result = |ok, err| Some(ValueType::Result { ok, err });
    assert_eq!(of(result(some(), None)), (boolean.clone(), Some(null.clone())));
    assert_eq!(of(result(None, some())), (null, Some(boolean)));
}

#[test]
fn an_error_in_words_names_its_case_and_its_text() {
    let of = |error: Value| error_in_words(&error).into_owned();
    assert_eq!(of(json!("late")), "late");
    assert!(of(json!("no-auth")).starts_with("no-auth: the ACL of a znode does not allow it"));
    assert!(of(json!("not-empty")).starts_with("not-empty: the znode there has children"));
    assert_eq!(of(json!({ "invalid": "release: not held" })), "invalid: release: not held");
    assert_eq!(of(json!({ "refused": { "code": -4 } })), r#"{"refused":{"code":-4}}"#);
    assert_eq!(of(json!({ "a": "b", "c": "d" })), r#"{"a":"b","c":"d"}"#);
}
