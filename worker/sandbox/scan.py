# Which candidates a confirming run judges again: all but those that use nothing but plain Python over plain values. The
# scan decides no verdict and bans nothing, so it errs on the side of confirming: what it does not know is a finding.
import symtable

SAFE_MODULES = {"array", "bisect", "cmath", "collections", "collections.abc", "copy", "datetime", "fractions", "heapq",
                "itertools", "math", "operator", "random", "re", "statistics", "string", "typing", "functools"}
STAR_MODULES = {"typing", "math", "collections", "itertools", "heapq", "bisect"}
FUTURES = {"annotations", "division", "print_function", "absolute_import", "unicode_literals", "generators",
           "with_statement", "nested_scopes"}
# Reach names by text, other code, the interpreter's own state or the world outside.
NAMES = set("breakpoint compile copyright credits delattr dir eval exec exit getattr globals help input license locals "
            "memoryview open quit setattr vars".split())
SAFE_DUNDERS = {"__init__", "__name__"}
# Of the safe modules and of values: attributes by text; text that is evaluated; ways to `type`, to other classes' tables,
# to a generator's state; what makes dunders.
ATTRIBUTES = set("mro register with_traceback attrgetter methodcaller get_origin get_args get_type_hints get_overloads "
                 "singledispatch singledispatchmethod update_wrapper wraps total_ordering partialmethod cached_property "
                 "get_field vformat Formatter format_map Scanner ForwardRef SystemRandom UserDict UserList UserString "
                 "NamedTuple TypedDict Protocol runtime_checkable no_type_check no_type_check_decorator overload "
                 "dataclass_transform fromfile tofile setstate seed bltns".split())
PREFIXES = ("_", "gi_", "cr_", "ag_", "tb_", "f_", "co_", "func_")
# Methods of plain values that are also names of modules; all other such names may be a module inside a module.
METHODS = {"copy", "string", "random", "time", "datetime", "bisect", "array", "collections"}
MODULES = set(sys.stdlib_module_names) - METHODS
CONTEXTS = (ast.Store, ast.Del)


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


def loaded_names(text):
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def attribute(name):
    if name.startswith(PREFIXES):
        return name not in SAFE_DUNDERS
    return name in ATTRIBUTES or name in MODULES


def look(node):
    """What is to be said of one node, or None."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name not in SAFE_MODULES:
                return "imports " + alias.name
    elif isinstance(node, ast.ImportFrom):
        module = node.module or "."
        if module == "__future__":
            return None if all(a.name in FUTURES for a in node.names) else "imports from __future__"
        if module not in SAFE_MODULES or node.level:
            return "imports " + module
        for alias in node.names:
            if alias.name == "*" and module not in STAR_MODULES or attribute(alias.name):
                return f"imports {alias.name} from {module}"
    elif isinstance(node, ast.Attribute):
        if attribute(node.attr):
            return "uses attribute " + node.attr
        if isinstance(node.ctx, CONTEXTS):
            return f"sets attribute {node.attr}"
        if node.attr == "format" and not isinstance(node.value, ast.Constant):
            return "formats by a computed text"
    elif isinstance(node, ast.Name):
        if node.id in NAMES or node.id in ATTRIBUTES:
            return "uses " + node.id
    elif isinstance(node, ast.AsyncFunctionDef):
        return "is asynchronous"
    elif isinstance(node, ast.ClassDef):
        if node.keywords or any(not isinstance(base, ast.Name) for base in node.bases):
            return f"class {node.name} has computed bases"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and re.search(r"\{[^{}]*[.\[]", node.value):
            return "has a text that formats attributes"
    elif isinstance(node, ast.MatchClass):
        return "matches a class"
    return None


def dunders(node):
    """Identifiers of any kind (names, arguments, aliases, classes, patterns) that only the language gives meaning."""
    if isinstance(node, (ast.Constant, ast.Attribute)):
        return []
    texts = []
    for _, value in ast.iter_fields(node):
        texts += [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, str)]
    return [text for text in texts if text.startswith("__") and text not in SAFE_DUNDERS]


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


def findings(candidate, tests, program, own):
    """`own`: names of the tests that the candidate is to define; empty: all that are not builtins."""
    try:
        tree, test_tree, whole = ast.parse(candidate), ast.parse(tests), ast.parse(program)
    except (SyntaxError, ValueError):
        return ["does not parse apart from the tests"]
    found = []
    parts = [ast.dump(node) for part in (tree, test_tree) for node in part.body]
    if [ast.dump(node) for node in whole.body] != parts:
        found.append("changes how the tests parse")
    for node in ast.walk(tree):
        for said in [look(node)] + ["has the name " + name for name in dunders(node)]:
            if said and said not in found:
                found.append(said)
    if type_as_value(tree):
        found.append("uses type as a value")
    if dunder_text(tree):
        found.append("has a text with a double underscore")
    used, known = loaded_names(tests), set(dir(builtins))
    needed = (known | used) - set(own or used - known)
    for name in sorted(bound_names(candidate) & needed):
        found.append("rebinds " + name)
    return found


def job_scan(job):
    """Why the candidate is to be confirmed; empty when nothing speaks for it."""
    def scan():
        return findings(job["candidate"], job["tests"], job["program"], job["own"])

    found, result = answer_of(scan, 10, 20)
    if found is None:
        found = [f"the scan gave no answer ({result['end']} {result['detail']})"]
    return {"findings": found}
