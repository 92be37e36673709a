"""Codex, interactive, in a terminal. Its sessions live in one server of its own per CODEX_HOME, which outlives the terminal."""

import time

from check import Job, check, figure, nothing_left, record, told_once
from lab import Lab, wait_for
from mock import Call, Model, Say

CONFIG = """
model = "gpt-mock"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"

[projects."{work}"]
trust_level = "trusted"
"""


class Codex:
    def __init__(self, name):
        self.lab = Lab(name)
        self.model = Model()
        self.lab.env["MOCK_KEY"] = "dummy"
        (self.lab.home / ".codex").mkdir()
        (self.lab.home / ".codex/config.toml").write_text(CONFIG.format(url=self.model.url, work=self.lab.work))
        # Its commands run in a login shell, which forgets PATH unless the user's profile says otherwise.
        (self.lab.home / ".profile").write_text(f"PATH={self.lab.env['PATH']}\n")
        self.lab.homing("install", "codex")
        self.trusted = False

    def start(self, name="codex", *arguments):
        terminal = self.lab.terminal(name, "codex", *arguments)
        if not self.trusted:
            # New hooks are for a person to trust, once.
            terminal.shows("Hooks need review")
            terminal.keys("Down")
            terminal.keys("Enter")
            self.trusted = True
        terminal.shows("? for shortcuts")
        wait_for("no questions", lambda: "Hooks need review" not in terminal.screen())
        time.sleep(1)  # The prompt is drawn before it is read.
        return terminal

    def thread(self, text):
        """The thread in whose turn the model was told `text`."""
        return wait_for(f"a turn with {text!r}", lambda: next((request.session for request in self.model.told(text)), None))

    def say(self, terminal, text):
        terminal.say(text, lambda: self.model.told(text))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lab.close()
        self.model.close()


def run_by_shell(job, *options):
    return Call("exec_command", {"cmd": f"homing run {' '.join([*options, '--'])} {job.line}"})


def run_by_mcp(job):
    return Call("run", {"command": job.line, "background": True, "notify_on_complete": True}, namespace="mcp__homing")


@check("codex")
def the_queue_wakes_an_idle_session():
    with Codex("queue") as codex:
        job = Job(codex.lab, "BUILD")
        codex.model.when("Build it", run_by_shell(job, "--notify", "wake"))
        codex.model.when(job.said, Say("The build is done."))
        terminal = codex.start()
        codex.say(terminal, "Build it in the background.")
        task = job.started(codex.lab)
        thread = codex.thread("Build it")
        assert task["owner"] == f"codex:{thread}", task["owner"]
        terminal.shows("Worked for")
        job.let_go()
        request = told_once(codex.lab, codex.model, job, thread)
        figure("Codex, `run --notify wake` by its queue", codex.lab, job, request)
        nothing_left(codex.lab, f"codex:{thread}")
        record("codex-wake", codex.lab, terminal.screen(), "What the model was told:", request.told)


@check("codex")
def a_tool_call_wakes_the_thread_that_made_it():
    with Codex("mcp") as codex:
        jobs = [Job(codex.lab, "RED"), Job(codex.lab, "BLUE")]
        for job in jobs:
            codex.model.when(f"Start {job.word}", run_by_mcp(job))
        threads = []
        for job in jobs:
            terminal = codex.start(job.word)
            codex.say(terminal, f"Start {job.word} now.")
            task = job.started(codex.lab)
            threads.append(codex.thread(f"Start {job.word}"))
            assert task["owner"] == f"codex:{threads[-1]}", task["owner"]
            terminal.shows("Worked for")
        assert threads[0] != threads[1]
        for job in reversed(jobs):
            job.let_go()
        for job, thread in zip(jobs, threads):
            told_once(codex.lab, codex.model, job, thread)
            nothing_left(codex.lab, f"codex:{thread}")


@check("codex")
def what_ends_within_a_turn_is_told_at_its_end():
    with Codex("stop") as codex:
        job = Job(codex.lab, "BUILD")
        job.let_go()
        codex.model.when("Build it", Call("exec_command", {"cmd": f"homing run -- {job.line}; sleep 2"}))
        terminal = codex.start()
        codex.say(terminal, "Build it.")
        thread = codex.thread("Build it")
        request = told_once(codex.lab, codex.model, job, thread)
        nothing_left(codex.lab, f"codex:{thread}")
        record("codex-stop", codex.lab, terminal.screen(), "What the model was told:", request.told)


@check("codex")
def a_command_in_codexs_sandbox_is_refused_with_the_reason():
    with Codex("sandbox") as codex:
        config = codex.lab.home / ".codex/config.toml"
        config.write_text(config.read_text().replace("danger-full-access", "workspace-write"))
        codex.lab.homing("daemon", "start")
        codex.model.when("Build it", Call("exec_command", {"cmd": "homing run -- true 2>&1"}))
        terminal = codex.start()
        codex.say(terminal, "Build it.")
        wait_for("the refusal", lambda: codex.model.told("HM00"), 60)
        record("codex-sandbox", codex.lab, terminal.screen(), "What the model was told:", codex.model.told("HM00")[0].told)


@check("codex")
def ask_gives_the_answer_of_a_sub_agent():
    with Codex("ask") as codex:
        codex.model.when("What is six times seven", Say("Forty-two."))
        done = codex.lab.homing("ask", "--agent", "codex", "--wait", "What is six times seven?")
        assert done.stdout.strip() == "Forty-two.", done.stdout
