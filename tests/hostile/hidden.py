"""What hostile programs share: to go on without the first thread, whose end ``/proc`` shows as that of the process."""

from __future__ import annotations

BURN = """
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(10000))
"""
HIDE = f"""{BURN}
import ctypes, platform, threading
def without_first_thread(action):
    def act():
        time.sleep(0.1)  # until it is gone
        action()
    threading.Thread(target=act).start()
    ctypes.CDLL(None).syscall(93 if platform.machine() == "aarch64" else 60, 0)  # exit, of this thread alone
def in_child(action, name=b"python"):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
        without_first_thread(action)
"""
