"""opencode, as its server: sessions are made and spoken to over HTTP, as its own terminal does. And as its terminal, which listens nowhere."""

import json
import os
import signal
import socket
import time
import urllib.request

import common
from agent import Agent, Conversation
from check import begin, check, comes_home, figure, nothing_left, record, record_turn
from lab import wait_for
from mock import Call, Say


class Opencode(Agent):
    name = "opencode"

    def prepare(self):
        lab = self.lab
        lab.env.update({"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                        "OPENCODE_DISABLE_AUTOUPDATE": "1"})
        # It installs what plugins may import at its start; there is no network to do it.
        (lab.home / ".npmrc").write_text("offline=true\nfetch-retries=0\n")
        self.folder = lab.home / ".config/opencode"
        self.folder.mkdir(parents=True)
        model = {"name": "mock", "tool_call": True, "limit": {"context": 100000, "output": 4096}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": f"{self.model.url}/v1", "apiKey": "dummy"},
                    "models": {"mock": model}}
        (self.folder / "opencode.json").write_text(json.dumps({
            "model": "mock/mock", "small_model": "mock/mock", "autoupdate": False, "share": "disabled", "permission": "allow",
            "provider": {"mock": provider},
        }))
        # The same each time that it is started, as a user would have it.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = None

    def shell(self, line):
        return Call("bash", {"command": line, "description": "a job in the background"})

    def by_mcp(self, job):
        return Call("homing_run", {"command": str(job.script), "background": True, "notify_on_complete": True})

    def serve(self):
        """Starts its server, unless it runs."""
        if self.server:
            return
        self.server = self.lab.start("opencode", "serve", "--port", self.port)
        wait_for("the server", self.healthy, pause=0.2)

    def healthy(self):
        try:
            # One that arrives too early is never answered.
            return self.http("GET", "/global/health", timeout=2)
        except OSError:
            return None

    def http(self, method, path, body=None, timeout=180):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, method=method, data=data, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def open(self):
        self.serve()
        return Talk(self, session=self.http("POST", "/session", {})["id"])

    def resume(self, conversation):
        self.serve()
        return Talk(self, session=conversation.session)

    def sessions(self):
        return [each["id"] for each in self.http("GET", "/session")]

    def files(self):
        return [self.folder / "opencode.json", self.folder / "plugin/homing.js", self.folder / "skills/homing/SKILL.md"]


class Talk(Conversation):
    agent_name = None

    def say(self, text):
        prompt = {"parts": [{"type": "text", "text": text}], **({"agent": self.agent_name} if self.agent_name else {})}
        self.agent.http("POST", f"/session/{self.session}/prompt_async", prompt)
        wait_for(f"{text!r} heard", lambda: self.agent.model.told(text))

    def idle(self):
        wait_for("an idle session", lambda: self.session not in self.agent.http("GET", "/session/status"))

    def seen(self):
        lines = []
        for message in self.agent.http("GET", f"/session/{self.session}/message"):
            for part in message["parts"]:
                if part["type"] == "text":
                    lines.append(f"[{message['info']['role']}] {part['text']}")
                elif part["type"] == "tool":
                    lines.append(f"[tool {part['tool']}] {json.dumps(part['state'].get('input'))}\n{part['state'].get('output', '')}")
        return "\n".join(lines)

    def goes_on_as(self, name):
        """Every prompt went to this agent."""
        messages = self.agent.http("GET", f"/session/{self.session}/message")
        agents = {each["info"]["agent"] for each in messages if each["info"]["role"] == "user"}
        assert agents == {name}, agents

    def kill(self):
        """The server, with all its sessions."""
        os.killpg(self.agent.server.pid, signal.SIGKILL)
        self.agent.server.wait()
        self.agent.server = None


class Terminal(Conversation):
    """In its own terminal."""

    def say(self, text):
        super().say(text)
        self.session = self.session or self.agent.model.told(text)[0].session

    def idle(self):
        wait_for("an idle session", lambda: "esc interrupt" not in self.terminal.screen())


class InTerminals(Opencode):
    """Each session in a terminal of its own, without a port."""

    def open(self, *arguments):
        terminal = self.lab.terminal(self.window(), "opencode", *arguments)
        terminal.shows("Ask anything" if not arguments else "ctrl+p commands")
        return Terminal(self, terminal)

    def resume(self, conversation):
        again = self.open("--session", conversation.session)
        again.session = conversation.session
        return again


@check
def without_a_port_a_tool_call_wakes_the_session_that_made_it():
    with InTerminals() as opencode:
        common.wakes_an_idle_session(opencode, opencode.by_mcp, "opencode, MCP, by its plugin", "opencode-mcp")


@check
def without_a_port_a_command_of_the_shell_wakes_an_idle_session():
    with InTerminals() as opencode:
        common.wakes_an_idle_session(opencode, name="opencode, `run --notify wake`, by its plugin", file="opencode-plugin")


@check
def without_a_port_two_sessions_get_their_own_results():
    with InTerminals() as opencode:
        common.interleaved([opencode, opencode], [opencode.by_mcp, opencode.by_wake])


@check
def without_a_port_three_results_at_once_cost_one_turn():
    with InTerminals() as opencode:
        common.three_at_once_cost_one_turn(opencode, opencode.by_mcp)


@check
def without_a_port_what_ends_within_a_turn_costs_one_turn():
    with InTerminals() as opencode:
        common.what_ends_within_a_turn_costs_one_turn(opencode, opencode.by_mcp)


@check
def without_a_port_a_session_that_was_killed_is_told_once_when_it_goes_on():
    with InTerminals() as opencode:
        common.waits_for_a_session_that_is_gone(opencode, opencode.by_mcp)


@check
def the_model_never_sees_how_its_session_is_named():
    with InTerminals() as opencode:
        conversation = opencode.open()
        begin(conversation, opencode.by_mcp)
        assert all("opencode_session" not in json.dumps(request.body) for request in opencode.model.requests)


@check
def without_a_port_a_turn_that_was_killed_before_its_answer_confirms_nothing_and_is_not_told_twice():
    with InTerminals() as opencode:
        conversation = opencode.open()
        job = begin(conversation, opencode.by_mcp)
        opencode.model.when(job.said, never_answers)
        job.let_go()
        wait_for("a turn with the result", lambda: opencode.model.told(job.said))
        conversation.kill()
        entries = [each["open"] for each in opencode.lab.get("/v1/inbox")["items"] if each["owner"] == conversation.owner]
        assert entries == [1], f"no model has answered it: {entries}"
        again = opencode.resume(conversation)
        again.say("How did it go?")
        again.idle()
        request = opencode.model.told("How did it go?")[0]
        assert json.dumps(request.body).count(job.said) == 1, json.dumps(request.body)
        nothing_left(opencode.lab, conversation.owner)


@check
def a_wake_runs_with_the_agent_of_the_prompt_before_it():
    with Opencode() as opencode:
        conversation = opencode.open()
        conversation.agent_name = "plan"
        job = begin(conversation, opencode.by_mcp)
        job.let_go()
        comes_home(conversation, job)
        conversation.goes_on_as("plan")


def never_answers(_):
    time.sleep(600)


@check
def its_http_api_wakes_an_idle_session():
    with Opencode() as opencode:
        (opencode.folder / "plugin/homing.js").unlink()  # It would wait first.
        conversation = opencode.open()
        conversation.agent_name = "plan"
        target = f"wake:opencode:{opencode.url}#{conversation.session}"
        opencode.model.when("BUILD-IS-DONE", Say("The build is done."))
        job = begin(conversation, lambda job: opencode.by_shell(job, "--owner", conversation.owner, "--notify", target))
        job.let_go()
        request = comes_home(conversation, job)
        delivered = job.delivery(lambda each: each["state"] == "delivered")
        assert "prompt_async" in delivered["history"][-1]["result"], delivered
        conversation.goes_on_as("plan")
        figure("opencode, `wake:opencode:URL#SESSION`, by its HTTP API", job, request)
        record_turn("opencode-wake", conversation, request)


@check
def two_sessions_of_one_server_get_their_own_results():
    with Opencode() as opencode:
        common.interleaved([opencode, opencode])


@check
def what_ended_while_nobody_was_there_is_told_when_the_session_goes_on():
    with Opencode() as opencode:
        again = common.waits_for_a_session_that_is_gone(opencode, opencode.by_shell)
        record("opencode-resume", opencode.lab, again.seen())


@check
def a_wake_of_a_session_that_is_gone_waits_and_is_told_once_when_it_goes_on():
    with Opencode() as opencode:
        common.waits_for_a_session_that_is_gone(opencode, opencode.by_wake, by_itself=True)


@check
def its_tools_work_over_http():
    with Opencode() as opencode:  # With its plugin, which names the session of each call there too.
        url, token = opencode.lab.listen()
        config = opencode.folder / "opencode.json"
        server = {"type": "remote", "url": url, "headers": {"Authorization": f"Bearer {token}"}, "oauth": False, "enabled": True}
        config.write_text(json.dumps({**json.loads(config.read_text()), "mcp": {"homing": server}}))
        common.wakes_an_idle_session(opencode, opencode.by_mcp)


@check
def install_and_uninstall_leave_its_files_as_they_were():
    with Opencode(install=False) as opencode:
        common.comes_and_goes(opencode, lambda word: opencode.lab.run("opencode", "run", f"Hello {word}."))


@check
def ask_gives_the_answer_of_a_sub_agent():
    with Opencode() as opencode:
        common.asks(opencode)


@check
def what_is_left_of_an_ask_goes_by_its_own_command():
    with Opencode() as opencode:
        common.asks(opencode)
        [task] = opencode.lab.homing_json("list", "--all")["items"]
        session = task["agent"]["session_id"]
        opencode.lab.homing("forget", task["id"])
        opencode.lab.run("opencode", "session", "delete", session)
        opencode.serve()
        assert session not in opencode.sessions()
