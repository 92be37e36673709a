"""A place to try an agent program in: its own home, an empty environment, a private tmux server, nothing of the user's.

Everything begun here is ended by `close`, by its process id or by the private socket of its tmux server.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AGENTS = Path(os.environ.get("HOMING_LAB_AGENTS", ROOT / "target/agents"))
BIN = AGENTS / "node_modules/.bin"
NODE = AGENTS / "node_modules/node/bin"
HOMING = Path(os.environ.get("HOMING_LAB_BINARY", ROOT / "target/debug/homing"))


def wait_for(what, condition, deadline=180.0, pause=0.02):
    """What `condition` returns once it is true; a failure with the name of what never came."""
    end = time.monotonic() + deadline
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"never came within {deadline:.0f} s: {what}")
        time.sleep(pause)


class Lab:
    alive = []

    def __init__(self, name):
        Lab.alive.append(self)
        # Not below /tmp, where codex makes no helpers; not below target/, which is in a repository, and agents look for one.
        self.folder = Path(tempfile.mkdtemp(prefix=f"homing-lab-{name}-", dir="/var/tmp"))
        self.home = self.folder / "home"
        self.work = self.folder / "work"
        self.temporary = self.folder / "tmp"
        for folder in (self.home, self.work, self.temporary):
            folder.mkdir()
        self.tmux_socket = self.folder / "tmux"
        self.processes = []
        self.env = {
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PATH": f"{NODE}:{BIN}:{HOMING.parent}:/usr/local/bin:/usr/bin:/bin",
            "USER": "lab",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "HOMING_HOME": str(self.folder / "homing"),
        }

    # -- programs ---------------------------------------------------------------------------------------------------------------

    def run(self, *argv, input=None, env=None, timeout=300, check=True):
        """Runs a program to its end and returns it, with its output."""
        done = subprocess.run([str(word) for word in argv], cwd=self.work, env={**self.env, **(env or {})}, input=input or "", text=True,
                              capture_output=True, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"{argv} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def start(self, *argv, env=None, stdin=subprocess.DEVNULL, stdout=None):
        log = open(self.folder / f"{Path(str(argv[0])).name}.log", "ab")
        process = subprocess.Popen([str(word) for word in argv], cwd=self.work, env={**self.env, **(env or {})}, stdin=stdin,
                                   stdout=stdout or log, stderr=log, start_new_session=True)
        log.close()
        self.processes.append(process)
        return process

    def homing(self, *arguments, **options):
        return self.run(HOMING, *arguments, **options)

    def homing_json(self, *arguments):
        return json.loads(self.homing(*arguments, "--json").stdout)

    def get(self, path):
        """Asks homing's HTTP API, by its socket."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.folder / "homing/homing.sock"))
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: homing\r\nconnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        return json.loads(answer.split(b"\r\n\r\n", 1)[1])

    def kill_daemon(self):
        os.kill(self.homing_json("status")["daemon"]["pid"], signal.SIGKILL)

    def listen(self):
        """Has the daemon serve MCP over HTTP; returns the address, and the token that opens it."""
        return self.homing("mcp", "--http").stdout.strip(), self.homing("token", "show").stdout.strip()

    # -- a terminal -------------------------------------------------------------------------------------------------------------

    def tmux(self, *arguments, check=True):
        return self.run("tmux", "-S", self.tmux_socket, "-f", "/dev/null", *arguments, check=check)

    def terminal(self, name, *argv, env=None, tells_pane=False):
        """Runs an interactive program in a window of its own of the private tmux server. It knows of tmux only where that is asked for."""
        variables = [f"{key}={value}" for key, value in {**self.env, **(env or {})}.items() if key != "TERM"]
        words = ["env", "-i", "TERM=xterm-256color", *variables, *[str(word) for word in argv]]
        if tells_pane:
            words = ["sh", "-c", 'shift 2; exec env -i "TMUX=$TMUX" "TMUX_PANE=$TMUX_PANE" "$@"', "sh", *words]
        self.tmux("new-session", "-d", "-s", name, "-x", "160", "-y", "50", "-c", str(self.work), *words)
        self.tmux("set-option", "-t", name, "remain-on-exit", "on", check=False)
        return Terminal(self, name)

    # -- what is kept of a check that failed --------------------------------------------------------------------------------------

    def keep(self, requests):
        """Keeps what whoever looks for the cause needs: screens, what the model was told and when, homing's view, and files that agents wrote."""
        kept = AGENTS / "failures" / self.folder.name
        kept.mkdir(parents=True, exist_ok=True)
        for name in self.tmux("list-sessions", "-F", "#{session_name}", check=False).stdout.split():
            (kept / f"screen-{name}.txt").write_text(Terminal(self, name).screen())
        told = [f"=== {each.at:.3f} {each.api} {each.session}\n{each.told}\n" for each in requests]
        (kept / "model.txt").write_text("\n".join(told))
        for words in (["list", "--all"], ["deliveries"], ["status"], ["inbox"]):
            (kept / f"homing-{words[0]}.json").write_text(self.homing(*words, "--json", check=False).stdout)
        for path in self.folder.glob("**/*"):
            if path.suffix in (".jsonl", ".log", ".json") and path.is_file() and path.stat().st_size < 4 << 20:
                place = kept / "files" / path.relative_to(self.folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        return kept

    # -- the end ----------------------------------------------------------------------------------------------------------------

    def close(self):
        Lab.alive.remove(self)
        if self.tmux_socket.exists():
            self.tmux("kill-server", check=False)
        for process in self.processes:
            if process.poll() is None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
        if (self.folder / "homing").exists():
            live = subprocess.run([HOMING, "list", "--json"], env=self.env, capture_output=True, text=True)
            try:
                for task in json.loads(live.stdout)["items"]:
                    if task["ended_at"] is None:
                        subprocess.run([HOMING, "stop", task["id"], "--grace", "0s"], env=self.env, capture_output=True)
            except ValueError:
                pass
            subprocess.run([HOMING, "daemon", "stop"], env=self.env, capture_output=True)
        leftovers(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)


def leftovers(folder):
    """Ends what still runs with this lab's home in its environment: servers that an agent left behind."""
    for _ in range(50):
        found = processes_of(folder)
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)


