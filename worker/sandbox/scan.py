# Which candidates a confirming run judges again: all but those that use nothing but plain Python over plain values. The
# scan decides no verdict and bans nothing, so it errs on the side of confirming: modules, their names, attributes and
# base classes are lists of what is known to be harmless, and whatever is on none is a finding.
import symtable


def named(text):
    return frozenset(text.split())


def public(module):
    return frozenset(name for name in dir(module) if not name.startswith("_"))


# Module -> the names of it that give plain values, or functions of such that run no text, reach no attribute by text,
# and make no classes but namedtuples. Not among them: views, and mappings that make some, which compare as whatever they
# are given, [1, 1, 1] for one; OrderedDict, whose length the methods of dict change alone.
HARMLESS = {
    "array": named("array"), "bisect": public(bisect) - {"bltns"}, "cmath": public(cmath), "math": public(math),
    "heapq": named("heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    "itertools": public(itertools), "operator": public(operator) - named("attrgetter methodcaller call"),
    "collections": named("Counter defaultdict deque namedtuple"),
    "collections.abc": frozenset(collections.abc.__all__) - named(
        "ItemsView KeysView Mapping MappingView MutableMapping ValuesView"), "copy": named("copy deepcopy"),
    "datetime": named("date datetime time timedelta timezone MINYEAR MAXYEAR"), "fractions": named("Fraction"),
    "functools": named("cache cmp_to_key lru_cache partial reduce"),
    "random": named("betavariate choice choices expovariate gauss getrandbits normalvariate paretovariate randint "
                    "random randrange sample shuffle triangular uniform"),
    "re": named("A ASCII DOTALL I IGNORECASE M MULTILINE Match Pattern S VERBOSE X compile error escape findall "
                "finditer fullmatch match search split sub subn"),
    "statistics": named("fmean geometric_mean harmonic_mean mean median median_grouped median_high median_low mode "
                        "multimode pstdev pvariance quantiles stdev variance"),
    "string": named("ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable "
                    "punctuation whitespace"),
    "typing": named("AbstractSet Any AnyStr Callable ClassVar Collection Container Counter DefaultDict Deque Dict "
                    "Final FrozenSet Generator Hashable Iterable Iterator List Literal MutableSequence MutableSet "
                    "NoReturn Optional Reversible Sequence Set Sized Text Tuple Type TypeVar Union cast"),
}
MODULES = {name: sys.modules[name] for name in HARMLESS}
FUTURES = named("annotations division print_function absolute_import unicode_literals generators with_statement "
                "nested_scopes")
# Reach names by text, other code, the interpreter's own state or the world outside.
NAMES = named("breakpoint compile copyright credits delattr dir eval exec exit getattr globals help input license "
              "locals memoryview open quit setattr vars")
SAFE_DUNDERS = {"__init__", "__name__"}
PREFIXES = ("_", "gi_", "cr_", "ag_", "tb_", "f_", "co_", "func_")
PLAIN = (str, bytes, bytearray, list, tuple, dict, set, frozenset, int, float, complex, range, type(i for i in ()),
         collections.deque, collections.Counter, collections.OrderedDict, array.array, fractions.Fraction, re.Pattern,
         re.Match, datetime.date, datetime.datetime, datetime.time, datetime.timedelta)
# `abc`: collections.abc; from_iterable: of itertools.chain. Attributes by text, and files, are not for plain programs.
ATTRIBUTES = frozenset().union(*map(public, PLAIN), *HARMLESS.values(), {"abc", "from_iterable"}) - named(
    "format_map fromfile tofile")
# A name of the candidate's own classes is harmless unless it may be somebody else's.
TAKEN = frozenset().union(*map(public, MODULES.values()), named("copy_with mro register"))
EXCEPTIONS = {name: value for name, value in vars(builtins).items()
              if isinstance(value, type) and issubclass(value, Exception)}


def bound_names(text):
    """Names that running `text` binds in its global namespace."""
    names, tables = set(), [symtable.symtable(text, "text", "exec")]
    top = tables[0]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                if table is top or symbol.is_declared_global():
                    names.add(symbol.get_name())
    return names


def global_loads(text):
    """Names that `text` takes from its global namespace, or from builtins."""
    names, tables = set(), [symtable.symtable(text, "text", "exec")]
    top = tables[0]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        names |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (table is top or s.is_global())}
    return names


