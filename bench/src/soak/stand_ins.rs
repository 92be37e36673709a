//! Programs that stand in for agents: what the soak's sessions are woken by, and what it asks. None of them is the real thing; each keeps
//! what it was told beside homing's books, and says by whom.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use homing_testkit::Home;

/// Where they are, and where they keep what they heard.
#[derive(Debug)]
pub(crate) struct StandIns {
    pub(crate) bin: PathBuf,
    pub(crate) heard: PathBuf,
}

/// Keeps a text with the processes that brought it: the waker, and its shim. Whole or not at all.
const KEEP: &str = r#"keep() {
  read -r _ _ _ shim _ < /proc/$PPID/stat; d="$heard/part.$$"
  { echo "$PPID ${shim:-0}"; cat; } > "$d" && mv "$d" "$heard/wake.$1.$$.$(date +%s%N)"
}
"#;

/// One in eight is refused, as by an agent that is overloaded; what is refused was not heard.
const REFUSE: &str = "[ $((RANDOM % 8)) -ne 0 ] || { echo overloaded >&2; exit 1; }\n";

const CODEX: &str = r#"case $1 in
  --version) echo codex-cli 0.166.0;;
  queue) refuse; printf '%s\n' "$5" | keep "codex-$3"; echo "Queued message for $3.";;
  *) exit 9;;
esac
"#;

const CLAUDE: &str = r#"case $1 in
  --version) echo '2.1.325 (Claude Code)';;
  -p) refuse; keep "claude-$3"; printf '{"type":"result","is_error":false,"session_id":"%s","result":"ok"}\n' "$3";;
  *) exit 9;;
esac
"#;

/// The agent that is asked: its prompt says which number, with what code it ends, and how long it thinks. What it says last is half a line.
const ASKED: &str = r#"read -r n code pause
t="$truth/$n"
echo "$HOMING_ATTEMPT $$ $(date +%s%N)" >> "$t"
echo "{\"session_id\":\"s-$n\"}"
echo "{\"result\":\"part of $n\"}"
sleep "$pause"
echo "{\"result\":\"answer of $n\"}"
printf '{"result":"hal'
echo "$HOMING_ATTEMPT $(date +%s%N) $code end" >> "$t"
exit "$code"
"#;

impl StandIns {
    /// Makes them.
    pub(crate) fn new(home: &Home, truth: &Path) -> Result<Self> {
        let (bin, heard) = (home.scratch().join("bin"), home.scratch().join("heard"));
        std::fs::create_dir(&bin)?;
        std::fs::create_dir(&heard)?;
        let head = format!("#!/bin/bash\nheard='{}'\ntruth='{}'\n", heard.display(), truth.display());
        let refuse = format!("refuse() {{\n{REFUSE}}}\n");
        for (name, script) in [("codex", CODEX), ("claude", CLAUDE), ("stand", ASKED)] {
            let path = bin.join(name);
            std::fs::write(&path, format!("{head}{KEEP}{refuse}{script}"))?;
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755))?;
        }
        Ok(Self { bin, heard })
    }

    /// What the home's configuration says of the agent that is asked.
    pub(crate) fn config(&self) -> String {
        let program = self.bin.join("stand");
        format!(
            "[agents.stand]\nargv = [\"{}\"]\nanswer = \"/result\"\nsession = \"/session_id\"\n",
            program.display()
        )
    }

    /// The path of a session that has them.
    pub(crate) fn path(&self) -> String {
        format!("{}:/usr/local/bin:/usr/bin:/bin", self.bin.display())
    }
}
