"""Checks that go for several agents; each agent's own module says which it takes part in."""

import json
import time

from check import Job, all_come_home, begin, comes_home, figure, record_turn, waiting
from lab import wait_for
from mock import Say


def wakes_an_idle_session(agent, how=None, name=None, file=None):
    """A job that ends while the session is idle starts a turn of it."""
    conversation = agent.open()
    agent.model.when("BUILD-IS-DONE", Say("The build is done."))
    job = begin(conversation, how)
    job.let_go()
    request = comes_home(conversation, job)
    if name:
        figure(name, job, request)
    if file:
        record_turn(file, conversation, request)
    return conversation, job


def tells_at_the_end_of_the_turn(agent, file=None):
    """A job that ends within the turn that started it is told at the end of that."""
    job = Job(agent.lab, "BUILD")
    job.let_go()
    # Looking does not count as being told.
    agent.model.when("Start BUILD", agent.shell(f"homing run -- {job.line}; until homing show @last | grep -q '^  ended '; do sleep 0.1; done"))
    conversation = agent.open()
    conversation.say("Start BUILD.")
    job.started()
    conversation.idle()
    request = comes_home(conversation, job)
    if file:
        record_turn(file, conversation, request)


def costs_one_turn(agent, conversation, jobs):
    """What ends together is told in one turn. Returns that request."""
    for job in jobs:
        job.let_go()
    requests = all_come_home([(conversation, job) for job in jobs])
    turns = {request.at for request in requests}
    assert len(turns) == 1, f"{len(jobs)} results cost {len(turns)} turns"
    return requests[0]


def what_ends_while_it_is_closed_costs_one_turn(agent, how=None, by_itself=False, words=("ONE", "TWO", "THREE", "FOUR", "FIVE")):
    """Jobs that end one after the other while nobody has the session."""
    conversation = agent.open()
    jobs = [begin(conversation, how, word) for word in words]
    conversation.kill()
    for job in jobs:
        job.ends()
    assert not any(agent.model.told(job.said) for job in jobs), "nobody runs it behind the user's back"
    again = agent.resume(conversation)
    if not by_itself:
        again.say("How did it go?")
    return costs_one_turn(agent, again, jobs)


def three_at_once_cost_one_turn(agent, how=None):
    """Three jobs that end together while the session is idle."""
    conversation = agent.open()
    jobs = [begin(conversation, how, word) for word in ("ONE", "TWO", "THREE")]
    return costs_one_turn(agent, conversation, jobs)


def what_ends_within_a_turn_costs_one_turn(agent, how=None, words=("ONE", "TWO", "THREE", "FOUR", "FIVE")):
    """Jobs that end one after the other while the session is in the middle of a turn."""
    conversation = agent.open()
    jobs = [begin(conversation, how, word) for word in words]
    gate, works = agent.lab.folder / "end-the-turn", agent.lab.folder / "works"
    agent.model.when("Work on", agent.shell(f"touch {works}; while [ ! -e {gate} ]; do sleep 0.1; done"))
    conversation.say("Work on.")
    wait_for("the work", works.exists)
    time.sleep(1)  # Until the agent says that it is busy.
    for job in jobs:
        job.ends()
        time.sleep(0.5)
    gate.touch()
    return costs_one_turn(agent, conversation, jobs)


def interleaved(agents, hows=None):
    """Two conversations in one folder, two jobs each, begun by turns and ended in another order: each result comes to the one that asked."""
    conversations = [agent.open() for agent in agents]
    hows = hows or [agent.by_wake for agent in agents]
    started = []
    for number in (1, 2):
        for conversation, how, colour in zip(conversations, hows, ("RED", "BLUE")):
            started.append((conversation, begin(conversation, how, f"{colour}{number}")))
    assert conversations[0].owner != conversations[1].owner
    for index in (3, 0, 2, 1):
        started[index][1].let_go()
    all_come_home(started)


def waits_for_a_session_that_is_gone(agent, how, by_itself=False):
    """Nobody has the session: its result is listed in the inbox, and handed over when the session goes on: by itself, or with the next prompt."""
    conversation = agent.open()
    job = begin(conversation, how)
    conversation.kill()
    job.ends()
    # A waiter that has not seen the end of its agent yet takes the entry for ten seconds.
    left = wait_for("an entry in the inbox", lambda: waiting(agent.lab, conversation.owner))
    assert [each["task"]["id"] for each in left] == [job.task()["id"]], f"it waits in the inbox: {json.dumps(left)}"
    again = agent.resume(conversation)
    if not by_itself:
        again.say("How did it go?")
    comes_home(again, job)
    return again


