"""Real-time priority of a node."""

import os

# Below that of the guard and of the frames' thread, which must run while a node hangs.
PRIORITY = 5


def raise_process():
    """Gives this process real-time priority; returns why not, or `None`.

    Threads inherit it when they are created: to be called before DDS starts its own.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except (AttributeError, OSError) as error:
        return f"no real-time priority ({error}): a busy computer may cause stops"
    return None