def processes_of(folder):
    """Processes whose environment names this lab's home."""
    mark = f"HOME={folder}/home\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark in (entry / "environ").read_bytes() + b"\0":
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


class Terminal:
    def __init__(self, lab, name):
        self.lab, self.name = lab, name

    def screen(self):
        return self.lab.tmux("capture-pane", "-p", "-t", self.name, check=False).stdout

    def pid(self):
        return int(self.lab.tmux("display-message", "-p", "-t", self.name, "#{pane_pid}").stdout)

    def keys(self, *keys):
        self.lab.tmux("send-keys", "-t", self.name, *keys)

    def presses(self, key, what, done):
        """Presses a key until it was taken: a program that has drawn itself need not read yet."""
        for _ in range(20):
            self.keys(key)
            try:
                return wait_for(what, lambda: done(self.screen()), 10)
            except AssertionError:
                pass
        raise AssertionError(f"never came: {what}\n{self.screen()}")

    def becomes(self, *argv):
        """Ends what runs in it and runs another program there, in the same pane."""
        before = self.pid()
        self.lab.tmux("respawn-pane", "-k", "-t", self.name, "-c", str(self.lab.work), *argv)
        wait_for("another program in the pane", lambda: self.pid() != before)

    def say(self, text, heard=None):
        """Types a prompt and sends it, until it was heard: a program that has drawn itself need not read yet, and loses keys."""
        for _ in range(20):
            self.lab.tmux("send-keys", "-t", self.name, "-l", "--", text)
            try:
                wait_for(f"{text!r} on the screen", lambda: text[:20] in self.screen(), 10)
                break
            except AssertionError:
                self.keys("C-u")
        self.presses("Enter", f"{text!r} heard", lambda _: heard is None or heard())

    def shows(self, text, deadline=180.0):
        try:
            return wait_for(f"{text!r} on the screen", lambda: text in self.screen() and self.screen(), deadline, 0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None
