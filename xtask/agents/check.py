"""The words that checks are written in."""

import json
import time
from datetime import datetime

from lab import AGENTS, wait_for

CHECKS = []
FIGURES = []

# How long nothing more may come before "once" is believed: longer than a poll of any agent, and than a lease that was not acknowledged.
QUIET = 6.0


def check(agent):
    """Registers a check of an agent. Its name is a sentence."""

    def register(function):
        CHECKS.append((agent, function))
        return function

    return register


class Job:
    """A script in the working folder that runs until it is let go, and then prints words that stand nowhere else."""

    def __init__(self, lab, word):
        self.word = word
        self.said = f"{word}-IS-DONE"
        self.gate = lab.folder / f"let-{word}-go"
        self.line = f"./{word.lower()}.sh"
        script = lab.work / self.line
        script.write_text(f"#!/bin/sh\necho compiling\nwhile [ ! -e {self.gate} ]; do sleep 0.05; done\necho {self.said}\n")
        script.chmod(0o755)

    def let_go(self):
        self.gate.touch()

    def started(self, lab):
        """Waits until homing has it, and returns the task."""
        return wait_for(f"a task of {self.word}", lambda: self.task(lab))

    def task(self, lab):
        tasks = lab.homing_json("list", "--all")["items"]
        return next((task for task in tasks if self.line in task["command"]), None)


def told_once(lab, model, job, session):
    """The model was told of the job's end: once, in that conversation. Returns the request."""
    try:
        request = wait_for(f"a turn that says {job.said}", lambda: next(iter(model.told(job.said)), None))
    except AssertionError as error:
        known = [lab.homing(*words, check=False).stdout for words in (["show", job.task(lab)["id"]], ["deliveries", "--json"], ["inbox", "--json"])]
        raise AssertionError("\n".join([str(error), *known])) from None
    time.sleep(QUIET)
    requests = model.told(job.said)
    times = sum(each.told.count(job.said) for each in requests)
    assert times == 1, f"told {times} times in {len(requests)} turns:\n" + "\n----\n".join(each.told[-1500:] for each in requests)
    assert request.session == session, f"told in {request.session}, asked for in {session}"
    return request


def nothing_left(lab, owner):
    """Nothing waits for the owner any more, and nothing is on its way."""
    wait_for(f"an empty inbox of {owner}", lambda: not lab.homing_json("inbox", "--owner", owner)["items"], 20)
    deliveries = lab.homing_json("deliveries")["items"]
    lost = [each for each in deliveries if each["state"] != "delivered" and "its owner has it already" not in (each["reason"] or "")]
    assert not lost, f"not delivered: {json.dumps(lost)}"


def figure(name, lab, job, request):
    """From the end of the command to the model's next request."""
    ended = datetime.fromisoformat(job.task(lab)["ended_at"]).timestamp()
    FIGURES.append((name, (request.at - ended) * 1000))


def record(name, lab, *parts):
    """Keeps what was seen, for the pages in docs/agents: without the lab's folder, and without empty lines in a row."""
    folder = AGENTS / "transcripts"
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(part.strip() for part in parts).replace(str(lab.home), "~").replace(str(lab.folder), "~")
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for before, line in zip([None, *lines], lines) if line or before]
    (folder / f"{name}.txt").write_text("\n".join(kept) + "\n")
