"""Codex, interactive, in a terminal. Its sessions live in one server of its own per CODEX_HOME, which outlives the terminal."""

import json
import os
import signal

import common
from agent import Agent, Conversation
from check import begin, check, comes_home, record, told_once, waiting
from lab import processes_of, wait_for
from mock import Call

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


class Codex(Agent):
    name = "codex"

    def prepare(self):
        self.lab.env["MOCK_KEY"] = "dummy"
        (self.lab.home / ".codex").mkdir()
        self.config = self.lab.home / ".codex/config.toml"
        self.config.write_text(CONFIG.format(url=self.model.url, work=self.lab.work))
        # Its commands run in a login shell, which forgets PATH unless the user's profile says otherwise.
        (self.lab.home / ".profile").write_text(f"PATH={self.lab.env['PATH']}\n")
        self.asked = False

    def shell(self, line):
        return Call("exec_command", {"cmd": line})

    def by_mcp(self, job):
        return Call("run", {"command": str(job.script), "background": True, "notify_on_complete": True}, namespace="mcp__homing")

    def open(self, *arguments, **options):
        terminal = self.lab.terminal(self.window(), "codex", *arguments, **options)
        if not self.asked and (self.lab.home / ".codex/hooks.json").exists():
            # New hooks are for a person to trust, once.
            terminal.shows("Hooks need review")
            terminal.presses("Down", "the second choice", lambda screen: "› 2. Trust all" in screen)
            terminal.presses("Enter", "no more questions", lambda screen: "Hooks need review" not in screen)
            self.asked = True
        terminal.shows("? for shortcuts")
        return Talk(self, terminal)

    def resume(self, conversation):
        again = self.open("resume", conversation.session)
        again.session = conversation.session
        return again

    def threads(self):
        """The threads that have a file, each with how many turns it has begun and ended."""
        found = {}
        for path in (self.lab.home / ".codex/sessions").glob("**/rollout-*.jsonl"):
            events = [each["payload"].get("type") for each in lines(path) if each.get("type") == "event_msg"]
            found[path.stem[-36:]] = (events.count("task_started"), events.count("task_complete") + events.count("turn_aborted"))
        return found

    def files(self):
        folder = self.lab.home / ".codex"
        return [folder / "config.toml", folder / "hooks.json", folder / "skills/homing/SKILL.md"]


def lines(path):
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:  # The last one, half written.
            pass
    return found


class Talk(Conversation):
    def say(self, text):
        super().say(text)
        self.session = self.session or self.agent.model.told(text)[0].session

    def idle(self):
        self.session = self.session or next(iter(self.agent.threads()))

        def over():
            begun, ended = self.agent.threads().get(self.session, (0, 0))
            return begun and begun == ended

        wait_for("the end of the turn", over)

    def kill(self):
        """The terminal, and the server that has the thread: nothing of Codex runs any more."""
        super().kill()
        for pid in codex_processes(self.agent.lab):
            os.kill(pid, signal.SIGKILL)
        wait_for("the end of Codex", lambda: not codex_processes(self.agent.lab))


def codex_processes(lab):
    """Whatever of Codex runs in the lab: its server, and helpers."""
    found = []
    for pid in processes_of(lab.folder):
        try:
            if "codex" in os.path.basename(os.readlink(f"/proc/{pid}/exe")):
                found.append(pid)
        except OSError:
            pass
    return found


@check
def the_queue_wakes_an_idle_session():
    with Codex() as codex:
        common.wakes_an_idle_session(codex, name="Codex, `run --notify wake`, by its queue", file="codex-wake")


@check
def a_tool_call_wakes_the_thread_that_made_it():
    with Codex() as codex:
        common.wakes_an_idle_session(codex, codex.by_mcp, "Codex, MCP, by its queue", "codex-mcp")


@check
def a_tool_call_over_http_is_the_users_and_waits_in_the_inbox():
    with Codex(install=False) as codex:
        url, token = codex.lab.listen()
        codex.lab.env["HOMING_LAB_TOKEN"] = token
        codex.config.write_text(codex.config.read_text() + f'\n[mcp_servers.homing]\nurl = "{url}"\nbearer_token_env_var = "HOMING_LAB_TOKEN"\n')
        conversation = codex.open()
        job = begin(conversation, codex.by_mcp)
        assert job.task()["owner"] == "user", "over HTTP nobody says which session asks"
        job.ends()
        assert len(waiting(codex.lab, "user")) == 1
        codex.model.when("Wait for it", Call("wait", {"ids": [job.task()["id"]]}, namespace="mcp__homing"))
        conversation.say("Wait for it.")
        told_once(codex.model, job, conversation.session)


