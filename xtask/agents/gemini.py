"""Gemini CLI, headless; and interactive, in tmux, which is the only thing that wakes it while it is idle."""

import json

import common
from agent import Agent, Conversation
from check import Job, check, nothing_left, record, told_once, waiting
from lab import wait_for
from mock import Call, Fail, Say


class Gemini(Agent):
    name = "gemini"

    def prepare(self):
        # The key and the address are all that it needs; a model by name, or it asks a model which to ask.
        self.lab.env.update({"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": self.model.url, "GEMINI_MODEL": "gemini-2.5-pro",
                             "GEMINI_CLI_TRUST_WORKSPACE": "true"})
        (self.lab.home / ".gemini").mkdir()
        (self.lab.home / ".gemini/settings.json").write_text(json.dumps({
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True},
        }))

    def shell(self, line):
        return Call("run_shell_command", {"command": line, "description": "a job in the background"})

    def by_mcp(self, job):
        return Call("mcp_homing_run", {"command": str(job.script), "background": True, "notify_on_complete": True})

    def headless(self, text, *arguments):
        return self.lab.run("gemini", "--yolo", "--output-format", "stream-json", *arguments, "-p", text)

    def open(self, *arguments, asks=False, **options):
        terminal = self.lab.terminal(self.window(), "gemini", *([] if asks else ["--yolo"]), *arguments, **options)
        terminal.shows("Type your message")
        return Talk(self, terminal)

    def files(self):
        return [self.lab.home / ".gemini/settings.json", self.lab.home / ".gemini/skills/homing/SKILL.md"]


def session_of(done):
    """The session that a headless run says it is in."""
    return json.loads(done.stdout.splitlines()[0])["session_id"]


class Talk(Conversation):
    def idle(self):
        """It says nowhere that it has time, but on its screen."""
        wait_for("the prompt", lambda: "esc to cancel" not in self.terminal.screen() and "Type your message" in self.terminal.screen())


@check
def what_ends_within_a_turn_is_told_at_its_end():
    with Gemini() as gemini:
        gemini.lab.homing("daemon", "start")  # A hook never starts one, and it is a hook that says which session this is.
        job = Job(gemini.lab, "BUILD")
        job.let_go()
        gemini.model.when("Build it", gemini.by_mcp(job))
        gemini.model.when("t-", gemini.shell("sleep 2"))
        gemini.model.when(job.said, Say("The build is done."))
        done = gemini.headless("Build it.")
        session = session_of(done)
        task = job.started()
        assert task["owner"] == f"gemini:{session}", task["owner"]
        # Its requests name no session; there is only one.
        request = told_once(gemini.model, job, None)
        nothing_left(gemini.lab, f"gemini:{session}")
        record("gemini-stop", gemini.lab, done.stdout, "What the model was told:", request.told)


@check
def what_ended_while_nobody_was_there_is_told_when_the_session_goes_on():
    with Gemini() as gemini:
        gemini.lab.homing("daemon", "start")
        job = Job(gemini.lab, "BUILD")
        gemini.model.when("Start BUILD", gemini.by_mcp(job))
        session = session_of(gemini.headless("Start BUILD in the background."))
        job.ends()
        assert len(waiting(gemini.lab, f"gemini:{session}")) == 1, "it waits in the inbox"
        again = session_of(gemini.headless("How did it go?", "--resume", session))
        assert again == session, f"{session} went on as {again}"
        told_once(gemini.model, job, None)
        nothing_left(gemini.lab, f"gemini:{session}")


@check
def in_tmux_a_line_is_typed_into_its_pane_and_into_no_other_program():
    with Gemini(install=False) as gemini:
        gemini.configure("[wake]\ntmux = true\n")
        conversation = gemini.open(tells_pane=True)
        common.typed_into_its_pane(gemini, conversation, lambda job: job.task()["owner"])
        record("gemini-tmux", gemini.lab, conversation.seen())
        conversation.idle()
        common.never_typed_into_another_program(gemini, conversation)


