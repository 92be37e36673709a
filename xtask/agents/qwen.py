"""Qwen Code, headless; and interactive, where a message to its inbox socket starts a turn."""

import json
import os
import signal

import common
from agent import Agent, Conversation, is_running
from check import Job, check, nothing_left, record, told_once
from lab import wait_for
from mock import Call, Say


class Qwen(Agent):
    name = "qwen"

    def prepare(self):
        self.lab.env.update({"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": f"{self.model.url}/v1", "OPENAI_MODEL": "mock",
                             "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"})
        (self.lab.home / ".qwen").mkdir()
        (self.lab.home / ".qwen/settings.json").write_text(json.dumps({
            "security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True},
            # A session that applies actions without asking (--yolo) holds messages for its user otherwise.
            "agents": {"crossSessionInbound": "accept"},
        }))

    def shell(self, line):
        return Call("run_shell_command", {"command": line, "description": "a job in the background", "is_background": False})

    def headless(self, text, *arguments):
        return self.lab.run("qwen", "--yolo", "--output-format", "stream-json", *arguments, "-p", text)

    def open(self, *arguments, **options):
        terminal = self.lab.terminal(self.window(), "qwen", "--yolo", *arguments, **options)
        terminal.shows("Type your message")
        return Talk(self, terminal)

    def resume(self, conversation):
        return self.open("--resume", conversation.session)

    def sessions(self):
        """What its processes say of themselves, by process."""
        records = [json.loads(path.read_text()) for path in (self.lab.home / ".qwen/sessions").glob("*.json")]
        return {each["pid"]: each["sessionId"] for each in records}

    def files(self):
        return [self.lab.home / ".qwen/settings.json", self.lab.home / ".qwen/skills/homing/SKILL.md"]


class Talk(Conversation):
    def idle(self):
        """It says nowhere that it has time, but on its screen."""
        wait_for("the prompt", lambda: "esc to cancel" not in self.terminal.screen() and "Type your message" in self.terminal.screen())
        self.session = wait_for("its record", lambda: next(iter(self.agent.sessions().values()), None))

    def kill(self):
        """The program in the terminal is a launcher: the session is in a process of its own."""
        for pid in self.agent.sessions():
            os.kill(pid, signal.SIGKILL)
            wait_for(f"the end of process {pid}", lambda: not is_running(pid))
        for path in (self.agent.lab.home / ".qwen/sessions").glob("*.json"):
            path.unlink()


def comes_home(conversation, job):
    """Its requests name no session; there is only one."""
    owner = job.task()["owner"]
    assert owner == conversation.owner, f"{job.word} is {owner}'s, and {conversation.owner} started it"
    request = told_once(conversation.agent.model, job, None)
    nothing_left(conversation.agent.lab, owner)
    return request


@check
def what_ends_within_a_turn_is_told_at_its_end():
    with Qwen() as qwen:
        job = Job(qwen.lab, "BUILD")
        job.let_go()
        qwen.model.when("Build it", qwen.shell(f"homing run -- {job.line}; until homing show @last | grep -q '^  ended '; do sleep 0.1; done"))
        qwen.model.when(job.said, Say("The build is done."))
        done = qwen.headless("Build it.")
        session = json.loads(done.stdout.splitlines()[0])["session_id"]
        assert job.started()["owner"] == f"qwen:{session}", job.started()["owner"]
        request = told_once(qwen.model, job, None)
        nothing_left(qwen.lab, f"qwen:{session}")
        record("qwen-stop", qwen.lab, done.stdout, "What the model was told:", request.told)


@check
def a_job_that_ends_while_the_session_is_idle_starts_a_turn():
    with Qwen() as qwen:
        conversation = qwen.open()
        job = Job(qwen.lab, "BUILD")
        qwen.model.when("Start BUILD", qwen.by_wake(job))
        conversation.say("Start BUILD in the background.")
        job.started()
        conversation.idle()
        job.let_go()
        request = comes_home(conversation, job)
        record("qwen-wake", qwen.lab, conversation.seen(), "What the model was told:", request.told)


@check
def what_ended_while_nobody_was_there_is_told_when_the_session_goes_on():
    with Qwen() as qwen:
        conversation = qwen.open()
        job = Job(qwen.lab, "BUILD")
        qwen.model.when("Start BUILD", qwen.by_wake(job))
        conversation.say("Start BUILD in the background.")
        job.started()
        conversation.idle()
        conversation.kill()
        job.ends()
        again = qwen.resume(conversation)
        again.idle()
        if not qwen.model.told(job.said):
            again.say("How did it go?")
        comes_home(again, job)


@check
def a_sub_agent_answers():
    with Qwen(install=False) as qwen:
        common.asks(qwen)


@check
def what_is_installed_goes_again():
    def use(word):
        assert "ok" in qwen.headless(f"Say {word}.").stdout

    with Qwen(install=False) as qwen:
        common.comes_and_goes(qwen, use)
