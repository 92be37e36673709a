"""A harness in Python, with the standard library alone: submit a task, go on, hear of its end once, also when the daemon was restarted.

    homing daemon start
    python3 examples/harness/harness.py

`HOMING_HOME` names the home, as everywhere.
"""

import http.client
import json
import os
import socket
import time
import uuid
from urllib.parse import quote


class Daemon:
    """HTTP on the Unix socket of a home. Each call opens a connection of its own; nothing is kept that a restart could break."""

    def __init__(self, home, owner):
        self.socket = os.path.join(home, "homing.sock")
        self.owner = owner

    def open(self, method, path, body=None, headers=(), timeout=60):
        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(timeout)
        connection.sock.connect(self.socket)
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"content-type": "application/json", "homing-owner": self.owner, **dict(headers)})
        return connection.getresponse()

    def call(self, method, path, body=None, headers=()):
        """One request. The daemon may be restarting: what is safe to repeat is repeated."""
        for attempt in range(100):
            try:
                with self.open(method, path, body, headers) as response:
                    answer = json.loads(response.read() or b"null")
                    if response.status >= 400:
                        raise SystemExit(f"{answer['detail']} ({answer['code']}): {answer['advice']}")
                    return answer
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)
        raise SystemExit("no daemon answers: `homing daemon start`")

    def submit(self, shell, **fields):
        # The key makes repeating safe: the same key and body is the same task.
        return self.call("POST", "/v1/tasks", {"shell": shell, **fields}, {"idempotency-key": str(uuid.uuid4())})

    @property
    def inbox(self):
        return f"/v1/inbox/{quote(self.owner, safe='')}"

    def acknowledge(self, notice):
        self.call("POST", f"{self.inbox}/ack", {"ids": [notice["id"]]})

    def results(self):
        """Every result that waits for this owner, for ever, each under a lease: what is not acknowledged is there again."""
        while True:
            yield from self.call("POST", f"{self.inbox}/take", {"max": 10, "lease_ms": 60000, "wait_ms": 20000})["items"]

    def events(self):
        """Server-sent events, from the oldest that is kept. After a break it goes on behind the last one that was seen: none is missed
        and none comes twice. A break that outlives the log brings `reset`, with the tasks as they are."""
        after = coming = None
        while True:
            start = {"last-event-id": after} if after else {}
            begin = "" if after else "&from=oldest"
            try:
                with self.open("GET", f"/v1/events?owner={quote(self.owner, safe='')}{begin}", headers=start) as stream:
                    for line in stream:
                        field, _, value = line.decode().rstrip("\n").partition(": ")
                        if field == "id":
                            coming = value
                        elif field == "data" and line.endswith(b"\n"):
                            after = coming  # not before the event is here
                            yield json.loads(value)
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)


def main():
    home = os.environ.get("HOMING_HOME") or os.path.expanduser("~/.local/state/homing")
    daemon = Daemon(home, "harness-python")
    task = daemon.submit("echo working; exit 3", name="sample")
    print(f"submitted {task['name']}, and free to do something else")
    for event in daemon.events():
        if event.get("task_id") == task["id"]:
            print(f"event {event['type']}")
            if event["type"] == "task.completed":
                break
    for notice in daemon.results():
        daemon.acknowledge(notice)
        if notice["task"]["id"] == task["id"]:
            print(f"result: {notice['status']}, exit code {notice['outcome']['exit_code']}, printed {json.dumps(notice['output_tail'])}")
            break
    print(f"left in the inbox: {len(daemon.call('GET', daemon.inbox)['items'])}")


if __name__ == "__main__":
    main()
