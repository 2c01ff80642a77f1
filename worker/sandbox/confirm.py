# The confirming run: the tests run in one sample, over the reference's own helpers, and what they call lies in another,
# which never sees them. Only plain data crosses, as JSON: numbers, text, containers of such; what is read is of exact
# types, whatever wrote it. Every other value stays where it is and is named by a number.
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
SEQUENCES = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": collections.deque}
PLAIN_KINDS = {type(None), bool, str, int, float, complex, bytes, bytearray, range, array.array, fractions.Fraction,
               decimal.Decimal, type, *MAPPINGS, *SEQUENCES.values()}
TYPES = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}
MAX_LINE = 1 << 26


class NotPlain(Exception):
    pass


def plain_kind(value):
    """Its type, or the plain one that it inherits from: a namedtuple is a tuple, a member of an IntEnum an int."""
    kind = type(value)
    if kind in PLAIN_KINDS:
        return kind
    return next((base for base in type.mro(kind) if base in PLAIN_KINDS), kind)


def encode(value, refer):
    """`refer` names a value that is not plain."""
    kind = plain_kind(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return str.__str__(value)
    if kind is int:
        return {"int": hex(int.__int__(value))}
    if kind is float:
        return {"float": float.hex(value)}
    if kind is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if kind in (bytes, bytearray):
        return {kind.__name__: base64.b64encode(value).decode()}
    if kind is range:
        return {"range": [hex(part) for part in (value.start, value.stop, value.step)]}
    if kind is array.array:
        return {"array": [value.typecode, [encode(part, refer) for part in value]]}
    if kind in (fractions.Fraction, decimal.Decimal):
        return {kind.__name__: str(value)}
    if kind in MAPPINGS:
        return {"dict": [[encode(key, refer), encode(part, refer)] for key, part in dict.items(value)]}
    if kind is type and TYPES.get(value.__name__) is value:
        return {"type": value.__name__}
    for name, container in SEQUENCES.items():
        if kind is container:
            return {name: [encode(part, refer) for part in container.__iter__(value)]}
    return {"ref": refer(value)}


def comparable(value):
    """What stands for a value that only its process has where it is compared: plain data, or nothing does."""
    if isinstance(value, (type({}.keys()), type({}.items()))):
        return set(value)
    if isinstance(value, types.MappingProxyType):
        return dict(value)
    raise NotPlain("the tests compare a value that is not plain data")


def decode(data, resolve):
    if data is None or type(data) in (bool, str):
        return data
    ((kind, value),) = data.items()
    if kind == "int":
        return int(value, 16)
    if kind == "float":
        return float.fromhex(value)
    if kind == "complex":
        return complex(*[float.fromhex(part) for part in value])
    if kind in ("bytes", "bytearray"):
        return (bytes if kind == "bytes" else bytearray)(base64.b64decode(value))
    if kind == "range":
        return range(*[int(part, 16) for part in value])
    if kind == "array":
        return array.array(value[0], [decode(part, resolve) for part in value[1]])
    if kind in ("Fraction", "Decimal"):
        return (fractions.Fraction if kind == "Fraction" else decimal.Decimal)(value)
    if kind == "dict":
        return {decode(key, resolve): decode(part, resolve) for key, part in value}
    if kind == "type":
        return TYPES[value]
    if kind == "ref":
        return resolve(value)
    return SEQUENCES[kind]([decode(part, resolve) for part in value])


class Wire:
    def __init__(self, read, write):
        self.read, self.write, self.buffer = read, write, b""

    def send(self, message):
        left = memoryview(json.dumps(message).encode() + b"\n")
        while left:
            left = left[os.write(self.write, left):]

    def receive(self):
        while b"\n" not in self.buffer:
            part = os.read(self.read, 65536)
            if not part or len(self.buffer) > MAX_LINE:
                return None
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)


# ---- the side of the candidate ------------------------------------------------------------------------------------


def raised(error):
    """As the nearest exception that the other side knows too."""
    name = next((kind.__name__ for kind in type.mro(type(error)) if EXCEPTIONS.get(kind.__name__) is kind), "")
    return {"raised": name, "text": message_of(error)}


def candidate_side(report, read, write, candidate, setup):
    guard()
    wire, kept, space = Wire(read, write), [], {}

    def refer(value):
        kept.append(value)
        return len(kept) - 1

    def resolve(number):
        return space[number] if isinstance(number, str) else kept[number]

    def answer(question):
        target = resolve(question["on"])
        arguments = [decode(part, resolve) for part in question["args"]]
        options = {name: decode(part, resolve) for name, part in question["options"].items()}
        operations = {"call": lambda: target(*arguments, **options), "len": lambda: len(target),
                      "bool": lambda: bool(target), "list": lambda: list(target), "str": lambda: str(target),
                      "next": lambda: next(target), "item": lambda: target[arguments[0]],
                      "plain": lambda: comparable(target)}
        value = operations[question["what"]]()
        return {"value": encode(value, refer), "args": [encode(part, refer) for part in arguments]}

    try:
        exec(candidate, space)
        exec(setup, space)
        wire.send({"ready": True})
    except BaseException as error:
        wire.send(raised(error))
        return
    while True:
        question = wire.receive()
        if question is None:
            return
        try:
            wire.send(answer(question))
        except BaseException as error:
            wire.send(raised(error))


