"""What runs in a worker: one call after the other, each answered once and by this process only."""

from __future__ import annotations

import os
import pickle
import struct
from contextlib import suppress
from multiprocessing import connection

from worthwhile.live.task import in_words

# In front of an answer: which call it answers, and which process does. A task may fork, and its copy may come back from
# the call as well, at any time.
LABEL = struct.Struct("<QQ")


def make_calls(pipe: connection.Connection) -> None:
    """Until the other end is closed."""
    own = os.getpid()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=pipe.close)
    pipe.send_bytes(LABEL.pack(0, own))
    with suppress(EOFError, OSError):
        while True:
            message = pipe.recv_bytes()
            answer = called(message[LABEL.size :])
            if os.getpid() != own:
                os._exit(0)
            pipe.send_bytes(LABEL.pack(LABEL.unpack_from(message)[0], own) + answer)


def called(message: bytes) -> bytes:
    """Whether the call went well, and what it returned or raised."""
    try:
        call, arguments, named = pickle.loads(message)
        return pickle.dumps((True, call(*arguments, **named)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> bytes:
    """An exception that can be sent, or its words if it cannot."""
    try:
        message = pickle.dumps((False, error), pickle.HIGHEST_PROTOCOL)
        pickle.loads(message)  # some can be written and not read: those whose __init__ wants other arguments
        return message
    except Exception:
        return pickle.dumps((False, RuntimeError(in_words(error))))
