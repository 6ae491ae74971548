"""Packages import only packages below them, modules stay small, and every module has its own tests."""

import ast
import re
import textwrap
from pathlib import Path

from tests.packages import LAYERS, MODULES, OURS, imports, nodes, package


def test_every_package_has_a_layer():
    """A new package would be exempt from the rule below."""
    assert {package(name) for name in MODULES} == set(LAYERS)


def test_packages_import_only_packages_below_them():
    """Calls would go down and up between packages, and nobody could follow them."""
    wrong = [
        f"{name} imports {used}"
        for name, path in MODULES.items()
        for used, _ in imports(path)
        if used != "privatize"
        and package(used) != package(name)
        and LAYERS.index(package(used)) < LAYERS.index(package(name))
    ]
    assert wrong == []


def test_modules_of_a_package_do_not_import_each_other_in_a_circle():
    """No module could be understood, or tested, without the others; imports inside functions count."""
    graph = {name: {used for used, _ in imports(path) if used in MODULES} for name, path in MODULES.items()}
    finished: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join([*above[above.index(name) :], name])
        if name not in finished:
            for used in sorted(graph[name]):
                visit(used, (*above, name))
            finished.add(name)

    for name in graph:
        visit(name, ())


def test_private_names_stay_in_their_package():
    """A change of a private name would break another package, which nobody expects."""
    wrong = [
        f"{name} takes {private} from {used}"
        for name, path in MODULES.items()
        for used, names in imports(path)
        for private in names
        if private.startswith("_") and private != "__version__" and package(used) != package(name)
    ]
    assert wrong == []


def test_nobody_looks_up_our_modules_by_a_string():
    """Moving a module would break code that has its name in a string, and no tool would notice."""
    dotted = re.compile(r"privatize\.[a-z_]+(\.[a-z_]+)*")
    loggers = re.compile(r"getLogger\(\"privatize[a-z_.]*\"\)")
    wrong = []
    for name, path in MODULES.items():
        documented = {
            id(node.body[0].value)
            for node in nodes(path)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and isinstance(node.body[0], ast.Expr)
        }
        named = {
            id(argument)
            for node in nodes(path)
            if isinstance(node, ast.Call) and loggers.search(ast.unparse(node).replace("'", '"'))
            for argument in node.args
        }
        strings = [node for node in nodes(path) if isinstance(node, ast.Constant) and type(node.value) is str]
        for node in strings:
            found = dotted.fullmatch(node.value) or node.value == "privatize."
            if found and id(node) not in documented | named:
                wrong.append(f"{name}:{node.lineno}: {node.value}")
    assert wrong == []


def _length(function: ast.FunctionDef) -> int:
    """Return how many lines a function has, without its docstring."""
    first = function.body[0]
    text = ast.get_docstring(function) is not None
    return function.end_lineno - function.lineno + 1 - text * (first.end_lineno - first.lineno + 1)


def test_modules_classes_and_functions_are_small():
    """Code that does several jobs in one place is hard to find, to test and to change."""
    wrong = []
    for name, path in OURS.items():
        lines = path.read_text().count("\n")
        if lines > 500:
            wrong.append(f"{name} has {lines} lines")
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef) and (length := _length(node)) > 50:
                wrong.append(f"{name}: {node.name}() has {length} lines")
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(part, ast.FunctionDef) for part in node.body)
                if methods > 20:
                    wrong.append(f"{name}: {node.name} has {methods} methods")
    assert wrong == []


def _branches(node: ast.AST) -> int:
    """Return how many branches a node itself has, counted as radon does."""
    match node:
        case ast.If() | ast.IfExp() | ast.Assert():
            return 1
        case ast.For() | ast.While() | ast.AsyncFor():
            return 1 + bool(node.orelse)
        case ast.comprehension():
            return 1 + len(node.ifs)
        case ast.BoolOp():
            return len(node.values) - 1
        case ast.Try():
            return len(node.handlers) + bool(node.orelse)
        case ast.Match():
            return len(node.cases) - any(getattr(case.pattern, "pattern", ...) is None for case in node.cases)
    return 0


def _complexity(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the cyclomatic complexity of a function; functions and classes inside count by themselves."""
    found, left = 1, list(function.body)
    while left:
        node = left.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found += _branches(node)
            left += ast.iter_child_nodes(node)
    return found


def test_complexity_is_counted_as_radon_counts_it():
    """The rule would be another one than the documentation and the usual tool have."""
    source = """
    def function(x, y=(1 if z else 2)):
        for a in [b for b in x if b if c]:      # a loop, a comprehension with two conditions
            while a and b or not c:             # a loop, two operators
                a = 1 if b else 2
            else:                               # another branch
                def inner():
                    return 1 if x else 2        # not of this function
        try:
            assert x                            # one
        except (ValueError, TypeError):         # one
            pass
        except KeyError:                        # one
            pass
        else:                                   # one
            pass
        match x:
            case 1 | 2:                         # one
                pass
            case int() if x > 1:                # one
                return lambda: 1 if x else 2    # one
            case _:
                pass
    """
    outer, inner = (
        node for node in ast.walk(ast.parse(textwrap.dedent(source))) if isinstance(node, ast.FunctionDef)
    )
    assert (_complexity(outer), _complexity(inner)) == (17, 2)


def test_functions_have_few_branches():
    """A function with more ways through it than anybody can keep in mind hides mistakes."""
    wrong = [
        f"{name}: {node.name}() has complexity {_complexity(node)}"
        for name, path in OURS.items()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _complexity(node) > 15
    ]
    assert wrong == []


def test_every_module_says_its_job():
    """A reader could not see from the first lines of modules where to look for something."""
    for name, path in OURS.items():
        text = ast.get_docstring(nodes(path)[0])
        assert text and text.split("\n")[0].strip(), name


TESTS = Path(__file__).parent
# Public paths that only re-export what is tested where it is defined.
REEXPORTED = {Path("sklearn.py"), Path("sums.py"), Path("constraints.py")}
# Tests of no single module: what all of a kind must do, entire programs, and rules about the code itself.
SUITES = {"catalogue_attacks", "catalogue_leaks", "catalogue_processes", "contract", "isolation", "leaks"}
SUITES |= {
    "fingerprint_mutations",
    "design",
    "distribution",
    "docs",
    "fuzz",
    "golden",
    "layers",
    "public_names",
}


def test_every_module_has_a_test_file_of_its_own():
    """Somebody who changes a module would not know which tests to run, or that there are none."""
    ours = TESTS.parent / "privatize"
    modules = {path.relative_to(ours) for path in ours.rglob("*.py") if not path.stem.startswith("__")}
    own = {path.with_name(f"test_{path.name}") for path in modules - REEXPORTED}
    files = {path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    integrated = {path.name for path in files if path.parts[0] == "integration"}  # where a library is needed
    missing = {path for path in own - files if path.name not in integrated}
    assert sorted(map(str, missing)) == []
    others = {path for path in files - own if path.parts[0] not in ("integration", "statistical")}
    assert sorted(str(path) for path in others if path.stem.removeprefix("test_") not in SUITES) == []