@check
def two_sessions_in_one_folder_get_their_own_results():
    with Codex() as codex:
        common.interleaved([codex, codex], [codex.by_mcp, codex.by_wake])


@check
def what_ends_within_a_turn_is_told_at_its_end():
    with Codex() as codex:
        common.tells_at_the_end_of_the_turn(codex, "codex-stop")


@check
def what_ended_while_nobody_was_there_is_told_when_the_session_goes_on():
    with Codex() as codex:
        common.waits_for_a_session_that_is_gone(codex, codex.by_shell)


@check
def five_results_while_it_is_closed_cost_one_turn():
    with Codex() as codex:
        common.what_ends_while_it_is_closed_costs_one_turn(codex)


@check
def without_hooks_five_results_while_it_is_closed_cost_one_turn():
    with Codex(install=False) as codex:
        common.what_ends_while_it_is_closed_costs_one_turn(codex, by_itself=True)


@check
def five_results_within_a_turn_cost_one_turn():
    with Codex() as codex:
        common.what_ends_within_a_turn_costs_one_turn(codex, codex.by_mcp)


@check
def without_hooks_five_results_within_a_turn_cost_one_turn():
    with Codex(install=False) as codex:
        common.what_ends_within_a_turn_costs_one_turn(codex)


@check
def three_results_at_once_cost_one_turn():
    with Codex() as codex:
        common.three_at_once_cost_one_turn(codex)


@check
def one_more_turn_is_run_where_nothing_of_codex_runs_and_that_is_allowed():
    with Codex() as codex:
        # No key in the environment: homing keeps no variables of a session.
        codex.config.write_text(codex.config.read_text().replace('env_key = "MOCK_KEY"\n', ""))
        codex.configure("[wake]\nheadless = true\n")
        conversation = codex.open()
        job = begin(conversation)
        conversation.kill()
        job.let_go()
        comes_home(conversation, job)
        [delivery] = job.deliveries()
        assert "one more turn by `codex exec resume`" in delivery["history"][-1]["result"], delivery


@check
def a_command_in_codexs_sandbox_is_refused_with_the_reason():
    with Codex() as codex:
        codex.config.write_text(codex.config.read_text().replace("danger-full-access", "workspace-write"))
        codex.lab.homing("daemon", "start")
        codex.model.when("Build it", codex.shell("homing run -- true 2>&1"))
        conversation = codex.open()
        conversation.say("Build it.")
        wait_for("the refusal", lambda: codex.model.told("HM00"))
        record("codex-sandbox", codex.lab, conversation.seen(), "What the model was told:", codex.model.told("HM00")[0].told)


@check
def in_tmux_a_line_is_typed_into_its_pane_and_into_no_other_program():
    with Codex(install=False) as codex:
        codex.configure("[wake]\ntmux = true\n")
        conversation = codex.open(tells_pane=True)
        common.typed_into_its_pane(codex, conversation, lambda job: job.task()["owner"])
        conversation.idle()
        common.never_typed_into_another_program(codex, conversation)


@check
def in_tmux_nothing_is_typed_into_a_dialog_or_a_draft():
    with Codex(install=False) as codex:
        text = codex.config.read_text().replace('approval_policy = "never"', 'approval_policy = "on-request"')
        codex.config.write_text(text.replace("danger-full-access", "workspace-write"))
        codex.configure("[wake]\ntmux = true\n")
        conversation = codex.open(tells_pane=True)
        asks = lambda line: Call("exec_command", {"cmd": line, "sandbox_permissions": "require_escalated", "justification": "it has to be"})
        common.typed_only_into_an_empty_prompt(codex, conversation, asks, "Would you like to run", ["Escape"])


@check
def install_and_uninstall_leave_its_files_as_they_were():
    with Codex(install=False) as codex:
        common.comes_and_goes(codex, lambda word: codex.lab.run("codex", "exec", "--skip-git-repo-check", f"Hello {word}."))


@check
def ask_gives_the_answer_of_a_sub_agent():
    with Codex() as codex:
        common.asks(codex)
