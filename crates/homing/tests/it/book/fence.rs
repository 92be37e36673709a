//! The fenced blocks of a page.

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    /// The line that opens it, counted from 1.
    pub(super) line: usize,
    /// The first word behind the backticks.
    pub(super) language: String,
    /// What follows it there.
    pub(super) mark: String,
    /// What is inside, with its last line feed.
    pub(super) text: String,
}

/// What is done with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Treatment<'a> {
    /// Run, each line must succeed; in need of a program, perhaps.
    Script(Option<&'a str>),
    /// Run, and what is printed compared.
    Session(Option<&'a str>),
    /// Written to this file.
    File(&'a str),
    /// Checked as a configuration.
    Configuration,
    /// Not run, for this reason.
    Unrun(&'a str),
    /// No sample: a picture, an answer, a piece of something.
    Shown,
}

impl Fence {
    /// What is done with it; panics where it does not say.
    pub(super) fn treatment(&self, page: &str) -> Treatment<'_> {
        let place = format!("{page}:{}", self.line);
        if let Some(reason) = self.mark.strip_prefix("no-run:") {
            assert!(reason.trim().len() > 5, "{place}: `no-run:` says why");
            return Treatment::Unrun(reason.trim());
        }
        let needs = self.mark.strip_prefix("needs:").map(str::trim);
        match self.language.as_str() {
            _ if needs.is_none() && !self.mark.is_empty() => {
                assert!(!self.mark.contains(' '), "{place}: `{}` is no mark and no file", self.mark);
                Treatment::File(&self.mark)
            }
            "sh" | "console" => {
                if self.language == "sh" {
                    Treatment::Script(needs)
                } else {
                    Treatment::Session(needs)
                }
            }
            "bash" | "shell" | "zsh" => panic!("{place}: commands are marked `sh` or `console`"),
            "toml" => Treatment::Configuration,
            "python" | "ts" | "js" => panic!("{place}: a sample names its file, or says `no-run: …`"),
            _ => Treatment::Shown,
        }
    }
}

/// Every fenced block, in order.
pub(super) fn all(text: &str) -> Vec<Fence> {
    let mut found = Vec::new();
    let mut open: Option<Fence> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(fence), Some("")) => {
                found.push(std::mem::replace(fence, nothing()));
                open = None;
            }
            (Some(fence), _) => {
                fence.text.push_str(line);
                fence.text.push('\n');
            }
            (None, Some(info)) => {
                assert!(!info.contains('`'), "with a backtick behind it, this opens nothing: {line}");
                let (language, mark) = info.split_once(' ').unwrap_or((info, ""));
                let (language, mark) = (language.to_owned(), mark.trim().to_owned());
                open = Some(Fence { line: number + 1, language, mark, text: String::new() });
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed: {open:?}");
    found
}

fn nothing() -> Fence {
    Fence { line: 0, language: String::new(), mark: String::new(), text: String::new() }
}

#[test]
fn a_page_falls_into_its_fences() {
    let page =
        "# Page\n```sh\ntrue\n```\ntext\n```python a.py\nprint()\n```\n```sh no-run: needs systemd\nx\n```\n";
    let fences = all(page);
    let treated: Vec<_> = fences.iter().map(|fence| fence.treatment("page")).collect();
    assert_eq!(
        treated,
        [Treatment::Script(None), Treatment::File("a.py"), Treatment::Unrun("needs systemd")]
    );
    assert_eq!((fences[1].line, fences[1].text.as_str()), (6, "print()\n"));
}
