//! Server-sent events, parsed from chunks that may be cut anywhere.

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    /// The last `id:` seen, here or before.
    pub(crate) id: String,
    /// `event:`; empty if absent.
    pub(crate) name: String,
    /// The `data:` lines.
    pub(crate) data: String,
}

/// The state between chunks.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    after_cr: bool,
    id: String,
    name: String,
    data: Option<String>,
}

impl Parser {
    /// Takes a chunk; gives the events that it completes.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<Message> {
        let mut messages = Vec::new();
        for &byte in chunk {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    messages.extend(self.line(&String::from_utf8_lossy(&line)));
                }
                _ => self.line.push(byte),
            }
        }
        messages
    }

    fn line(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            let data = self.data.take()?;
            return Some(Message { id: self.id.clone(), name, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => value.clone_into(&mut self.id),
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // Comments keep the connection alive; other fields are not for us.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] =
        "id: 7\ndata: {\"a\":1}\n\n: beat\n\nevent: reset\r\nid: 9\r\ndata: x\r\ndata:  é\r\n\r\ndata\n\nid: 10\n".as_bytes();

    fn expected() -> Vec<Message> {
        let message = |id: &str, name: &str, data: &str| Message {
            id: id.into(),
            name: name.into(),
            data: data.into(),
        };
        vec![message("7", "", "{\"a\":1}"), message("9", "reset", "x\n é"), message("9", "", "")]
    }

    #[test]
    fn events_are_the_same_wherever_the_chunks_are_cut() {
        assert_eq!(Parser::default().push(STREAM), expected());
        for cut in 0..STREAM.len() {
            let mut parser = Parser::default();
            let mut seen = parser.push(&STREAM[..cut]);
            seen.extend(parser.push(&STREAM[cut..]));
            assert_eq!(seen, expected(), "cut at {cut}");
        }
        let mut parser = Parser::default();
        let seen: Vec<_> = STREAM.iter().flat_map(|byte| parser.push(&[*byte])).collect();
        assert_eq!(seen, expected());
    }

    #[test]
    fn an_event_without_its_blank_line_is_not_handed_over() {
        assert_eq!(Parser::default().push(b"id: 1\ndata: half"), []);
    }
}
