"""opencode, as its server: sessions are made and spoken to over HTTP, as its own terminal does."""

import json
import os
import signal
import socket
import urllib.request

import common
from agent import Agent, Conversation
from check import Job, check, record, told_once
from lab import wait_for
from mock import Call


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
    def say(self, text):
        self.agent.http("POST", f"/session/{self.session}/prompt_async", {"parts": [{"type": "text", "text": text}]})
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

    def kill(self):
        """The server, with all its sessions."""
        os.killpg(self.agent.server.pid, signal.SIGKILL)
        self.agent.server.wait()
        self.agent.server = None


@check
def its_http_api_wakes_an_idle_session():
    with Opencode() as opencode:
        common.wakes_an_idle_session(opencode, name="opencode, `run --notify wake`, by its HTTP API", file="opencode-wake")


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
    with Opencode(install=False) as opencode:
        url, token = opencode.lab.listen()
        config = opencode.folder / "opencode.json"
        server = {"type": "remote", "url": url, "headers": {"Authorization": f"Bearer {token}"}, "oauth": False, "enabled": True}
        config.write_text(json.dumps({**json.loads(config.read_text()), "mcp": {"homing": server}}))
        job = Job(opencode.lab, "BUILD")
        job.let_go()
        opencode.model.when("Start BUILD", Call("homing_run", {"command": str(job.script)}))
        conversation = opencode.open()
        conversation.say("Start BUILD.")
        told_once(opencode.model, job, conversation.session)


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
