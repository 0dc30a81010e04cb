#!/usr/bin/env python3
"""Runs a command, and stops single threads of its processes by ptrace while the others run.

    hold.py COMMAND ARGUMENT ..

With Yama's restrictions only an ancestor may use ptrace, which is why this starts the command. The command finds the path
of a Unix socket in HOLDER. A line of thread ids on that socket stops these threads until the connection ends. The answer is
"held" or the error.
"""

import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import threading

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread):
    if libc.ptrace(request, thread, None, None) == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def hold(connection):
    words = connection.makefile("rw")
    held, answer = [], "held"
    try:
        for thread in map(int, words.readline().split()):
            ptrace(SEIZE, thread)
            held.append(thread)
            ptrace(INTERRUPT, thread)
            os.waitpid(thread, WALL)
    except OSError as error:
        answer = str(error)
    words.write(answer + "\n")
    words.flush()
    words.read()
    for thread in held:
        try:
            ptrace(DETACH, thread)
        except OSError:
            # The process has been killed in the meantime.
            pass


def serve(listener):
    # One at a time, on one thread: only the thread that has seized another may release it.
    while True:
        connection, _ = listener.accept()
        with connection:
            hold(connection)


with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
    path = os.path.join(folder, "holder.sock")
    listener.bind(path)
    listener.listen()
    threading.Thread(target=serve, args=[listener], daemon=True).start()
    ended = subprocess.call(sys.argv[1:], env={**os.environ, "HOLDER": path})
sys.exit(ended)
