"""Claude Code, interactive, in a terminal."""

import json
import os
import signal

from check import Job, check, figure, nothing_left, record, told_once
from lab import Lab, wait_for
from mock import Call, Model, Say

KEY = "sk-ant-dummy-0123456789abcdefghij"


class Claude:
    def __init__(self, name, install=True):
        self.lab = Lab(name)
        self.model = Model()
        lab = self.lab
        lab.env.update({"ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": KEY})
        (lab.home / ".claude").mkdir()
        # What a person has answered before: no questions at the first start.
        (lab.home / ".claude.json").write_text(json.dumps({
            "hasCompletedOnboarding": True, "theme": "dark", "hasSeenAutoDefaultNudge": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(lab.work): {"hasTrustDialogAccepted": True}},
        }))
        allowed = {"permissions": {"defaultMode": "acceptEdits", "allow": ["Bash", "mcp__homing"]}}
        (lab.home / ".claude/settings.json").write_text(json.dumps(allowed))
        if install:
            lab.homing("install", "claude")

    def start(self, name="claude", *arguments):
        terminal = self.lab.terminal(name, "claude", *arguments)
        terminal.shows("accept edits on")
        return terminal

    def sessions(self):
        """What runs, as Claude Code itself says it: one file per process."""
        found = []
        for path in (self.lab.home / ".claude/sessions").glob("*.json"):
            try:
                found.append(json.loads(path.read_text()))
            except (OSError, ValueError):
                pass
        return [each for each in found if os.path.exists(f"/proc/{each['pid']}")]

    def session(self, terminal):
        pid = terminal.pid()
        return wait_for("a session", lambda: next((each["sessionId"] for each in self.sessions() if each["pid"] == pid), None))

    def idle(self, terminal):
        pid = terminal.pid()
        wait_for("an idle session", lambda: any(each["pid"] == pid and each["status"] == "idle" for each in self.sessions()))

    def say(self, terminal, text):
        terminal.say(text, lambda: self.model.told(text))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lab.close()
        self.model.close()


def run_by_mcp(job):
    return Call("mcp__homing__run", {"command": job.line, "background": True, "notify_on_complete": True})


def run_by_shell(job, *options):
    return Call("Bash", {"command": f"homing run {' '.join([*options, '--'])} {job.line}", "description": "a job in the background"})


@check("claude")
def an_mcp_task_starts_a_new_turn_with_the_result():
    with Claude("mcp") as claude:
        job = Job(claude.lab, "BUILD")
        claude.model.when("Build it", run_by_mcp(job))
        claude.model.when(job.said, Say("The build is done."))
        terminal = claude.start()
        claude.say(terminal, "Build it in the background.")
        job.started(claude.lab)
        claude.idle(terminal)
        session = claude.session(terminal)
        job.let_go()
        request = told_once(claude.lab, claude.model, job, session)
        figure("Claude Code, MCP task", claude.lab, job, request)
        nothing_left(claude.lab, f"claude:{session}")
        record("claude-mcp", claude.lab, terminal.screen(), "What the model was told:", request.told)


@check("claude")
def an_mcp_task_outlives_kill_9_and_is_told_after_continue():
    with Claude("kill") as claude:
        job = Job(claude.lab, "BUILD")
        claude.model.when("Build it", run_by_mcp(job))
        terminal = claude.start()
        claude.say(terminal, "Build it in the background.")
        job.started(claude.lab)
        claude.idle(terminal)
        session = claude.session(terminal)
        os.kill(terminal.pid(), signal.SIGKILL)
        again = claude.start("again", "--continue")
        wait_for("the same session", lambda: claude.session(again) == session)
        job.let_go()
        request = told_once(claude.lab, claude.model, job, session)
        nothing_left(claude.lab, f"claude:{session}")
        record("claude-continue", claude.lab, again.screen(), "What the model was told:", request.told)


@check("claude")
def an_mcp_task_that_ends_while_nobody_is_there_is_told_after_continue():
    with Claude("gone") as claude:
        job = Job(claude.lab, "BUILD")
        claude.model.when("Build it", run_by_mcp(job))
        terminal = claude.start()
        claude.say(terminal, "Build it in the background.")
        job.started(claude.lab)
        claude.idle(terminal)
        session = claude.session(terminal)
        os.kill(terminal.pid(), signal.SIGKILL)
        job.let_go()
        wait_for("the end of the task", lambda: job.task(claude.lab)["ended_at"])
        claude.start("again", "--continue")
        told_once(claude.lab, claude.model, job, session)
        nothing_left(claude.lab, f"claude:{session}")


@check("claude")
def an_mcp_task_outlives_kill_9_of_the_daemon():
    with Claude("daemon") as claude:
        job = Job(claude.lab, "BUILD")
        claude.model.when("Build it", run_by_mcp(job))
        terminal = claude.start()
        claude.say(terminal, "Build it in the background.")
        job.started(claude.lab)
        claude.idle(terminal)
        session = claude.session(terminal)
        os.kill(claude.lab.homing_json("status")["daemon"]["pid"], signal.SIGKILL)
        job.let_go()
        told_once(claude.lab, claude.model, job, session)
        nothing_left(claude.lab, f"claude:{session}")


