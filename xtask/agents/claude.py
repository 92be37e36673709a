"""Claude Code: interactive, in a terminal; and headless, by `claude -p`."""

import json
import os
import time

import common
from agent import Agent, Conversation
from check import Job, begin, belongs, check, comes_home, figure, nothing_left, record, record_turn, told_once, waiting
from lab import wait_for
from mock import Call, Say

KEY = "sk-ant-dummy-0123456789abcdefghij"
TALKS = "accept edits on"


class Claude(Agent):
    name = "claude"

    def prepare(self):
        lab = self.lab
        lab.env.update({"ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": KEY})
        (lab.home / ".claude").mkdir()
        # What a person has answered before: no questions at the first start.
        (lab.home / ".claude.json").write_text(json.dumps({
            "hasCompletedOnboarding": True, "theme": "dark", "hasSeenAutoDefaultNudge": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(lab.work): {"hasTrustDialogAccepted": True}},
        }))
        self.set()

    def set(self, **settings):
        """Its settings: what is always so, and these."""
        allowed = {"permissions": {"defaultMode": "acceptEdits", "allow": ["Bash", "mcp__homing"]}}
        (self.lab.home / ".claude/settings.json").write_text(json.dumps({**allowed, **settings}))

    def keeps_its_key(self):
        """Key and address are in its settings, as for people who have logged in: homing keeps no variables of a session."""
        self.set(env={"ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": KEY})

    def shell(self, line):
        return Call("Bash", {"command": line, "description": "a job in the background"})

    def by_mcp(self, job):
        return Call("mcp__homing__run", {"command": str(job.script), "background": True, "notify_on_complete": True})

    def open(self, *arguments, shows=TALKS, **options):
        terminal = self.lab.terminal(self.window(), "claude", *arguments, **options)
        terminal.shows(shows)
        return Talk(self, terminal)

    def resume(self, conversation):
        again = self.open("--resume", conversation.session)
        wait_for("the same session", lambda: again.now() == conversation.session)
        again.session = conversation.session
        return again

    def headless(self, text, *arguments):
        """One prompt to `claude -p`; returns the session."""
        done = self.lab.run("claude", "-p", "--output-format", "json", *arguments, text)
        return json.loads(done.stdout)["session_id"]

    def sessions(self):
        """What runs, as Claude Code itself says it: one file per process."""
        found = []
        for path in (self.lab.home / ".claude/sessions").glob("*.json"):
            try:
                found.append(json.loads(path.read_text()))
            except (OSError, ValueError):
                pass
        return [each for each in found if os.path.exists(f"/proc/{each['pid']}")]

    def files(self):
        home = self.lab.home
        return [home / ".claude.json", home / ".claude/settings.json", home / ".claude/skills/homing/SKILL.md"]

    def same(self, path, then, now):
        """Into `.claude.json` Claude Code writes at each start, counters and times: what stood there before, and no server, has to be there."""
        if path.name != ".claude.json":
            return then == now
        then, now = json.loads(then), json.loads(now)
        kept = ("hasCompletedOnboarding", "theme", "customApiKeyResponses", "userID", "mcpServers")
        return [then.get(key) for key in kept] == [now.get(key) for key in kept] and then.keys() <= now.keys()


class Talk(Conversation):
    def entry(self):
        pid = self.terminal.pid()
        return next((each for each in self.agent.sessions() if each["pid"] == pid), {})

    def now(self):
        """The session that it is in now."""
        return wait_for("a session", lambda: self.entry().get("sessionId"))

    def idle(self):
        wait_for("an idle session", lambda: self.entry().get("status") == "idle")
        self.session = self.now()


def killed_while_it_runs(claude):
    """A conversation that was killed after it started a job by MCP."""
    conversation = claude.open()
    job = begin(conversation, claude.by_mcp)
    conversation.kill()
    return conversation, job


@check
def an_mcp_task_starts_a_new_turn_with_the_result():
    with Claude() as claude:
        common.wakes_an_idle_session(claude, claude.by_mcp, "Claude Code, MCP task", "claude-mcp")


@check
def an_mcp_task_outlives_kill_9_and_is_told_after_continue():
    with Claude() as claude:
        conversation, job = killed_while_it_runs(claude)
        again = claude.open("--continue")
        wait_for("the same session", lambda: again.now() == conversation.session)
        job.let_go()
        request = comes_home(conversation, job)
        record_turn("claude-continue", again, request)


