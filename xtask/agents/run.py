"""`cargo xtask agents [AGENT | NAME OF A CHECK]…`: every check in a lab of its own, one after the other, and a table at the end."""

import fcntl
import socket
import struct
import subprocess
import sys
import time
import traceback

from check import CHECKS, FIGURES
from lab import BIN, NODE, Lab

import claude, codex, gemini, opencode, qwen, several  # noqa: E401, F401 (they register their checks)


PROGRAMS = ["claude", "codex", "gemini", "opencode", "qwen"]


def loopback_up():
    """Where the network is our own and empty, loopback has to be brought up."""
    up_and_running = 0x1 | 0x40
    with socket.socket() as any_socket:
        try:
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", up_and_running))
        except PermissionError:
            pass


def version(program):
    environment = {"PATH": f"{NODE}:{BIN}:/usr/bin:/bin", "HOME": "/nonexistent"}
    done = subprocess.run([program, "--version"], env=environment, capture_output=True, text=True)
    return (done.stdout.strip() or done.stderr.strip() or "?").splitlines()[-1]


def main(wanted):
    loopback_up()
    chosen = [(agent, test) for agent, test in CHECKS if not wanted or agent in wanted or test.__name__ in wanted]
    if not chosen:
        sys.exit(f"no agent and no check of the name {' '.join(wanted)}; there are: " + ", ".join(sorted({agent for agent, _ in CHECKS})))
    for agent in PROGRAMS:
        print(f"   {agent}: {version(agent)}", flush=True)
    failed = 0
    for agent, test in chosen:
        begun = time.monotonic()
        try:
            test()
            word = "ok"
        except Exception:
            failed += 1
            word = "FAILED"
            traceback.print_exc()
        for lab in list(Lab.alive):  # One that failed while it was made.
            lab.close()
        print(f"   {word:6} {agent}: {test.__name__.replace('_', ' ')} ({time.monotonic() - begun:.0f} s)", flush=True)
    for name, milliseconds in FIGURES:
        print(f"   {milliseconds:6.0f} ms from the command's end to the model's next request: {name}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