@check
def in_tmux_nothing_is_typed_into_a_dialog_or_a_draft():
    with Gemini(install=False) as gemini:
        gemini.configure("[wake]\ntmux = true\n")
        conversation = gemini.open(asks=True, tells_pane=True)
        common.typed_only_into_an_empty_prompt(gemini, conversation, gemini.shell, "Allow once", ["Escape"])


@check
def what_ended_while_nobody_was_there_is_told_with_the_next_prompt_of_a_resumed_terminal():
    with Gemini() as gemini:
        gemini.lab.homing("daemon", "start")
        job = Job(gemini.lab, "BUILD")
        gemini.model.when("Start BUILD", gemini.by_mcp(job))
        conversation = gemini.open()
        conversation.say("Start BUILD in the background.")
        owner = job.started()["owner"]
        conversation.idle()
        conversation.kill()
        job.ends()
        assert len(waiting(gemini.lab, owner)) == 1, "it waits in the inbox"
        again = gemini.open("--resume", owner.split(":")[1])
        again.idle()
        assert not gemini.model.told(job.said)
        assert len(waiting(gemini.lab, owner)) == 1, "a hook that reaches no model takes nothing"
        again.say("How did it go?")
        told_once(gemini.model, job, None)
        nothing_left(gemini.lab, owner)


@check
def a_turn_that_failed_acknowledges_nothing():
    with Gemini() as gemini:
        gemini.lab.homing("daemon", "start")
        job = Job(gemini.lab, "BUILD")
        gemini.model.when("Start BUILD", gemini.by_mcp(job))
        conversation = gemini.open()
        conversation.say("Start BUILD in the background.")
        owner = job.started()["owner"]
        conversation.idle()
        job.ends()
        gemini.model.when("How did it go?", Fail(400, "a request that this model refuses"))
        conversation.say("How did it go?")
        conversation.idle()
        assert gemini.model.told(job.said), "the request that failed had it"
        wait_for("the entry again", lambda: waiting(gemini.lab, owner))
        conversation.kill()
        again = gemini.open("--resume", owner.split(":")[1])
        again.idle()
        again.say("Say on.")
        request = gemini.model.told("Say on.")[0]
        assert request.told.count(job.said) == 1, request.told
        nothing_left(gemini.lab, owner)


@check
def a_turn_that_fails_after_it_went_on_acknowledges_nothing():
    with Gemini() as gemini:
        gemini.lab.homing("daemon", "start")
        job = Job(gemini.lab, "BUILD")
        job.let_go()
        gemini.model.when("Build it", gemini.by_mcp(job))
        gemini.model.when("t-", gemini.shell("sleep 2"))
        gemini.model.when(job.said, Fail(400, "a request that this model refuses"))
        conversation = gemini.open()
        conversation.say("Build it.")
        owner = job.started()["owner"]
        wait_for("the result", lambda: gemini.model.told(job.said))
        conversation.idle()
        wait_for("the entry again", lambda: waiting(gemini.lab, owner), deadline=20)
        conversation.say("Say on.")
        request = gemini.model.told("Say on.")[0]
        assert request.told.count(job.said) == 1, request.told
        nothing_left(gemini.lab, owner)


@check
def its_tools_work_over_http():
    with Gemini(install=False) as gemini:
        url, token = gemini.lab.listen()
        settings = gemini.lab.home / ".gemini/settings.json"
        server = {"httpUrl": url, "headers": {"Authorization": f"Bearer {token}"}, "trust": True}
        settings.write_text(json.dumps({**json.loads(settings.read_text()), "mcpServers": {"homing": server}}))
        job = Job(gemini.lab, "BUILD")
        job.let_go()
        gemini.model.when("Build it", Call("mcp_homing_run", {"command": str(job.script)}))
        gemini.headless("Build it.")
        told_once(gemini.model, job, None)


@check
def install_and_uninstall_leave_its_files_as_they_were():
    with Gemini(install=False) as gemini:
        common.comes_and_goes(gemini, lambda word: gemini.headless(f"Hello {word}."))


@check
def ask_gives_the_answer_of_a_sub_agent():
    with Gemini() as gemini:
        common.asks(gemini)