@check
def an_mcp_task_that_ends_while_nobody_is_there_is_told_after_continue():
    with Claude() as claude:
        conversation, job = killed_while_it_runs(claude)
        job.ends()
        claude.open("--continue")
        comes_home(conversation, job)


@check
def an_mcp_task_outlives_kill_9_of_the_daemon():
    with Claude() as claude:
        conversation = claude.open()
        job = begin(conversation, claude.by_mcp)
        claude.lab.kill_daemon()
        job.let_go()
        comes_home(conversation, job)


@check
def an_mcp_task_over_http_starts_a_new_turn_with_the_result():
    with Claude(install=False) as claude:
        url, token = claude.lab.listen()
        claude.lab.run("claude", "mcp", "add", "--scope", "user", "--transport", "http", "homing", url, "--header", f"Authorization: Bearer {token}")
        conversation = claude.open()
        job = begin(conversation, claude.by_mcp)
        assert job.task()["owner"] == "user", "over HTTP nobody says which session asks"
        job.let_go()
        # It polls the task by itself; so it comes to the conversation that has it, whoever its owner is.
        told_once(claude.model, job, conversation.session)


@check
def a_command_of_the_shell_wakes_an_idle_session():
    with Claude() as claude:
        conversation = claude.open()
        claude.model.when("BUILD-IS-DONE", Say("The build is done."))
        job = begin(conversation)
        # The hook that waits comes a moment after the end of the turn; until then it would be the inbox socket.
        wait_for("the waiter", lambda: claude.lab.get(f"/v1/sessions/{conversation.owner}")["waiter"])
        job.let_go()
        request = comes_home(conversation, job)
        assert "another Claude session" not in request.told, request.told
        figure("Claude Code, `run --notify wake`, by its hook", job, request)
        record_turn("claude-wake", conversation, request)


@check
def without_hooks_the_inbox_socket_wakes_an_idle_session():
    with Claude(install=False) as claude:
        _, job = common.wakes_an_idle_session(claude, name="Claude Code, `run --notify wake`, by its inbox socket", file="claude-socket")
        [delivery] = job.deliveries()
        assert delivery["attempts"] == 1 and "inbox socket" in delivery["history"][0]["result"], delivery


@check
def without_hooks_a_busy_session_is_told_after_its_turn_and_costs_no_attempt():
    with Claude(install=False) as claude:
        conversation = claude.open()
        job = begin(conversation)
        gate = claude.lab.folder / "end-the-turn"
        claude.model.when("Work on", claude.shell(f"while [ ! -e {gate} ]; do sleep 0.1; done"))
        conversation.say("Work on.")
        wait_for("a busy session", lambda: conversation.entry().get("status") != "idle")
        job.ends()
        job.delivery(lambda each: "middle of a turn" in (each["reason"] or "") and each["attempts"] == 0)
        assert not claude.model.told(job.said)
        gate.touch()
        comes_home(conversation, job)
        assert [each["attempts"] for each in job.deliveries()] == [1]


@check
def without_hooks_a_message_that_its_user_has_to_let_through_costs_no_attempt_until_then():
    with Claude(install=False) as claude:
        claude.lab.env["IS_SANDBOX"] = "1"  # As root it bypasses permissions in a sandbox only.
        claude.set(skipDangerousModePermissionPrompt=True)
        conversation = claude.open("--dangerously-skip-permissions", shows="bypass permissions on")
        job = begin(conversation)
        job.let_go()
        conversation.terminal.shows("Deliver this message to Claude")
        time.sleep(20)  # Longer than an idle session is given to take it up.
        assert (conversation.seen().count("Held peer message"), job.deliveries()[0]["attempts"]) == (1, 0)
        conversation.terminal.presses("Down", "the second choice", lambda screen: "❯ Deliver this message" in screen)
        conversation.terminal.presses("Enter", "no more questions", lambda screen: "Deny" not in screen)
        comes_home(conversation, job)
        assert [each["attempts"] for each in job.deliveries()] == [1]


