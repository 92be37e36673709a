//! Query strings: what a route does not know is refused by name, so that a misspelt filter never means "all".

use std::time::Duration;

use axum::extract::Query as Pairs;
use axum::http::Uri;

use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};

/// The longest wait that is counted; a longer one is asked for again by whoever lives to see it.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// The parameters of one request, each known and well formed.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads and checks the query of an address.
    pub(crate) fn parse(uri: &Uri, known: &[Parameter]) -> Result<Self, Refusal> {
        let Pairs(pairs) = Pairs::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Refusal::invalid(format!("the query cannot be read: {error}")))?;
        for (index, (name, value)) in pairs.iter().enumerate() {
            let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
                return Err(Refusal::invalid(unknown(name, known)));
            };
            check(parameter, value)?;
            if !parameter.repeated && pairs.iter().take(index).any(|(earlier, _)| earlier == name) {
                return Err(Refusal::invalid(format!("`{name}` is given twice")));
            }
        }
        Ok(Self(pairs))
    }

    /// Every value of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A number that was checked.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// A flag that was checked.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name)?.parse().ok()
    }

    /// A number of milliseconds.
    pub(crate) fn millis(&self, name: &str) -> Option<Duration> {
        self.number(name).map(|millis| Duration::from_millis(millis).min(LONGEST))
    }

    /// Words separated by commas, each read as a `T`.
    pub(crate) fn words<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Vec<T>, Refusal> {
        let words = self.text(name).into_iter().flat_map(|text| text.split(',')).map(str::trim);
        words
            .map(|word| word.parse().map_err(|error| Refusal::invalid(format!("`{name}`: {error}"))))
            .collect()
    }
}

fn unknown(name: &str, known: &[Parameter]) -> String {
    let names: Vec<_> = known.iter().map(|parameter| format!("`{}`", parameter.name)).collect();
    match names.as_slice() {
        [] => format!("`{name}` is not a parameter here: there are none"),
        names => format!("`{name}` is not a parameter here; there are {}", names.join(", ")),
    }
}

fn check(parameter: &Parameter, value: &str) -> Result<(), Refusal> {
    let name = parameter.name;
    // An empty filter would mean "all" to one reader and "none" to another.
    if value.is_empty() {
        return Err(Refusal::invalid(format!("`{name}` is empty: give it a value, or leave it out")));
    }
    let expected = match parameter.kind {
        Kind::Words if value.split(',').any(|word| word.trim().is_empty()) => {
            "words with one comma between them".to_owned()
        }
        Kind::Text | Kind::Words => return Ok(()),
        Kind::OneOf(words) if words.contains(&value) => return Ok(()),
        Kind::OneOf(words) => words.join(" or "),
        Kind::Flag if matches!(value, "true" | "false") => return Ok(()),
        Kind::Flag => "true or false".to_owned(),
        Kind::Number { least, most } => match value.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => return Ok(()),
            Ok(_) | Err(_) if most == u64::MAX => format!("a whole number from {least} on"),
            Ok(_) | Err(_) => format!("a whole number from {least} to {most}"),
        },
    };
    Err(Refusal::invalid(format!("`{name}` is `{value}`, but must be {expected}")))
}

#[cfg(test)]
mod tests {
    use homing_model::Status;

    use super::*;

    const KNOWN: &[Parameter] = &[
        Parameter::new("owner", Kind::Text, ""),
        Parameter::new("limit", Kind::Number { least: 1, most: 1000 }, ""),
        Parameter::new("offset", Kind::ANY_NUMBER, ""),
        Parameter::new("follow", Kind::Flag, ""),
        Parameter::new("mode", Kind::OneOf(&["all", "any"]), ""),
        Parameter::new("status", Kind::Words, ""),
        Parameter::new("label", Kind::Text, "").repeated(),
    ];

    fn parse(query: &str) -> Result<Query, String> {
        let uri = format!("/v1/tasks?{query}").parse().unwrap();
        Query::parse(&uri, KNOWN).map_err(|refusal| refusal.problem().detail.clone())
    }

    #[test]
    fn what_is_known_is_read() {
        let query =
            parse("owner=a%20b+c&limit=7&follow=false&label=a%3Db&label=c=d&status=running%2Clost&mode=any");
        let query = query.unwrap();
        assert_eq!(query.text("owner"), Some("a b c"));
        assert_eq!((query.number("limit"), query.flag("follow")), (Some(7), Some(false)));
        assert_eq!(query.all("label").collect::<Vec<_>>(), ["a=b", "c=d"]);
        assert_eq!(query.words::<Status>("status").unwrap(), [Status::Running, Status::Lost]);
    }

    #[test]
    fn an_empty_value_is_refused_by_name() {
        for name in ["owner", "limit", "offset", "follow", "mode", "status", "label"] {
            for query in [format!("{name}="), name.to_owned()] {
                let detail = parse(&query).unwrap_err();
                assert!(detail.contains(&format!("`{name}` is empty")), "{query}: {detail}");
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let cases = [
            ("statsu=lost", "statsu"),
            ("nonsense=", "nonsense"),
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("limit=-1", "limit"),
            ("offset=18446744073709551616", "offset"),
            ("follow=yes", "follow"),
            ("mode=some", "mode"),
            ("owner=a&owner=b", "owner"),
            ("status=,", "`status` is `,`"),
            ("status=running,,lost", "`status`"),
            ("status=%20", "`status`"),
        ];
        for (query, named) in cases {
            let detail = parse(query).unwrap_err();
            assert!(detail.contains(named), "{query}: {detail}");
        }
        let refusal = parse("status=running,asleep").unwrap().words::<Status>("status").unwrap_err();
        assert!(refusal.problem().detail.contains("asleep"));
    }

    #[test]
    fn a_wait_of_ages_does_not_overflow() {
        let uri = "/?wait_ms=18446744073709551615".parse().unwrap();
        let query = Query::parse(&uri, &[Parameter::new("wait_ms", Kind::ANY_NUMBER, "")]).unwrap();
        assert_eq!(query.millis("wait_ms"), Some(LONGEST));
    }
}
