# The self-test: each probe runs where candidates run and says whether its limit fired. The one of CPU time is a
# program like any other (sandbox.cc).
import errno


def interfaces():
    """Network interfaces of the slot; a namespace of its own has the loopback only."""
    return [name for _, name in socket.if_nameindex()]


def refused(call, *errors):
    try:
        call()
    except OSError as error:
        return error.errno in errors
    except MemoryError:
        return errno.ENOMEM in errors
    return False


def spawn_until_refused():
    """Children stay until this process ends; more than the limit allows would be a broken limit."""
    for _ in range(4 * CONFIG["limits"]["RLIMIT_NPROC"]):
        try:
            if os.fork() == 0:
                signal.pause()
        except OSError as error:
            return error.errno == errno.EAGAIN
    return False


def fill(folder):
    def write():
        with open(folder + "/probe", "wb", buffering=0) as file:
            for _ in range(CONFIG["tmp_bytes"] // 65536 + 2):
                file.write(b"x" * 65536)
    return write


def open_many():
    return [os.open("/dev/null", os.O_RDONLY) for _ in range(CONFIG["limits"]["RLIMIT_NOFILE"] + 1)]


def grow():
    with open("/tmp/grow", "wb", buffering=0) as file:
        file.truncate(CONFIG["limits"]["RLIMIT_FSIZE"] + 1)


def map_uncounted():
    """Shared memory of no file stays when no process has it in memory: nothing would count it."""
    address = LIBC.mmap(None, ctypes.c_size_t(4096), 3, 0x21, -1, ctypes.c_long(0))
    check(-1 if address == -1 else 0, "mmap")


def outside():
    """Everything that must not be writable, from the root of what a candidate sees."""
    folders = ["/", "/usr", "/dev", "/usr/lib", "/usr/bin"]
    return all(refused(lambda: os.open(f + "/probe", os.O_CREAT | os.O_WRONLY), errno.EROFS, errno.EACCES)
               for f in folders)


PROBES = {
    "memory": lambda: refused(lambda: bytearray(CONFIG["limits"]["RLIMIT_AS"]), errno.ENOMEM),
    "network": lambda: refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM), errno.EPERM),
    "write outside": outside,
    "temporary folder": lambda: refused(fill("/tmp"), errno.ENOSPC) and refused(fill("/dev/shm"), errno.ENOSPC),
    "file size": lambda: refused(grow, errno.EFBIG),
    "descriptors": lambda: refused(open_many, errno.EMFILE),
    "system calls": lambda: all(refused(c, errno.EPERM, errno.ENOSYS) for c in (
        lambda: check(LIBC.unshare(0x10000000), "unshare"), lambda: check(LIBC.ptrace(0, 0, 0, 0), "ptrace"),
        lambda: mount("tmpfs", "/usr", "tmpfs", 0, None), map_uncounted, lambda: os.execv("/usr/bin/true", ["true"]))),
    "capabilities": lambda: refused(lambda: os.chroot("/tmp"), errno.EPERM) and os.getuid() != 0,
    "process namespace": lambda: os.getpid() == 2 and not os.path.exists("/proc/1"),
    "environment": lambda: not os.environ,
    "processes": spawn_until_refused,
}


def probe(report, name):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    os.write(report, json.dumps(bool(PROBES[name]())).encode())


def job_probe(job):
    """Names of the limits that did not fire, with what else went wrong."""
    failed = []
    for name in PROBES:
        fired, result = answer_of("probe", {"name": name}, 10, 20)
        if fired is not True:
            failed.append(f"{name} ({result['end']} {result['detail'] or result['err'][-300:]})".replace("\n", " "))
    return {"failed": failed}