# ---- the side of the tests ----------------------------------------------------------------------------------------


class Remote:
    """A value of the candidate's process. Tests may call it, pass it back, go through it, compare what is plain of it;
    its own comparisons are never asked."""

    def __init__(self, wire, key):
        self.__dict__.update(wire=wire, key=key)

    def __call__(self, *arguments, **options):
        return ask(self, "call", arguments, options)

    def __len__(self):
        return ask(self, "len")

    def __bool__(self):
        return ask(self, "bool")

    def __iter__(self):
        return iter(ask(self, "list"))

    def __next__(self):
        return ask(self, "next")

    def __getitem__(self, key):
        return ask(self, "item", (key,))

    def __str__(self):
        return ask(self, "str")

    def plain(self):
        value = ask(self, "plain")
        if type(value) is Remote:
            raise NotPlain("the tests compare a value that is not plain data")
        return value

    def __eq__(self, other):
        return self.plain() == other

    def __ne__(self, other):
        return self.plain() != other

    def no_order(self, other):
        raise NotPlain("the tests order a value that is not plain data")

    __lt__ = __le__ = __gt__ = __ge__ = no_order
    __hash__ = None


def refer_back(value):
    if type(value) is Remote:
        return value.key
    raise NotPlain(f"the tests pass a {type(value).__name__}, which is not plain data")


def ask(remote, what, arguments=(), options=None):
    wire = remote.wire
    sent = [encode(part, refer_back) for part in arguments]
    named = {name: encode(part, refer_back) for name, part in (options or {}).items()}
    wire.send({"on": remote.key, "what": what, "args": sent, "options": named})
    answer = wire.receive()
    if answer is None:
        raise NotPlain("the candidate's process ended")
    if "raised" in answer:
        if answer["text"].startswith("NotPlain:"):
            raise NotPlain(answer["text"])
        raise EXCEPTIONS.get(answer["raised"], RuntimeError)(answer["text"])
    give_back(arguments, sent, answer["args"], wire)
    return decode(answer["value"], lambda key: Remote(wire, key))


def give_back(arguments, sent, returned, wire):
    """What the call changed in its arguments."""
    for value, before, after in zip(arguments, sent, returned):
        if type(value) in (list, dict, set, bytearray) and after != before:
            changed = decode(after, lambda key: Remote(wire, key))
            if type(value) is type(changed):
                value.clear()
                (value.extend if type(value) in (list, bytearray) else value.update)(changed)


def tests_side(report, read, write, trusted, setup, tests, names):
    guard()
    wire, space = Wire(read, write), {}
    try:
        first = wire.receive()
        if first is None or "raised" in first:
            raise NotPlain("the candidate alone: " + (first or {"text": "its process ended"})["text"])
        exec(trusted, space)
        imports = [node for node in ast.parse(setup).body if isinstance(node, (ast.Import, ast.ImportFrom))]
        exec(compile(ast.Module(imports, []), "setup", "exec"), space)
        own = own_names(trusted) | own_names(setup)
        for name in names if names is not None else own & loaded_names(tests):
            space[name] = Remote(wire, name)
        exec(tests, space)
        outcome = "completed"
    except BaseException as error:
        outcome = "raised " + message_of(error)
    os.write(report, outcome.encode("utf-8", "replace"))


def job_confirm(job):
    to_candidate, to_tests = os.pipe(), os.pipe()
    theirs = {name: job[name] for name in ("candidate", "setup")}
    ours = {name: job[name] for name in ("trusted", "setup", "tests", "names")}
    samples = [Sample("candidate", job["cpu"], theirs, (to_candidate[0], to_tests[1])),
               Sample("tests", job["cpu"], ours, (to_tests[0], to_candidate[1]))]
    for fd in (*to_candidate, *to_tests):
        os.close(fd)
    theirs, ours = attend(samples, job["wall"])
    if theirs["end"] == "broken":
        return theirs
    if ours["end"] == "exit":
        outcome, _, detail = bytes(samples[1].data["report"]).decode("utf-8", "replace").partition(" ")
        if outcome in OUTCOMES:
            ours.update(end=outcome, detail=detail)
    if theirs["end"] in ("cpu", "wall", "memory", "signal") and ours["end"] == "raised":
        ours.update(end=theirs["end"], detail=theirs["detail"] or ours["detail"])
    ours["cpu"] += theirs["cpu"]
    ours["out"], ours["err"] = theirs["out"], theirs["err"]
    return ours
