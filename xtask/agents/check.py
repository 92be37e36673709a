"""The words that checks are written in."""

import json
import time
from datetime import datetime

from lab import AGENTS, wait_for

CHECKS = []
FIGURES = []

# How long nothing more may come before "once" is believed: longer than a poll of any agent, and than a lease that was not acknowledged.
QUIET = 6.0


def check(function):
    """Registers a check, by the agent whose module it is in. Its name is a sentence."""
    CHECKS.append((function.__module__, function))
    return function


class Job:
    """A script in the working folder that runs until it is let go, and then prints words that stand nowhere else."""

    def __init__(self, lab, word):
        self.lab = lab
        self.word = word
        self.said = f"{word}-IS-DONE"
        self.gate = lab.folder / f"let-{word}-go"
        self.line = f"./{word.lower()}.sh"
        self.script = lab.work / self.line
        self.script.write_text(f"#!/bin/sh\necho compiling\nwhile [ ! -e {self.gate} ]; do sleep 0.05; done\necho {self.said}\n")
        self.script.chmod(0o755)

    def let_go(self):
        self.gate.touch()

    def ends(self):
        """Lets it go and waits for its end."""
        self.let_go()
        wait_for(f"the end of {self.word}", lambda: self.task()["ended_at"])

    def started(self):
        """Waits until homing has it, and returns the task."""
        return wait_for(f"a task of {self.word}", self.task)

    def task(self):
        tasks = self.lab.homing_json("list", "--all")["items"]
        return next((task for task in tasks if self.line[2:] in task["command"]), None)

    def deliveries(self):
        task = self.task()["id"]
        return [each for each in self.lab.homing_json("deliveries")["items"] if each["task_id"] == task]

    def delivery(self, wanted):
        """Its one delivery, once it is as wanted."""
        return wait_for(f"a delivery of {self.word} that is as wanted", lambda: next(filter(wanted, self.deliveries()), None))

    def known(self):
        """What homing knows of it, for whoever has to find out why something never came."""
        if not self.task():
            return "homing does not have it"
        words = [["show", self.task()["id"]], ["deliveries", "--json"], ["inbox", "--json", "--owner", self.task()["owner"]]]
        return "\n".join(self.lab.homing(*each, check=False).stdout for each in words)


def begin(conversation, how=None, word="BUILD"):
    """Has a conversation start a job in the background, and waits until it is idle again. The job goes on."""
    agent = conversation.agent
    job = Job(agent.lab, word)
    agent.model.when(f"Start {word}", (how or agent.by_wake)(job))
    conversation.say(f"Start {word} in the background.")
    job.started()
    conversation.idle()
    return job


def belongs(conversation, job):
    owner = job.task()["owner"]
    assert owner == conversation.owner, f"{job.word} is {owner}'s, and {conversation.owner} started it"


def told_once(model, job, session):
    """The model was told of the job's end: once, in that conversation. Returns the request."""
    return all_told_once(model, [(job, session)])[0]


def all_told_once(model, expected):
    """The same of several jobs."""
    firsts = []
    for job, _ in expected:
        try:
            firsts.append(wait_for(f"a turn that says {job.said}", lambda: next(iter(model.told(job.said)), None)))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{job.known()}") from None
    time.sleep(QUIET)
    for (job, session), first in zip(expected, firsts):
        requests = model.told(job.said)
        times = sum(each.told.count(job.said) for each in requests)
        assert times == 1, f"told {times} times in {len(requests)} turns:\n" + "\n----\n".join(each.told[-1500:] for each in requests)
        assert first.session == session, f"told in {first.session}, asked for in {session}"
    return firsts


def nothing_left(lab, owner):
    """Nothing waits for the owner any more, and nothing is on its way: what it was told by its hooks is settled a moment after it said so."""
    wait_for(f"an empty inbox of {owner}", lambda: not waiting(lab, owner))
    try:
        wait_for("the end of every delivery", lambda: not unsettled(lab))
    except AssertionError as error:
        raise AssertionError(f"{error}\n{json.dumps(unsettled(lab))}") from None


def unsettled(lab):
    deliveries = lab.homing_json("deliveries")["items"]
    return [each for each in deliveries if each["state"] not in ("delivered", "superseded")]


def waiting(lab, owner):
    """What waits in the inbox of an owner."""
    return lab.homing_json("inbox", "--owner", owner)["items"]


def comes_home(conversation, job):
    """The job's end is told once, in the conversation that started it, and nothing is left of it."""
    return all_come_home([(conversation, job)])[0]


def all_come_home(started):
    for conversation, job in started:
        belongs(conversation, job)
    requests = all_told_once(started[0][0].agent.model, [(job, conversation.session) for conversation, job in started])
    for conversation, _ in started:
        nothing_left(conversation.agent.lab, conversation.owner)
    return requests


def figure(name, job, request):
    """From the end of the command to the model's next request."""
    ended = datetime.fromisoformat(job.task()["ended_at"]).timestamp()
    FIGURES.append((name, (request.at - ended) * 1000))


def record(name, lab, *parts):
    """Keeps what was seen, for the pages in docs/agents: without the lab's folder, and without empty lines in a row."""
    folder = AGENTS / "transcripts"
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(part.strip() for part in parts).replace(str(lab.home), "~").replace(str(lab.folder), "~")
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for before, line in zip([None, *lines], lines) if line or before]
    (folder / f"{name}.txt").write_text("\n".join(kept) + "\n")


def record_turn(name, conversation, request):
    record(name, conversation.agent.lab, conversation.seen(), "What the model was told:", request.told)