@check("claude")
def a_command_of_the_shell_wakes_an_idle_session():
    with Claude("wake") as claude:
        job = Job(claude.lab, "BUILD")
        claude.model.when("Build it", run_by_shell(job, "--notify", "wake"))
        terminal = claude.start()
        claude.say(terminal, "Build it in the background.")
        job.started(claude.lab)
        claude.idle(terminal)
        session = claude.session(terminal)
        job.let_go()
        request = told_once(claude.lab, claude.model, job, session)
        figure("Claude Code, `run --notify wake`", claude.lab, job, request)
        nothing_left(claude.lab, f"claude:{session}")
        record("claude-wake", claude.lab, terminal.screen(), "What the model was told:", request.told)


@check("claude")
def what_ends_within_a_turn_is_told_at_its_end():
    with Claude("stop") as claude:
        job = Job(claude.lab, "BUILD")
        job.let_go()
        claude.model.when("Build it", Call("Bash", {"command": f"homing run -- {job.line}; sleep 2", "description": "d"}))
        terminal = claude.start()
        claude.say(terminal, "Build it.")
        job.started(claude.lab)
        session = claude.session(terminal)
        request = told_once(claude.lab, claude.model, job, session)
        nothing_left(claude.lab, f"claude:{session}")
        record("claude-stop", claude.lab, terminal.screen(), "What the model was told:", request.told)


@check("claude")
def what_ended_while_nobody_was_there_is_told_with_the_next_prompt():
    with Claude("resume") as claude:
        job = Job(claude.lab, "BUILD")
        claude.model.when("Build it", run_by_shell(job))
        terminal = claude.start()
        claude.say(terminal, "Build it in the background.")
        job.started(claude.lab)
        claude.idle(terminal)
        session = claude.session(terminal)
        os.kill(terminal.pid(), signal.SIGKILL)
        job.let_go()
        wait_for("the end of the task", lambda: job.task(claude.lab)["ended_at"])
        again = claude.start("again", "--continue")
        claude.say(again, "How did it go?")
        told_once(claude.lab, claude.model, job, session)
        nothing_left(claude.lab, f"claude:{session}")


@check("claude")
def two_sessions_in_one_folder_get_their_own_results():
    with Claude("two") as claude:
        jobs = [Job(claude.lab, "RED"), Job(claude.lab, "BLUE")]
        claude.model.when("Start RED", run_by_mcp(jobs[0]))
        claude.model.when("Start BLUE", run_by_shell(jobs[1], "--notify", "wake"))
        terminals = [claude.start("red"), claude.start("blue")]
        for terminal, job in zip(terminals, jobs):
            claude.say(terminal, f"Start {job.word} now.")
            job.started(claude.lab)
        for terminal in terminals:
            claude.idle(terminal)
        sessions = [claude.session(terminal) for terminal in terminals]
        assert sessions[0] != sessions[1]
        for job in reversed(jobs):
            job.let_go()
        for job, session in zip(jobs, sessions):
            told_once(claude.lab, claude.model, job, session)
            nothing_left(claude.lab, f"claude:{session}")


@check("claude")
def after_clear_a_result_stays_with_the_conversation_that_asked():
    with Claude("clear") as claude:
        first, second = Job(claude.lab, "FIRST"), Job(claude.lab, "SECOND")
        claude.model.when("Start FIRST", run_by_shell(first, "--notify", "wake"))
        claude.model.when("Start SECOND", Call("mcp__homing__run", {"command": second.line, "background": True, "notify_on_complete": True}))
        terminal = claude.start()
        claude.say(terminal, "Start FIRST now.")
        first.started(claude.lab)
        claude.idle(terminal)
        before = claude.session(terminal)
        terminal.say("/clear")
        wait_for("another session", lambda: claude.session(terminal) != before)
        after = claude.session(terminal)
        first.let_go()
        wait_for("the end of the task", lambda: first.task(claude.lab)["ended_at"])
        claude.say(terminal, "Start SECOND now.")
        task = second.started(claude.lab)
        assert task["owner"] == f"claude:{after}", f"an MCP call after /clear is {task['owner']}'s, not claude:{after}'s"
        claude.idle(terminal)
        second.let_go()
        told_once(claude.lab, claude.model, second, after)
        strays = [request.told for request in claude.model.told(first.said) if request.session == after]
        assert not strays, f"the old conversation's result came into the new one:\n{strays[0]}"
        left = claude.lab.homing_json("inbox", "--owner", f"claude:{before}")["items"]
        assert len(left) == 1, "the result of a conversation that is gone waits in its inbox"


@check("claude")
def ask_gives_the_answer_of_a_sub_agent():
    with Claude("ask") as claude:
        claude.model.when("What is six times seven", Say("Forty-two."))
        done = claude.lab.homing("ask", "--agent", "claude", "--wait", "What is six times seven?")
        assert done.stdout.strip() == "Forty-two.", done.stdout
        record("claude-ask", claude.lab, f"$ homing ask --agent claude --wait 'What is six times seven?'\n{done.stdout}")