@check
def without_hooks_nothing_is_said_to_a_session_that_takes_no_messages():
    with Claude(install=False) as claude:
        claude.set(crossSessionInbound="hold")
        conversation = claude.open()
        job = begin(conversation)
        job.ends()
        held = job.delivery(lambda each: "crossSessionInbound" in (each["reason"] or ""))
        assert (held["state"], held["attempts"]) == ("pending", 0), held
        assert "Held peer message" not in conversation.seen()
        assert len(waiting(claude.lab, conversation.owner)) == 1, "it stays in the inbox"


@check
def what_ends_within_a_turn_is_told_at_its_end():
    with Claude() as claude:
        common.tells_at_the_end_of_the_turn(claude, "claude-stop")


@check
def what_ended_while_nobody_was_there_is_told_when_the_session_goes_on():
    with Claude() as claude:
        common.waits_for_a_session_that_is_gone(claude, claude.by_shell)


@check
def a_wake_of_a_session_that_is_gone_waits_and_is_told_once_when_it_goes_on():
    with Claude() as claude:
        common.waits_for_a_session_that_is_gone(claude, claude.by_wake)


@check
def two_sessions_in_one_folder_get_their_own_results():
    with Claude() as claude:
        common.interleaved([claude, claude], [claude.by_mcp, claude.by_wake])


@check
def after_clear_a_result_stays_with_the_conversation_that_asked():
    with Claude() as claude:
        conversation = claude.open()
        first = begin(conversation, word="FIRST")
        before = conversation.owner
        conversation.terminal.say("/clear")
        wait_for("another session", lambda: conversation.now() != conversation.session)
        first.ends()
        second = begin(conversation, claude.by_mcp, "SECOND")
        belongs(conversation, second)
        second.let_go()
        told_once(claude.model, second, conversation.session)
        strays = [request.told for request in claude.model.told(first.said) if request.session == conversation.session]
        assert not strays, f"the old conversation's result came into the new one:\n{strays[0]}"
        assert len(waiting(claude.lab, before)) == 1, "the result of a conversation that is gone waits in its inbox"


@check
def after_clear_an_mcp_task_is_told_once_and_in_the_conversation_that_asked():
    with Claude() as claude:
        conversation = claude.open()
        job = begin(conversation, claude.by_mcp)
        conversation.terminal.say("/clear")
        wait_for("another session", lambda: conversation.now() != conversation.session)
        job.ends()
        time.sleep(5)  # Several polls of its client.
        assert not claude.model.told(job.said), claude.model.told(job.said)[0].told
        conversation.kill()
        again = claude.resume(conversation)
        comes_home(again, job)


@check
def three_results_of_the_shell_at_once_cost_one_turn():
    with Claude() as claude:
        common.three_at_once_cost_one_turn(claude)


@check
def three_mcp_tasks_that_end_at_once_cost_one_turn():
    with Claude() as claude:
        common.three_at_once_cost_one_turn(claude, claude.by_mcp)


@check
def five_results_within_a_turn_cost_one_turn():
    with Claude() as claude:
        common.what_ends_within_a_turn_costs_one_turn(claude)


@check
def without_hooks_five_results_within_a_turn_cost_one_turn():
    with Claude(install=False) as claude:
        common.what_ends_within_a_turn_costs_one_turn(claude)


@check
def five_results_while_it_is_closed_cost_one_turn():
    with Claude() as claude:
        common.what_ends_while_it_is_closed_costs_one_turn(claude)


@check
def without_hooks_a_session_with_a_background_shell_of_its_own_is_woken():
    with Claude(install=False) as claude:
        conversation = claude.open()
        gate = claude.lab.folder / "end-the-server"
        server = {"command": f"while [ ! -e {gate} ]; do sleep 0.1; done", "description": "a server", "run_in_background": True}
        claude.model.when("Start a server", Call("Bash", server))
        conversation.say("Start a server.")
        wait_for("the shell", lambda: conversation.entry().get("status") == "shell")
        conversation.session = conversation.now()
        job = Job(claude.lab, "BUILD")
        claude.model.when("Start BUILD", claude.by_wake(job))
        conversation.say("Start BUILD.")
        job.started()
        wait_for("the shell again", lambda: conversation.entry().get("status") == "shell")
        job.let_go()
        comes_home(conversation, job)
        [delivery] = job.deliveries()
        assert delivery["attempts"] == 1 and "inbox socket" in delivery["history"][0]["result"], delivery
        assert not gate.exists()


