"""What hostile programs of the sandbox tests share: to go on without one's first thread, where ``/proc`` looks first."""

from __future__ import annotations

HIDE = """
import ctypes, platform, threading
def without_first_thread(action):
    threading.Thread(target=action).start()
    ctypes.CDLL(None).syscall(93 if platform.machine() == "aarch64" else 60, 0)  # exit, of this thread alone
def in_child(action, name=b"python"):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
        without_first_thread(action)
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(10000))
"""