def loaded_names(text):
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def texts_of(node):
    """The identifiers in the fields of a node itself."""
    for _, value in ast.iter_fields(node):
        yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, str))


def is_import_of(node, names):
    """import math, import re: binds a module of `names` to its own name."""
    return isinstance(node, ast.Import) and all(a.asname is None and a.name in names for a in node.names)


def starred(tree):
    """The harmless modules that are imported with all their names."""
    return {node.module for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)} & set(HARMLESS)


def bindings(tree, but):
    """Identifiers that nodes other than those which `but` is true of bind, or may bind."""
    names = set().union(*(public(MODULES[name]) for name in starred(tree)))
    for node in ast.walk(tree):
        if but(node) or isinstance(node, (ast.Constant, ast.Attribute, ast.keyword)):
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        else:
            names.update(texts_of(node))
    return names


def own_names(text):
    """What a reference defines for the tests; a module that it imports is no part of it."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return bound_names(text) - {a.asname or a.name.partition(".")[0] for node in imports for a in node.names}


class Look:
    """What is to be said of single nodes of a candidate."""

    def __init__(self, tree):
        plain_class = lambda node: isinstance(node, ast.ClassDef) and not node.decorator_list
        # A class has its name in one scope; elsewhere it may be a builtin's.
        classes = {node.name for node in ast.walk(tree) if plain_class(node)} - set(dir(builtins))
        rebound = bindings(tree, plain_class)
        self.bases = (classes | {"object"} | set(EXCEPTIONS)) - rebound
        self.initialised = self.bases | ({"super"} - rebound)
        self.bare = {id(node.func) for node in ast.walk(tree)
                     if isinstance(node, ast.Call) and not node.args and not node.keywords}
        self.attributes = ATTRIBUTES | (self.defined(tree) - TAKEN)

    @staticmethod
    def defined(tree):
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef):
                        names.add(part.name)
                    elif isinstance(part, ast.Assign):
                        names.update(target.id for target in part.targets if isinstance(target, ast.Name))
        return names

    def attribute(self, name):
        return name not in SAFE_DUNDERS if name.startswith(PREFIXES) else name not in self.attributes

    def at(self, node):
        """A finding, or None."""
        said = getattr(self, "at_" + type(node).__name__, None)
        return said(node) if said else None

    def at_Import(self, node):
        for alias in node.names:
            if alias.name not in HARMLESS:
                return "imports " + alias.name

    def at_ImportFrom(self, node):
        module = node.module or "."
        names = [alias.name for alias in node.names]
        if module == "__future__":
            return None if FUTURES.issuperset(names) else "imports from __future__"
        if module not in HARMLESS or node.level:
            return "imports " + module
        for name in names:
            if name not in HARMLESS[module] | {"*"}:
                return f"imports {name} from {module}"

    def at_Attribute(self, node):
        if self.attribute(node.attr):
            return "uses attribute " + node.attr
        if not isinstance(node.ctx, ast.Load):
            return "sets attribute " + node.attr
        if node.attr == "format" and not isinstance(node.value, ast.Constant):
            return "formats by a computed text"
        if node.attr == "copy" and id(node) not in self.bare:
            return "uses copy with arguments"  # Counter.copy(int) is type
        if node.attr == "__init__" and not self.is_own(node.value):
            return "initialises what is not its own"

    def is_own(self, value):
        """super(), a plain class or a fresh object of one."""
        value = value.func if isinstance(value, ast.Call) else value
        return isinstance(value, ast.Name) and value.id in self.initialised

    def at_Name(self, node):
        return "uses " + node.id if node.id in NAMES else None

    def at_AsyncFunctionDef(self, node):
        return "is asynchronous"

    def at_ClassDef(self, node):
        if node.keywords or any(not isinstance(base, ast.Name) or base.id not in self.bases for base in node.bases):
            return f"class {node.name} has bases that are not plain"

    def at_Constant(self, node):
        if isinstance(node.value, str) and re.search(r"\{[^{}]*[.\[]", node.value):
            return "has a text that formats attributes"

    def at_MatchClass(self, node):
        return "matches a class"


def dunders(node):
    """Identifiers of any kind (names, arguments, aliases, classes, patterns) that only the language gives meaning."""
    if isinstance(node, (ast.Constant, ast.Attribute)):
        return []
    return [text for text in texts_of(node) if text.startswith("__") and text not in SAFE_DUNDERS]


def type_as_value(tree):
    """`type` but to compare what it says of one value: type(x) is int. What else it gives can make classes."""
    harmless = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for part in (node.left, *node.comparators):
                if isinstance(part, ast.Call) and len(part.args) == 1 and not part.keywords:
                    harmless.add(id(part.func))
    return any(isinstance(n, ast.Name) and n.id == "type" and id(n) not in harmless for n in ast.walk(tree))


def dunder_text(tree):
    """Texts that name what plain programs don't, docstrings apart."""
    documentation = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            documentation.add(id(body[0].value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            if "__" in node.value and node.value not in ("__main__",):
                return True
    return False


def names_between(candidate, tree, tests, own):
    """What the candidate binds of the tests' names, and takes of those that they define: it could ask them."""
    used, known = loaded_names(tests), set(dir(builtins))
    imports = lambda node: is_import_of(node, HARMLESS)
    modules = {alias.name for node in ast.walk(tree) if imports(node) for alias in node.names}
    inside = {id(alias) for node in ast.walk(tree) if imports(node) for alias in node.names}
    modules -= bindings(tree, lambda node: imports(node) or id(node) in inside)
    for name in sorted(bound_names(candidate) & (known | used) - own - modules):
        yield "rebinds " + name
    for name in sorted(global_loads(candidate) & bound_names(tests) - modules):
        yield f"uses {name}, which the tests define"


def star_names(tree):
    """Names that `from MODULE import *` may have brought and that are not harmless."""
    brought = frozenset().union(*(public(MODULES[name]) - HARMLESS[name] for name in starred(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in brought:
            yield f"uses {node.id} of an import of all"


def findings(candidate, tests, program, own):
    """`own`: names of the tests that the candidate is to define."""
    try:
        tree, test_tree, whole = ast.parse(candidate), ast.parse(tests), ast.parse(program)
    except (SyntaxError, ValueError):
        return ["does not parse apart from the tests"]
    found = []
    parts = [ast.dump(node) for part in (tree, test_tree) for node in part.body]
    if [ast.dump(node) for node in whole.body] != parts:
        found.append("changes how the tests parse")
    look = Look(tree)
    for node in ast.walk(tree):
        for said in [look.at(node)] + ["has the name " + name for name in dunders(node)]:
            if said and said not in found:
                found.append(said)
    if type_as_value(tree):
        found.append("uses type as a value")
    if dunder_text(tree):
        found.append("has a text with a double underscore")
    found += dict.fromkeys(star_names(tree))
    return found + list(names_between(candidate, tree, tests, own))


def scan(report, candidate, tests, program, own, reference):
    found = findings(candidate, tests, program, set(own) or own_names(reference))
    os.write(report, json.dumps(found).encode())


def job_scan(job):
    """Why the candidate is to be confirmed; empty when nothing speaks for it."""
    give = {name: job[name] for name in ("candidate", "tests", "program", "own", "reference")}
    found, result = answer_of("scan", give, 60, 100)
    if result["end"] == "broken":
        return result
    if found is None:
        found = [f"the scan gave no answer ({result['end']} {result['detail']})"]
    return {"findings": found}
