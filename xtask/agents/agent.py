"""An agent program in a lab of its own, and a conversation with it: what the agents have in common.

Each agent says how it is set up (`prepare`), how a conversation is opened (`open`, `resume`) and how its shell is called (`shell`); a
conversation says how it is spoken to, and when it has time. The checks that go for several agents are written in these words alone.
"""

import os
import signal

from lab import Lab, wait_for
from mock import Model


class Agent:
    name = None  # as homing calls it

    def __init__(self, install=True, beside=None):
        """`beside`: in the lab of another agent, with the same model."""
        self.lab = beside.lab if beside else Lab(self.name)
        self.model = beside.model if beside else Model()
        self.opened = 0
        self.prepare()
        if install:
            self.lab.homing("install", self.name)

    def prepare(self):
        raise NotImplementedError

    def shell(self, line):
        """A call of its shell tool."""
        raise NotImplementedError

    def by_shell(self, job, *options):
        return self.shell(f"homing run {' '.join([*options, '--'])} {job.line}")

    def by_wake(self, job):
        return self.by_shell(job, "--notify", "wake")

    def window(self):
        """A name for one more terminal."""
        self.opened += 1
        return f"{self.name}-{self.opened}"

    def configure(self, text):
        """What is to stand in homing's config.toml, before its daemon runs."""
        folder = self.lab.folder / "homing"
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "config.toml").write_text(text)

    def files(self):
        """The files that `homing install` writes into."""
        raise NotImplementedError

    def same(self, _, then, now):
        """Whether a file of it is as it was, after a session. Some agents write into theirs themselves."""
        return then == now

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if failure:
            try:
                print(f"   kept in {self.lab.keep(self.model.requests)}", flush=True)
            except Exception as error:  # The failure itself matters more.
                print(f"   nothing could be kept: {error}", flush=True)
        self.lab.close()
        self.model.close()


class Conversation:
    """One session of an agent; `session` is the agent's own id of it."""

    def __init__(self, agent, terminal=None, session=None):
        self.agent, self.terminal, self.session = agent, terminal, session

    @property
    def owner(self):
        return f"{self.agent.name}:{self.session}"

    def say(self, text):
        """Sends a prompt, and returns once the model was told."""
        self.terminal.say(text, lambda: self.agent.model.told(text))

    def idle(self):
        """Returns once nothing is under way. From then on its session is known."""
        raise NotImplementedError

    def seen(self):
        """What a person sees of it."""
        return self.terminal.screen()

    def kill(self):
        """Ends the program, with -9."""
        pid = self.terminal.pid()
        os.kill(pid, signal.SIGKILL)
        wait_for(f"the end of process {pid}", lambda: not is_running(pid))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False