@check
def a_login_that_fails_is_not_tried_again():
    with Claude() as claude:
        job = Job(claude.lab, "BUILD")
        claude.model.when("Start BUILD", claude.by_wake(job))
        session = claude.headless("Start BUILD in the background.")
        job.let_go()
        dead = job.delivery(lambda each: each["state"] == "dead")
        assert dead["attempts"] == 1 and "login" in dead["reason"], dead
        assert len(waiting(claude.lab, f"claude:{session}")) == 1, "it waits in the inbox"
        text = next((claude.lab.home / ".claude/projects").glob(f"*/{session}.jsonl")).read_text()
        assert sum(job.said in line and '"user"' in line for line in text.splitlines()) == 1, text


@check
def a_headless_session_gets_one_more_turn():
    with Claude(install=False) as claude:
        claude.keeps_its_key()
        claude.lab.homing("install", "claude")
        job = Job(claude.lab, "BUILD")
        claude.model.when("Start BUILD", claude.by_wake(job))
        session = claude.headless("Start BUILD in the background.")
        job.let_go()
        told_once(claude.model, job, session)
        nothing_left(claude.lab, f"claude:{session}")
        [delivery] = job.deliveries()
        assert "one more turn" in delivery["history"][-1]["result"], delivery


@check
def a_session_that_a_person_closed_is_run_only_where_that_is_allowed():
    with Claude(install=False) as claude:
        claude.keeps_its_key()
        claude.configure("[wake]\nheadless = true\n")
        conversation = claude.open()
        job = begin(conversation)
        conversation.kill()
        job.let_go()
        comes_home(conversation, job)
        [delivery] = job.deliveries()
        assert "one more turn" in delivery["history"][-1]["result"], delivery


@check
def in_tmux_a_line_is_typed_into_its_pane_and_into_no_other_program():
    with Claude(install=False) as claude:
        claude.configure("[wake]\ntmux = true\n")
        conversation = claude.open(tells_pane=True)
        job, request = common.typed_into_its_pane(claude, conversation, lambda job: job.task()["owner"])
        assert request.session == conversation.session
        conversation.idle()
        common.never_typed_into_another_program(claude, conversation)


@check
def a_job_that_a_sub_agent_leaves_behind_is_told_to_the_session_that_asked_it():
    with Claude() as claude:
        job = Job(claude.lab, "LEFT")
        claude.model.when("Begin LEFT", claude.by_wake(job))
        line = "homing ask --agent claude --wait 'Begin LEFT in the background, and end.'"
        claude.model.when("Ask a helper", claude.shell(line))
        conversation = claude.open()
        conversation.say("Ask a helper.")
        task = job.started()
        conversation.idle()
        helper = next(each for each in claude.lab.homing_json("list", "--all")["items"] if each["kind"] == "agent")
        assert task["parent"] == helper["id"] and task["owner"] not in ("user", conversation.owner), task
        wait_for("the end of the helper", lambda: claude.lab.homing_json("show", helper["id"])["ended_at"])
        job.ends()
        # Nothing of the outer session's own runs, so that nothing wakes it; the next prompt brings it.
        assert [each["task"]["id"] for each in waiting(claude.lab, conversation.owner)] == [task["id"]]
        conversation.say("How did it go?")
        told_once(claude.model, job, conversation.session)
        nothing_left(claude.lab, conversation.owner)


@check
def in_tmux_nothing_is_typed_into_a_dialog_or_a_draft():
    with Claude(install=False) as claude:
        claude.set(permissions={"defaultMode": "default", "allow": []})
        claude.configure("[wake]\ntmux = true\n")
        conversation = claude.open(shows="? for shortcuts", tells_pane=True)
        common.typed_only_into_an_empty_prompt(claude, conversation, claude.shell, "Do you want to proceed?", ["Escape"])


@check
def install_and_uninstall_leave_its_files_as_they_were():
    with Claude(install=False) as claude:
        common.comes_and_goes(claude, lambda word: claude.headless(f"Hello {word}."))


@check
def ask_gives_the_answer_of_a_sub_agent():
    with Claude() as claude:
        done = common.asks(claude)
        record("claude-ask", claude.lab, f"$ homing ask --agent claude --wait 'What is six times seven?'\n{done.stdout}")