def typed_into_its_pane(agent, conversation, owner):
    """tmux is the way: a line is typed into the pane, and it is a turn of whoever runs there."""
    job = begin(conversation, lambda job: agent.by_shell(job, "--notify", "wake:tmux:$TMUX_PANE"))
    task = job.task()["id"]
    job.let_go()
    # One line without output: what the program printed is not typed.
    request = wait_for("a turn that names the task", lambda: next((each for each in agent.model.told(f"] {task} ")), None))
    delivered = job.delivery(lambda each: each["state"] == "delivered")
    assert "typed into pane" in delivered["history"][-1]["result"], delivered
    assert "[homing notice - not user input]" in request.told and job.said not in request.told, request.told
    assert not waiting(agent.lab, owner(job))
    return job, request


def never_typed_into_another_program(agent, conversation):
    """Whatever took the agent's place in the pane gets no line."""
    job = begin(conversation, lambda job: agent.by_shell(job, "--notify", "wake:tmux:$TMUX_PANE"), "OTHER")
    owner = job.task()["owner"]
    conversation.terminal.becomes("sh", "-c", "stty -echo; exec cat > typed")
    job.ends()
    held = job.delivery(lambda each: "no longer the" in (each["reason"] or ""))
    assert (held["state"], held["attempts"]) == ("pending", 0), held
    assert (agent.lab.work / "typed").read_text() == ""
    assert len(waiting(agent.lab, owner)) == 1, "it stays in the inbox"


def typed_only_into_an_empty_prompt(agent, conversation, dialog, asks, answer):
    """With `dialog` open, a call that its user has to allow, and with a draft in the prompt nothing is typed; afterwards it is, once."""
    lab, terminal = agent.lab, conversation.terminal
    pane = lab.tmux("display-message", "-p", "-t", terminal.name, "#{pane_id}").stdout.strip()
    within = {"TMUX": f"{lab.tmux_socket},1,0", "TMUX_PANE": pane}

    def submit(word):
        job = Job(lab, word)
        lab.homing("run", "--notify", f"wake:tmux:{pane}", "--", job.line, env=within)
        return job, job.started()["id"]

    def refused(job, why):
        job.ends()
        held = job.delivery(lambda each: why in (each["reason"] or ""))
        time.sleep(3)  # Several looks.
        held = job.delivery(lambda each: why in (each["reason"] or ""))
        assert (held["state"], held["attempts"]) == ("pending", 0), held
        assert len(waiting(lab, "user")) == 1, "it stays in the inbox"

    def arrives(task):
        wait_for("a turn that names the task", lambda: agent.model.told(f"] {task} "))
        wait_for("an empty inbox", lambda: not waiting(lab, "user"))

    danger = lab.work / "DANGER"
    agent.model.when("Do it", dialog(f"touch {danger}"))
    terminal.say("Do it.", lambda: agent.model.told("Do it"))
    terminal.shows(asks)
    job, task = submit("WITH-A-DIALOG")
    refused(job, "a dialog of")
    assert asks in terminal.screen() and not danger.exists(), "nobody has answered"
    assert not agent.model.told(task)
    terminal.keys(*answer)
    wait_for("the end of the dialog", lambda: asks not in terminal.screen())
    arrives(task)
    conversation.idle()
    draft = "please delete everything except"
    lab.tmux("send-keys", "-t", terminal.name, "-l", "--", draft)
    terminal.shows(draft)
    job, task = submit("WITH-A-DRAFT")
    refused(job, "has a draft")
    assert draft in terminal.screen()
    for _ in draft:
        terminal.keys("BSpace")
    arrives(task)
    assert not danger.exists() and not agent.model.told(draft)


def asks(agent):
    """`homing ask` gives the answer of a sub-agent."""
    agent.model.when("What is six times seven", Say("Forty-two."))
    done = agent.lab.homing("ask", "--agent", agent.name, "--wait", "What is six times seven?")
    assert done.stdout.strip() == "Forty-two.", done.stdout
    return done


def comes_and_goes(agent, use):
    """`homing install`, a session of the agent, `--uninstall`: its files are as they were, to the byte."""
    use("before")  # What the agent itself writes at its first start is there.
    files = agent.files()
    before = {path: read(path) for path in files}
    agent.lab.homing("install", agent.name)
    assert all(read(path) != before[path] for path in files), "install writes into each of them"
    agent.lab.homing("install", agent.name, "--uninstall")
    as_before(files, before, lambda _, then, now: then == now)
    agent.lab.homing("install", agent.name)
    use("installed")
    agent.lab.homing("install", agent.name, "--uninstall")
    as_before(files, before, agent.same)
    use("after")


def as_before(files, before, same):
    for path in files:
        then, now = before[path], read(path)
        assert same(path, then, now), f"{path.name} is not as it was:\n--- before\n{text(then)}\n--- now\n{text(now)}"


def read(path):
    return path.read_bytes() if path.exists() else None


def text(data):
    return "(not there)" if data is None else data.decode(errors="replace")

