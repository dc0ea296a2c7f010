"""Classes renamed, merged and removed; terms that come later."""

import numpy as np
import pytest

from longtail import DoubleSamplingClassifier, LongTailClassifier
from longtail.model.entry import Changes, Entry, NewTerms
from tests.conftest import check_statistics

KINDS = [DoubleSamplingClassifier, LongTailClassifier]


def make_documents(n_classes=12, per_class=4, n_terms=30, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_terms, 0.1), n_classes)
    y = np.repeat(np.arange(n_classes), per_class)
    X = np.array([rng.multinomial(12, topics[c]) for c in y]).astype(float)
    return X, np.array([f"class {c:02}" for c in y])


def fit(kind, **options):
    X, y = make_documents(**options)
    return kind(candidates=20, random_state=0).fit(X, y), X, y


def same_scores(one, other, X, names=lambda label: label):
    k = len(one.classes_)
    mine, theirs = one.predict_topk(X, k), other.predict_topk(X, k)
    for i in range(len(X)):
        assert {names(c): s for c, s in zip(mine.classes[i], mine.scores[i], strict=True)} == dict(
            zip(theirs.classes[i], theirs.scores[i], strict=True)
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("new", ["a first one", "class 03b", "zebra, a much longer label"])
def test_a_renamed_class_keeps_everything_it_knows(kind, new):
    before, X, _ = fit(kind)
    after = fit(kind)[0].rename_class("class 03", new)
    assert sorted(after.classes_) == after.classes_.tolist()
    assert set(after.classes_) == set(before.classes_) - {"class 03"} | {new}
    same_scores(before, after, X, lambda label: new if label == "class 03" else label)
    after.rename_class(new, "class 03")
    assert after.statistics_ == before.statistics_
    np.testing.assert_array_equal(after.predict_topk(X, 5).scores, before.predict_topk(X, 5).scores)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("source", "into"), [("class 03", "class 05"), ("class 05", "class 03")])
def test_merged_classes_have_the_sums_of_both(kind, source, into):
    classifier, X, y = fit(kind)
    classifier.merge_classes(source, into)
    assert source not in classifier.classes_
    y = np.where(y == source, into, y)
    expected = kind(random_state=0).fit(X, y)
    assert classifier.statistics_ == expected.statistics_


@pytest.mark.parametrize("kind", KINDS)
def test_a_removed_class_is_never_predicted_again(kind):
    classifier, X, y = fit(kind)
    classifier.remove_class("class 03")
    check_statistics(classifier.statistics_)
    assert "class 03" not in classifier.predict_topk(X, 11).classes
    assert classifier.statistics_.n_documents == np.sum(y != "class 03")


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_done_to_classes_is_said_and_changes_nothing(kind):
    classifier, X, _ = fit(kind)
    before = classifier.predict_topk(X, 12)
    with pytest.raises(ValueError, match="there is no class 'class 99' in this model"):
        classifier.rename_class("class 99", "x")
    with pytest.raises(ValueError, match="add the documents of 'class 01' to it, merge"):
        classifier.rename_class("class 01", "class 02")
    with pytest.raises(ValueError, match="use labels of the same type"):
        classifier.rename_class("class 01", 7)
    with pytest.raises(ValueError, match="cannot merge class 'class 01' into itself"):
        classifier.merge_classes("class 01", "class 01")
    with pytest.raises(ValueError, match="there is no class 'class 99'"):
        classifier.merge_classes("class 01", "class 99")
    with pytest.raises(ValueError, match="there is no class 'class 99'"):
        classifier.remove_class("class 99")
    np.testing.assert_array_equal(classifier.predict_topk(X, 12).scores, before.scores)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_class_cannot_be_removed(kind):
    classifier, _, _ = fit(kind, n_classes=2)
    classifier.remove_class("class 00")
    with pytest.raises(ValueError, match="cannot remove the last class"):
        classifier.remove_class("class 01")


@pytest.mark.parametrize("kind", KINDS)
def test_terms_that_come_later_change_nothing_until_a_document_has_them(kind):
    classifier, X, _ = fit(kind)
    before = classifier.predict_topk(X, 5)
    entering = NewTerms(np.zeros(3, np.uint8), np.ones(3, np.int64))
    classifier._take_changes(Changes([Entry(1, "teach", new_terms=entering)]))
    wider = np.pad(X, ((0, 0), (0, 3)))
    np.testing.assert_array_equal(classifier.predict_topk(wider, 5).scores, before.scores)
    document = np.zeros((1, 33))
    document[0, 31] = 2
    classifier.partial_fit(document, ["class 04"])
    assert classifier.predict(document).tolist() == ["class 04"]
    classifier.forget(document, ["class 04"])
    np.testing.assert_array_equal(classifier.predict_topk(wider, 5).scores, before.scores)
