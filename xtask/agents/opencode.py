"""opencode, as its server: sessions are made and spoken to over HTTP, as its own terminal does."""

import json
import socket
import urllib.request

from check import Job, check, figure, nothing_left, record, told_once
from lab import Lab, wait_for
from mock import Call, Model, Say


class Opencode:
    def __init__(self, name):
        self.lab = Lab(name)
        self.model = Model()
        lab = self.lab
        lab.env.update({"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                        "OPENCODE_DISABLE_AUTOUPDATE": "1"})
        # It installs what plugins may import at its start; there is no network to do it.
        (lab.home / ".npmrc").write_text("offline=true\nfetch-retries=0\n")
        folder = lab.home / ".config/opencode"
        folder.mkdir(parents=True)
        model = {"name": "mock", "tool_call": True, "limit": {"context": 100000, "output": 4096}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": f"{self.model.url}/v1", "apiKey": "dummy"},
                    "models": {"mock": model}}
        (folder / "opencode.json").write_text(json.dumps({
            "model": "mock/mock", "small_model": "mock/mock", "autoupdate": False, "share": "disabled", "permission": "allow",
            "provider": {"mock": provider},
        }))
        lab.homing("install", "opencode")

    def serve(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.lab.start("opencode", "serve", "--port", port)
        wait_for("the server", self.healthy, 120, 0.2)

    def healthy(self):
        try:
            # One that arrives too early is never answered.
            return self.http("GET", "/global/health", timeout=2)
        except OSError:
            return None

    def http(self, method, path, body=None, timeout=120):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, method=method, data=data, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def session(self):
        return self.http("POST", "/session", {})["id"]

    def say(self, session, text):
        self.http("POST", f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": text}]})

    def idle(self, session):
        wait_for("an idle session", lambda: session not in self.http("GET", "/session/status"))

    def conversation(self, session):
        lines = []
        for message in self.http("GET", f"/session/{session}/message"):
            for part in message["parts"]:
                if part["type"] == "text":
                    lines.append(f"[{message['info']['role']}] {part['text']}")
                elif part["type"] == "tool":
                    lines.append(f"[tool {part['tool']}] {json.dumps(part['state'].get('input'))}\n{part['state'].get('output', '')}")
        return "\n".join(lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lab.close()
        self.model.close()


def run_by_shell(job, *options):
    return Call("bash", {"command": f"homing run {' '.join([*options, '--'])} {job.line}", "description": "a job in the background"})


@check("opencode")
def its_http_api_wakes_an_idle_session():
    with Opencode("wake") as opencode:
        opencode.serve()
        job = Job(opencode.lab, "BUILD")
        opencode.model.when("Build it", run_by_shell(job, "--notify", "wake"))
        opencode.model.when(job.said, Say("The build is done."))
        session = opencode.session()
        opencode.say(session, "Build it in the background.")
        task = job.started(opencode.lab)
        assert task["owner"] == f"opencode:{session}", task["owner"]
        opencode.idle(session)
        job.let_go()
        request = told_once(opencode.lab, opencode.model, job, session)
        figure("opencode, `run --notify wake` by its HTTP API", opencode.lab, job, request)
        nothing_left(opencode.lab, f"opencode:{session}")
        record("opencode-wake", opencode.lab, opencode.conversation(session))


@check("opencode")
def two_sessions_of_one_server_get_their_own_results():
    with Opencode("two") as opencode:
        opencode.serve()
        jobs = [Job(opencode.lab, "RED"), Job(opencode.lab, "BLUE")]
        sessions = []
        for job in jobs:
            opencode.model.when(f"Start {job.word}", run_by_shell(job, "--notify", "wake"))
            sessions.append(opencode.session())
            opencode.say(sessions[-1], f"Start {job.word} now.")
            job.started(opencode.lab)
        for session in sessions:
            opencode.idle(session)
        for job in reversed(jobs):
            job.let_go()
        for job, session in zip(jobs, sessions):
            told_once(opencode.lab, opencode.model, job, session)
            nothing_left(opencode.lab, f"opencode:{session}")


@check("opencode")
def ask_gives_the_answer_of_a_sub_agent():
    with Opencode("ask") as opencode:
        opencode.model.when("What is six times seven", Say("Forty-two."))
        done = opencode.lab.homing("ask", "--agent", "opencode", "--wait", "What is six times seven?", timeout=300)
        assert done.stdout.strip() == "Forty-two.", done.stdout
