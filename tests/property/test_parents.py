"""Parents of classes in the log of changes, against plain dicts that are put together anew."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtail import LongTailClassifier, Teacher, load
from tests import oracle_hierarchy
from tests.conftest import examples

START = ["a", "a", "b", "b", "c"]
PARENTS = {"a": "p", "b": "p", "p": "q", "d": "q"}
names = st.sampled_from(["a", "b", "c", "d", "e"])
nodes = st.sampled_from(["a", "b", "c", "d", "p", "q"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("teach"), names),
        st.tuples(st.just("rename"), names, st.one_of(names, nodes)),
        st.tuples(st.just("remove"), names),
        st.tuples(
            st.just("hierarchy"), st.dictionaries(nodes, st.sets(nodes, max_size=2), max_size=4)
        ),
        st.tuples(st.just("move"), nodes, st.sets(nodes, max_size=2)),
        st.tuples(st.just("move"), nodes, st.sets(nodes, max_size=2)),
        st.tuples(st.just("undo"), st.integers(1, 8)),
        st.tuples(st.just("undo"), st.integers(1, 8)),
        st.just(("compact",)),
        st.just(("reopen",)),
    ),
    max_size=10,
)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("fitted") / "model"
    X = np.array([[i % 3, (i + 1) % 2, i % 2, 1] for i in range(len(START))])
    LongTailClassifier(random_state=0).fit(X, START, hierarchy=PARENTS).save(path)
    return path


class Oracle:
    """Classes by the order in which they came; a node is one of these, or a label.

    A node that is a label says how many classes there were: a later one may be called so.
    """

    def __init__(self):
        self.begin(sorted(set(START)), {child: {above} for child, above in PARENTS.items()})

    def begin(self, classes, parents):
        """Take a state as that of a file."""
        self.classes, self.n_base = list(classes), len(classes)
        self.log = []  # number, action, arguments
        self.base = parents and self.name_nodes(parents)

    def live(self, undoing=()):
        """Return the changes in effect."""
        taken = set(undoing)
        for number, action, *arguments in reversed(self.log):
            if action == "undo" and number not in taken:
                taken.update(arguments[0])
        return [change for change in self.log if change[0] not in taken and change[1] != "undo"]

    def label(self, k, live):
        """Return what a class is called."""
        given = [change[3] for change in live if change[1] == "rename" and change[2] == k]
        return given[-1] if given else self.classes[k]

    def alive(self, live):
        """Return which classes are there, by label."""
        removed = {change[2] for change in live if change[1] == "remove"}
        taught = {change[2] for change in live if change[1] == "teach"}
        there = [k for k in range(len(self.classes)) if k not in removed]
        there = [k for k in there if k < self.n_base or k in taught]
        return {self.label(k, live): k for k in there}

    def find(self, label, live):
        """Return the class that has a label, or would have it if it had documents."""
        removed = {change[2] for change in live if change[1] == "remove"}
        hidden = [k for k in range(len(self.classes)) if k not in removed]
        hidden = [k for k in hidden if self.label(k, live) == label]
        return self.alive(live).get(label, hidden[0] if hidden else None)

    def name_node(self, label):
        k = self.find(label, self.live())
        return ("label", label, len(self.classes)) if k is None else ("class", k, 0)

    def name_nodes(self, parents):
        return [
            (self.name_node(child), [self.name_node(p) for p in sorted(above)])
            for child, above in parents.items()
        ]

    def today(self, node, live):
        kind, name, n_before = node
        if kind == "label":
            late = [k for k in range(n_before, len(self.classes)) if self.classes[k] == name]
            return self.label(late[0], live) if late else name
        return self.label(name, live)

    def hierarchy(self, live):
        """Return the parents of each node; None where there are none, "cycle" where they fail."""
        whole = [number for number, action, *_ in live if action == "hierarchy"]
        start, last = self.base, whole[-1] if whole else 0
        for number, action, *arguments in live:
            if number == last and action == "hierarchy":
                start = arguments[0]
        if not start:
            return None
        parents, named = {}, set()  # a node that has been named stays one, if by itself
        for node, above in start:
            mine = parents.setdefault(self.today(node, live), set())
            mine.update(self.today(one, live) for one in above)
            named |= mine
        for number, action, *arguments in live:
            if action == "move" and number > last:
                node, above = arguments
                parents[self.today(node, live)] = {self.today(one, live) for one in above}
                named |= parents[self.today(node, live)]
        parents = {node: set() for node in named} | parents
        parents = {child: above - {child} for child, above in parents.items()}
        return "cycle" if has_cycle(parents) else parents


def has_cycle(parents):
    """Take away nodes without parents until none is left, or none can be taken."""
    left = {child: set(above) for child, above in parents.items()}
    while left:
        roots = {child for child, above in left.items() if not above}
        if not roots:
            return True
        left = {child: above - roots for child, above in left.items() if child not in roots}
    return False


def parents_of(model):
    hierarchy = model.hierarchy_
    if hierarchy is None:
        return None
    return {node: set(hierarchy.parents_of(node)) for node in hierarchy.nodes.tolist()}


def perform(teacher, oracle, path, step):
    """Do a step to both; what makes a cycle must be refused, and change nothing."""
    action, *arguments = step
    if action == "reopen":
        return Teacher(path)
    live = oracle.live()
    if action == "compact":
        teacher.compact()
        if oracle.log:
            oracle.begin(sorted(oracle.alive(live)), oracle.hierarchy(live))
        return teacher
    before, n_classes = teacher.model, len(oracle.classes)
    if action == "undo":
        undone = [arguments[0] + (oracle.log[0][0] - 1 if oracle.log else 0)]
        call, given, meant = (lambda n: teacher.undo(numbers=n)), [undone], [undone]
        after = oracle.live(undone)
    elif action == "hierarchy":
        pairs = [(child, above) for child, several in arguments[0].items() for above in several]
        call, given, meant = teacher.set_hierarchy, [pairs], [oracle.name_nodes(to_dict(pairs))]
    elif action == "move":
        label, above = arguments
        call, given = teacher.move_class, [label, sorted(above)]
        meant = [oracle.name_node(label), [oracle.name_node(one) for one in sorted(above)]]
    elif action == "teach":
        k = oracle.find(arguments[0], live)
        if k is None:
            k = len(oracle.classes)
            oracle.classes.append(arguments[0])
        call, given, meant = (lambda y: teacher.teach([[1, 0, 2, 0]], [y])), arguments, [k]
    else:
        method = teacher.rename_class if action == "rename" else teacher.remove_class
        k = oracle.alive(live).get(arguments[0])
        call, given, meant = method, arguments, [k, *arguments[1:]]
    if action != "undo":
        after = [*live, (10**6, action, *meant)] if None not in meant else live
    try:
        number = call(*given)
    except ValueError:
        del oracle.classes[n_classes:]
        assert teacher.model is before
        assert action not in ("hierarchy", "move") or is_wrong(oracle, action, *arguments, after)
        return teacher
    oracle.log.append((number, action, *meant))
    return teacher


def is_wrong(oracle, action, *arguments):
    """Return whether new parents must be refused."""
    *given, after = arguments
    live = oracle.live()
    classes, known = set(oracle.alive(live)), oracle.hierarchy(live)
    if action == "hierarchy":
        given = to_dict(given[0].items())
        # A change finds its own parent; what is called alike only later is no cycle.
        return not classes & set(given) or has_cycle(given)
    label, above = given
    if known is None or label not in {*classes, *known} or label in above:
        return True
    return oracle.hierarchy(after) == "cycle"


def to_dict(pairs):
    """Return the parents of each node that a pair has."""
    found = {}
    for child, above in pairs:
        several = above if isinstance(above, set) else {above}
        if several:
            found.setdefault(child, set()).update(several)
            for one in several:
                found.setdefault(one, set())
    return found


@pytest.mark.filterwarnings("ignore::longtail.exceptions.HierarchyWarning")
@given(steps)
@example([("teach", "d"), ("rename", "d", "e"), ("undo", 1)])  # a label that becomes a class
@example([("move", "a", set()), ("move", "p", {"a"}), ("undo", 1), ("undo", 2)])  # a cycle
@example([("rename", "a", "p"), ("move", "p", {"c"}), ("undo", 1)])  # two nodes become one
@example([("remove", "a"), ("hierarchy", {"a": {"b"}}), ("undo", 1), ("rename", "a", "e")])
@example([("move", "d", {"c"}), ("move", "d", set())])
@example([("move", "d", set()), ("move", "d", {"p"}), ("teach", "d"), ("rename", "d", "p")])
@example([("hierarchy", {}), ("move", "a", {"b"}), ("hierarchy", {"b": {"q"}}), ("undo", 2)])
@examples(120)
def test_parents_are_those_of_the_live_changes(fitted, steps):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(fitted, Path(folder) / "model"))
        teacher, other, oracle = Teacher(path), Teacher(path), Oracle()
        for step in steps:
            teacher = perform(teacher, oracle, path, step)
            expected = oracle.hierarchy(oracle.live())
            assert parents_of(teacher.model) == expected
            other.refresh()
            assert parents_of(other.model) == expected
        assert parents_of(load(path)) == expected if steps else True
        teacher.model.save(Path(folder) / "saved")
        assert parents_of(load(Path(folder) / "saved")) == parents_of(teacher.model)


def test_the_oracle_knows_cycles():
    assert has_cycle({"a": {"b"}, "b": {"a"}})
    assert not has_cycle({"a": {"b"}, "b": set()})
    assert oracle_hierarchy.ancestors("a", {"a": {"b"}}) == {"a", "b"}
