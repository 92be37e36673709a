//! Text from the operating system, which need not be UTF-8.
//!
//! Arguments, paths and environment values are bytes to Linux. In JSON they are plain strings where they are UTF-8, and
//! `{"base64": "…"}` where they are not, so that nothing is lost on the way and nothing is guessed.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hint::black_box;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

/// Bytes that are usually text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OsText(Vec<u8>);

impl OsText {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, owned.
    #[must_use]
    pub fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    /// For the operating system.
    #[must_use]
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// For people: invalid bytes replaced.
    #[must_use]
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it holds a NUL, which no argument, path or variable can.
    #[must_use]
    pub fn has_nul(&self) -> bool {
        self.0.contains(&0)
    }
}

/// It may be a secret: nothing of it stays in memory.
impl Drop for OsText {
    fn drop(&mut self) {
        self.0.fill(0);
        // Without a reader the compiler would leave the writing out.
        black_box(&self.0);
    }
}

impl From<&str> for OsText {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<String> for OsText {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<OsString> for OsText {
    fn from(text: OsString) -> Self {
        Self(text.into_vec())
    }
}

impl From<Vec<u8>> for OsText {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for OsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.lossy(), f)
    }
}

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(&self.0) {
            serializer.serialize_str(text)
        } else {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry("base64", &STANDARD.encode(&self.0))?;
            map.end()
        }
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = OsText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or {\"base64\": …} for bytes that are not UTF-8")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<OsText, E> {
        Ok(text.into())
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<OsText, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OsText, A::Error> {
        let Some((key, value)) = map.next_entry::<String, String>()? else {
            return Err(de::Error::missing_field("base64"));
        };
        if key != "base64" {
            return Err(de::Error::unknown_field(&key, &["base64"]));
        }
        STANDARD.decode(value).map(OsText).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

impl JsonSchema for OsText {
    fn schema_name() -> Cow<'static, str> {
        "OsText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Text, or base64 where the bytes are not UTF-8.",
            "oneOf": [
                { "type": "string" },
                { "type": "object", "required": ["base64"], "additionalProperties": false,
                  "properties": { "base64": { "type": "string" } } }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_survive_json(bytes: Vec<u8>) {
            let text = OsText::from(bytes);
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<OsText>(&json).unwrap(), text);
        }
    }

    #[test]
    fn utf8_is_a_plain_string() {
        assert_eq!(serde_json::to_string(&OsText::from("grüß")).unwrap(), "\"grüß\"");
    }
}
