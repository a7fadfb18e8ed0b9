"""Ctrl+C ends a build at once: this process, the processes that run notebooks, and their kernels.

A terminal sends Ctrl+C to all of them. By themselves, those that run notebooks would print where
they were and go on with the next notebook. To kill them is not enough, because their pool starts
another in the place of each. So each leaves the terminal's group, watches the process that has
started it, and ends when that is gone. A kernel ends by itself when nobody runs its notebook.

All this needs processes that are forked, as on Linux. On macOS and Windows Python starts them in
another way, and there they may print where they were.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STOPPED = "Stopped. The same command begins again."

# This process, while its children run notebooks, and None at other times. In the children too it is
# None, because what they start are kernels.
_parent: int | None = None


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let Ctrl+C end this process, and let its children, which run notebooks, end with it."""
    global _parent
    _parent = os.getpid()
    before = signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        _parent = None
        signal.signal(signal.SIGINT, before)


def _end(*_: Any) -> None:
    """End this process and its children, with one sentence."""
    for process in multiprocessing.active_children():
        process.kill()
    print(STOPPED, file=sys.stderr, flush=True)
    os._exit(1)


def _begin_in_child() -> None:
    """What each new child of this process does first. Nothing, unless it is to run notebooks."""
    global _parent
    if _parent is None:
        return
    parent, _parent = _parent, None  # what this child starts is left alone
    os.setpgrp()  # out of the group to which the terminal sends Ctrl+C
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: it then has another one."""
    while os.getppid() == parent:
        time.sleep(0.1)
    os._exit(1)


# Python calls this in each child, always: it has no way to take it back.
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_in_child)
