"""Processes that are started for a run, and ended by their ids whatever became of it."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess

from waiting import wait_until

# Seconds.
ENDED_WITHIN = 10


def free_port():
    """A port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(command, log, environment):
    """Starts a program whose output goes to a file, in a session of its own."""
    with open(log, "ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def stop(process):
    """Ends a program and all that it started."""
    # A child may outlive its parent, but not leave its session.
    family = session(process.pid)
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(ENDED_WITHIN)
    for pid in {*family, *session(process.pid)}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(ENDED_WITHIN)
    wait_until("the end of all processes", lambda: not session(process.pid), ENDED_WITHIN)


def session(leader):
    """Ids of the processes that live in the session of this one."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                # After the name in parentheses: state, parent, group, session.
                state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(of) == leader and state != "Z":
                    found.add(int(entry.name))
    return found
