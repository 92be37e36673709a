"""Gemini CLI, headless. It has no surface that wakes an idle session, so what is tried is what its hooks can do."""

import json

from check import Job, check, nothing_left, record, told_once
from lab import Lab
from mock import Call, Model, Say


class Gemini:
    def __init__(self, name):
        self.lab = Lab(name)
        self.model = Model()
        # The key and the address are all that it needs; a model by name, or it asks a model which to ask.
        self.lab.env.update({"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": self.model.url, "GEMINI_MODEL": "gemini-2.5-pro",
                             "GEMINI_CLI_TRUST_WORKSPACE": "true"})
        (self.lab.home / ".gemini").mkdir()
        (self.lab.home / ".gemini/settings.json").write_text(json.dumps({
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True},
        }))
        self.lab.homing("install", "gemini")

    def say(self, text):
        return self.lab.run("gemini", "--yolo", "--output-format", "stream-json", "-p", text, timeout=300)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lab.close()
        self.model.close()


@check("gemini")
def what_ends_within_a_turn_is_told_at_its_end():
    with Gemini("stop") as gemini:
        gemini.lab.homing("daemon", "start")  # A hook never starts one, and it is a hook that says which session this is.
        job = Job(gemini.lab, "BUILD")
        job.let_go()
        gemini.model.when("Build it", Call("mcp_homing_run", {"command": job.line, "background": True, "notify_on_complete": True}))
        gemini.model.when("t-", Call("run_shell_command", {"command": "sleep 2", "description": "d"}))
        gemini.model.when(job.said, Say("The build is done."))
        done = gemini.say("Build it.")
        session = json.loads(done.stdout.splitlines()[0])["session_id"]
        task = job.started(gemini.lab)
        assert task["owner"] == f"gemini:{session}", task["owner"]
        # Its requests name no session; there is only one.
        request = told_once(gemini.lab, gemini.model, job, None)
        nothing_left(gemini.lab, f"gemini:{session}")
        record("gemini-stop", gemini.lab, done.stdout, "What the model was told:", request.told)


@check("gemini")
def ask_gives_the_answer_of_a_sub_agent():
    with Gemini("ask") as gemini:
        gemini.model.when("What is six times seven", Say("Forty-two."))
        done = gemini.lab.homing("ask", "--agent", "gemini", "--wait", "What is six times seven?", timeout=300)
        assert done.stdout.strip() == "Forty-two.", done.stdout
