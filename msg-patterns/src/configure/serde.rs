//! Settings in files: a table of names and values.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Settings;

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByName)
    }
}

impl Serialize for Settings {
    /// Numbers and switches as such, everything else as text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.iter() {
            let number = value.parse::<i64>().ok().filter(|number| number.to_string() == value);
            match (number, value.parse::<bool>()) {
                (Some(number), _) => map.serialize_entry(name, &number)?,
                (_, Ok(switch)) => map.serialize_entry(name, &switch)?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

struct ByName;

impl<'de> Visitor<'de> for ByName {
    type Value = Settings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings by name, such as hwm = 1000")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
        let mut settings = Settings::new();
        while let Some(name) = map.next_key::<String>()? {
            let Text(value) = map.next_value()?;
            settings.add(&name, &value).map_err(A::Error::custom)?;
        }
        Ok(settings)
    }
}

/// A value as it would be written in an address.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AsText)
    }
}

struct AsText;

impl Visitor<'_> for AsText {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a whole number, true or false")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    fn visit_bool<E>(self, switch: bool) -> Result<Text, E> {
        Ok(Text(switch.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, ErrorKind, Linger, Pub, Req};

    fn read(text: &str) -> Result<Settings, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn a_file_and_an_address_mean_the_same() {
        let file =
            "hwm = 500\nlinger = \"5s\"\nimmediate = true\nhwm_bytes = \"64KiB\"\nbusy_poll = 0\n";
        let address = "hwm=500&linger=5s&immediate=true&hwm_bytes=64KiB&busy_poll=0";
        assert_eq!(read(file).unwrap(), address.parse().unwrap());
    }

    #[test]
    fn mistakes_are_refused_where_they_stand() {
        let refusal = read("hwm = 500\nlingr = \"5s\"\n").unwrap_err().to_string();
        assert!(refusal.contains("unknown setting `lingr`: did you mean `linger`?"), "{refusal}");
        for (file, why) in [
            ("hwm = -1", "`-1` is no hwm: write a whole number"),
            ("hwm = 1.5", "expected a text, a whole number, true or false"),
            ("linger = true", "`true` is no linger"),
        ] {
            let refusal = read(file).unwrap_err().to_string();
            assert!(refusal.contains(why), "{refusal}");
        }
    }

    #[test]
    fn settings_stand_in_the_files_of_services() {
        #[derive(serde::Deserialize)]
        struct Service {
            bind: String,
            #[serde(default)]
            socket: Settings,
        }
        let service: Service =
            toml::from_str("bind = \"tcp://127.0.0.1:0\"\n[socket]\nhistory = 3\n").unwrap();
        let publisher = Pub::builder().settings(&service.socket).unwrap().build(&Context::new());
        publisher.unwrap().bind(&service.bind).unwrap();
        let refused = Req::builder().settings(&service.socket).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }

    #[test]
    fn what_is_written_to_a_file_is_read_back() {
        let builder = Pub::builder()
            .linger(Linger::No)
            .history(3)
            .conflate(true)
            .identity("007")
            .heartbeat_interval(std::time::Duration::from_millis(1500));
        let settings = builder.to_settings();
        let json = serde_json::to_string(&settings).unwrap();
        assert_eq!(
            json,
            r#"{"conflate":true,"heartbeat_interval":"1500ms","history":3,"identity":"007","linger":"no"}"#
        );
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
    }
}
