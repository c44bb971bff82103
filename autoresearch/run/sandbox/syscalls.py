"""System-call numbers that the filter names, for x86-64 and arm64 (None: the architecture lacks the call).

From Linux's ``arch/x86/entry/syscalls/syscall_64.tbl`` and ``include/uapi/asm-generic/unistd.h``.
"""

from __future__ import annotations

LAST_KNOWN = 462
"""``mseal``, Linux 6.10: calls with a higher number were unknown when this list was written."""

DENIED: dict[str, tuple[int | None, int | None]] = {
    # looking into or steering other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "process_mrelease": (448, 448),
    "mincore": (27, 232),  # what the machine's other processes read lately
    "cachestat": (451, 451),
    "vmsplice": (278, 75),
    # large kernel surfaces that training doesn't need
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "personality": (135, 92),
    "lookup_dcookie": (212, 18),
    "syslog": (103, 116),
    "modify_ldt": (154, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    # file systems and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    # the machine itself
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    # memory that no limit of ours counts: System V and POSIX queues and segments
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
}

ABSENT: dict[str, tuple[int | None, int | None]] = {
    # answered with "no such system call", so that libraries fall back
    "clone3": (435, 435),  # its flags lie behind a pointer, out of the filter's sight
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "splice": (275, 76),  # a byte in a queue then holds a page of a file, however large, or of another queue
    "tee": (276, 77),
    "sendfile": (40, 71),
    "landlock_add_rule": (445, 445),  # rules and filters take memory that no limit counts
    "seccomp": (317, 277),
    "preadv2": (327, 286),  # can tell what is in the page cache without waiting for it
    "pwritev2": (328, 287),
    "inotify_init": (253, None),  # tells of other processes' reads
    "inotify_init1": (294, 26),
}

IGNORED: dict[str, tuple[int | None, int | None]] = {
    # They steer what all processes share: the page cache, the disk, locks on files that others read too. Programs use
    # them for speed or in good order, so they do nothing and say that they did.
    "fadvise64": (221, 223),
    "readahead": (187, 213),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "sync_file_range": (277, 84),
    "flock": (73, 32),
}

SOCKETS: dict[str, tuple[int | None, int | None]] = {
    # denied where no network namespace separates the run from the machine
    "socket": (41, 198),
    "bind": (49, 200),
    "connect": (42, 203),
    "listen": (50, 201),
}

METADATA: dict[str, tuple[int | None, int | None]] = {
    # Landlock leaves the modes, owners and times of all files of our user to the run, the keys' too, and what is
    # written there outlives it. Where no mount namespace separates them, these calls do nothing and say that they did.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
}

ATTRIBUTES: dict[str, tuple[int | None, int | None]] = {
    # likewise, and answered as by a file system that has none
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}

WITHIN: dict[str, tuple[int | None, int | None]] = {
    # what a program needs to compute on its own memory and to answer on channels that it has: no file is named, opened
    # or mapped, no process made
    "write": (1, 64),
    "writev": (20, 66),
    "sendmsg": (46, 211),
    "close": (3, 57),
    "fstat": (5, 80),
    "poll": (7, None),
    "ppoll": (271, 73),
    "munmap": (11, 215),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "futex": (202, 98),
    "futex_waitv": (449, 449),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "restart_syscall": (219, 128),
    "sigaltstack": (131, 132),
    "wait4": (61, 260),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "rseq": (334, 293),
    "membarrier": (324, 283),
    "arch_prctl": (158, None),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getcpu": (309, 168),
    "getrandom": (318, 278),
    "getrusage": (98, 165),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
}

READ = (0, 63)
LSEEK = (8, 62)
TGKILL = (234, 131)
TIMER_CREATE = (222, 107)
MMAP = (9, 222)
CLONE = (56, 220)
IOCTL = (16, 29)
PRCTL = (157, 167)
RT_SIGACTION = (13, 134)
MADVISE = (28, 233)
FCNTL = (72, 25)

OF_OTHERS: dict[str, tuple[tuple[int, int], int, int | None]] = {
    # calls that limit or slow down a process: which argument names it, what argument 0 is where it tells the kind
    "prlimit64": ((302, 261), 0, None),
    "sched_setparam": ((142, 118), 0, None),
    "sched_setscheduler": ((144, 119), 0, None),
    "sched_setaffinity": ((203, 122), 0, None),
    "sched_setattr": ((314, 274), 0, None),
    "setpriority": ((141, 140), 1, 0),  # PRIO_PROCESS
    "ioprio_set": ((251, 30), 1, 1),  # IOPRIO_WHO_PROCESS
}
SOCKET = (41, 198)
SOCKETPAIR = (53, 199)
SETSOCKOPT = (54, 208)
