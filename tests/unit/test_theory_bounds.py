"""Theorem 1, Theorem 2, α and β: every constant and term by hand."""

import math

import numpy as np
import pytest

from longtail.paper import theory
from longtail.paper.theory import SampleSizes, sampling_constants

# Four documents: three of class 0, kept with probability 1/2, and one of class 1, always kept.
SIZES, PI = [3, 1], [0.5, 1.0]
# The same proportions with K = 6: one class of 15 documents, five of 1; the same α, β and factors.
SIZES_6, PI_6 = [15, 1, 1, 1, 1, 1], [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]
# m = 101, M = 50, κ = 2, K = 6: (K-1)/(Mκ) = 1/20.
SAMPLE = SampleSizes(n_documents=101, n_sampled=50, adversaries=2, n_classes=6)
# ln(2/δ) = 2 and ln(4K/δ) = 2 + ln(2K).
DELTA = 2 * math.exp(-2)


def test_theorem_form_by_hand():
    constants = sampling_constants(SIZES, PI, "theorem")
    # max(0.75/0.5, 0.25/1) and max(1/0.5, 1/1)
    assert (constants.alpha, constants.beta) == pytest.approx((1.5, 2.0))


def test_lemma_form_by_hand():
    constants = sampling_constants(SIZES, PI, "lemma")
    # π = 1.5 times the constants of the theorem
    assert (constants.alpha, constants.beta) == pytest.approx((2.25, 3.0))


def test_retention_form_by_hand():
    constants = sampling_constants(SIZES, PI)
    # Z = 0.75 · 0.5 + 0.25 · 1 = 0.625; α = 0.625 / 0.5, β = 1 / 0.5
    assert constants.form == "retention"
    assert (constants.alpha, constants.beta) == pytest.approx((1.25, 2.0))


def test_printed_factors_by_hand():
    factors = sampling_constants(SIZES, PI, "lemma").printed
    assert (factors.slow, factors.fast, factors.n_events) == (
        pytest.approx(math.sqrt(0.75)),
        pytest.approx(3.0),
        2,
    )


def test_proved_factors_of_the_printed_forms_by_hand():
    # sqrt(η)/q is sqrt(0.75) / (1/3) for class 0 and 0.5 / (2/3) for class 1.
    lemma = sampling_constants(SIZES, PI, "lemma")
    assert lemma.proved.slow == pytest.approx(3 * math.sqrt(0.75))
    assert lemma.proved.fast == pytest.approx(3.0)
    assert lemma.proved.n_events == 2
    theorem = sampling_constants(SIZES, PI, "theorem")
    assert theorem.proved.slow == pytest.approx(2 * math.sqrt(0.75))


def test_proved_factors_of_the_retention_form_by_hand():
    # π over the documents is 0.5, 0.5, 0.5, 1: variance 3/64, range 0.5; both divided by min π.
    proved = sampling_constants(SIZES, PI).proved
    assert proved.slow == pytest.approx(2 * math.sqrt(3 / 64))
    assert proved.fast == pytest.approx(1.0)
    assert proved.n_events == 1


@pytest.mark.parametrize("form", ["theorem", "lemma"])
def test_proved_slow_factor_is_at_most_the_root_of_alpha_beta(form):
    constants = sampling_constants([50, 30, 15, 5], [0.1, 0.3, 0.5, 1.0], form)
    assert constants.proved.slow <= math.sqrt(constants.alpha * constants.beta)
    assert constants.printed.slow == pytest.approx(math.sqrt(constants.alpha / constants.beta))


@pytest.mark.parametrize("form", ["theorem", "lemma"])
def test_printed_constants_are_not_one_without_sampling(form):
    constants = sampling_constants([6, 3, 1], np.ones(3), form)
    # max η = 0.6, and K = 3 times that
    assert constants.alpha == pytest.approx({"theorem": 0.6, "lemma": 1.8}[form])
    assert constants.beta == pytest.approx({"theorem": 1.0, "lemma": 3.0}[form])


def test_retention_constants_are_one_without_sampling():
    constants = sampling_constants([6, 3, 1], np.ones(3))
    assert (constants.alpha, constants.beta) == (1.0, 1.0)
    assert (constants.proved.slow, constants.proved.fast) == (0.0, 0.0)


def test_theorem_form_is_the_lemma_form_where_pi_adds_up_to_one():
    pi = [0.2, 0.3, 0.5]
    theorem, lemma = (sampling_constants([6, 3, 1], pi, form) for form in ("theorem", "lemma"))
    assert (theorem.alpha, theorem.beta) == pytest.approx((lemma.alpha, lemma.beta))


def test_retention_alpha_is_the_lemma_alpha_where_every_class_is_cut_to_the_same_size():
    # π ∝ 1/η: the sample is balanced either way, so q = 1/K and α = K max η.
    sizes, pi = np.array([60, 30, 10]), np.array([1 / 6, 1 / 3, 1.0])
    retention = sampling_constants(sizes, pi, "retention")
    assert retention.alpha == pytest.approx(3 * 0.6)
    balanced = sampling_constants(sizes, np.full(3, 1 / 3), "lemma")
    assert balanced.alpha == pytest.approx(retention.alpha)


def test_theorem_1_by_hand():
    # ln(1/δ) = 4, m = 100, ℜ = 0.09, r = 0.02
    bound = theory.theorem_1(0.1, 0.09, 0.02, n_documents=100, delta=math.exp(-4))
    assert dict(bound.terms) == {
        "empirical": 0.1,
        "complexity": 0.09,
        # 5/2 (0.3 + 0.1) sqrt(0.04)
        "variance": pytest.approx(0.2),
        # 25/48 · 0.04
        "remainder": pytest.approx(1 / 48),
    }
    assert bound.total == pytest.approx(0.39 + 1 / 48)
    assert not bound.is_vacuous


def test_theorem_2a_as_printed_by_hand():
    constants = sampling_constants(SIZES_6, PI_6, "theorem")
    bound = theory.theorem_2a(0.1, 0.2, constants, SAMPLE, DELTA, corrected=False)
    log = 2 + math.log(12)
    assert dict(bound.terms) == {
        "empirical": pytest.approx(0.15),
        "complexity": pytest.approx(0.3),
        # 1.5 sqrt(5 · 2 / (2 · 50 · 2))
        "deviation": pytest.approx(1.5 * math.sqrt(0.05)),
        # sqrt(2 · 1.5 L / (2 · 100)) and 7 · 2 L / (3 · 100), with m - 1 = 100
        "shift_slow": pytest.approx(math.sqrt(0.015 * log)),
        "shift_fast": pytest.approx(14 * log / 300),
    }
    assert list(bound.terms)[-2:] == ["shift_slow", "shift_fast"]


def test_theorem_2a_as_proved_by_hand():
    constants = sampling_constants(SIZES_6, PI_6)
    bound = theory.theorem_2a(0.1, 0.2, constants, SAMPLE, DELTA)
    log = 2 + math.log(2)  # ln(4/δ): one event, not K
    assert bound.terms["empirical"] == pytest.approx(0.125)
    assert bound.terms["deviation"] == pytest.approx(1.25 * math.sqrt(0.05))
    assert bound.terms["shift_slow"] == pytest.approx(2 * math.sqrt(3 / 64 * 2 * log / 100))
    assert bound.terms["shift_fast"] == pytest.approx(7 * log / 300)


def test_theorem_2b_as_printed_by_hand():
    constants = sampling_constants(SIZES_6, PI_6, "theorem")
    bound = theory.theorem_2b(0.1, 0.09, 0.02, constants, SAMPLE, DELTA, corrected=False)
    log = 2 + math.log(12)
    assert dict(bound.terms) == {
        "empirical": pytest.approx(0.15),
        "complexity": pytest.approx(0.135),
        "shift_slow": pytest.approx(math.sqrt(0.015 * log)),
        "shift_fast": pytest.approx(14 * log / 300),
        # 5 · 1.5 / 2 · (0.3 + 0.1) sqrt(5 · 2 / 100)
        "variance": pytest.approx(1.5 * math.sqrt(0.1)),
        # 25 · 1.5 / 48 · 2 / 50
        "remainder": pytest.approx(25 * 1.5 / 48 * 0.04),
    }
    assert bound.theorem == "2b"


def test_theorem_2b_as_proved_has_the_dependence_in_its_last_term():
    constants = sampling_constants(SIZES_6, PI_6)
    bound = theory.theorem_2b(0.1, 0.09, 0.02, constants, SAMPLE, DELTA)
    # 25 · 1.25 / 48 · (5 · 2) / (50 · 2)
    assert bound.terms["remainder"] == pytest.approx(25 * 1.25 / 48 * 0.1)
    assert bound.terms["variance"] == pytest.approx(1.25 * math.sqrt(0.1))


def test_exact_chromatic_number_makes_the_deviation_independent_of_kappa():
    constants = sampling_constants(SIZES_6, PI_6)
    for kappa in (1, 2, 5):
        sizes = SampleSizes(101, 50, kappa, 6)
        bound = theory.theorem_2a(0.1, 0.2, constants, sizes, DELTA, chromatic_number=kappa)
        # 1.25 sqrt(2 / (2 · 50))
        assert bound.terms["deviation"] == pytest.approx(1.25 * math.sqrt(0.02))


def test_no_sampling_recovers_theorem_1_in_the_retention_form():
    constants = sampling_constants([60, 30, 11], np.ones(3))
    sizes = SampleSizes(n_documents=101, n_sampled=101, adversaries=2, n_classes=3)
    sampled = theory.theorem_2b(0.1, 0.09, 0.02, constants, sizes, delta=0.1)
    full = theory.theorem_1(0.1, 0.09, 0.02, n_documents=101, delta=0.05)
    assert (sampled.terms["shift_slow"], sampled.terms["shift_fast"]) == (0.0, 0.0)
    for name, value in full.terms.items():
        assert sampled.terms[name] == pytest.approx(value, rel=1e-12)
    assert sampled.total == pytest.approx(full.total, rel=1e-12)


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("form", ["theorem", "lemma", "retention"])
def test_only_risk_and_complexity_remain_as_documents_grow_without_end(form, corrected):
    constants = sampling_constants(SIZES_6, PI_6, form)
    sizes = SampleSizes(10**16, 10**16, 2, 6)
    for bound in (
        theory.theorem_2a(0.1, 0.0, constants, sizes, 0.05, corrected=corrected),
        theory.theorem_2b(0.1, 0.0, 0.2, constants, sizes, 0.05, corrected=corrected),
    ):
        assert bound.total == pytest.approx(constants.alpha * 0.1, abs=1e-6)


def test_bounds_grow_without_end_as_delta_goes_to_zero():
    constants = sampling_constants(SIZES_6, PI_6)
    totals = [
        [
            theory.theorem_1(0.1, 0.1, 0.1, 100, delta).total,
            theory.theorem_2a(0.1, 0.1, constants, SAMPLE, delta).total,
            theory.theorem_2b(0.1, 0.1, 0.1, constants, SAMPLE, delta).total,
        ]
        for delta in (1e-1, 1e-10, 1e-100, 1e-300)
    ]
    assert np.all(np.diff(totals, axis=0) > 0)
    assert np.all(np.array(totals[-1]) > 3)


def test_lemma_4_as_printed_fails_and_as_proved_holds():
    """Three classes; the scorer errs on class 0 only, so R = P(0) and α E = η_0.

    Class 2 alone makes β large, and the printed term sqrt(2 α L / (β (m-1))) small, although the
    deviation of η_0 has nothing to do with class 2.
    """
    probabilities, after = np.array([0.5, 0.499, 0.001]), np.array([0.4, 0.59, 0.01])
    m, delta, n_draws = 10**12, 0.1, 400
    sizes = SampleSizes(m, m, 1, 3)
    rng = np.random.default_rng(0)
    failures = {True: 0, False: 0}
    for class_sizes in rng.multinomial(m, probabilities, size=n_draws):
        constants = sampling_constants(class_sizes, after, "lemma")
        for corrected in failures:
            terms = theory.theorem_2a(0.4, 0.0, constants, sizes, delta, corrected=corrected).terms
            bound = terms["empirical"] + terms["shift_slow"] + terms["shift_fast"]
            failures[corrected] += bound < 0.5
    # Allowed to fail with probability δ / 2 = 5 %.
    assert failures[False] / n_draws > 0.15
    assert failures[True] == 0


def test_theorem_form_fails_without_sampling():
    # A scorer that is always wrong has R = 1; the printed α of an unsampled set is max η < 1.
    constants = sampling_constants([10**12] * 3, np.ones(3), "theorem")
    sizes = SampleSizes(3 * 10**12, 3 * 10**12, 2, 3)
    assert theory.theorem_2a(1.0, 0.0, constants, sizes, 0.05, corrected=False).total < 0.34


def test_retention_alpha_covers_the_true_one():
    """max P(y)/q(y) = Σ P(z) π_z / min π exceeds estimate plus shift at most δ/2 of the time."""
    probabilities, pi = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.4, 1.0])
    true_alpha = probabilities @ pi / 0.1
    sizes = SampleSizes(2000, 500, 1, 3)
    misses = 0
    for class_sizes in np.random.default_rng(0).multinomial(2000, probabilities, size=500):
        constants = sampling_constants(class_sizes, pi)
        terms = theory.theorem_2a(1.0, 0.0, constants, sizes, 0.2).terms
        bound = terms["empirical"] + terms["shift_slow"] + terms["shift_fast"]
        misses += true_alpha > bound
    assert misses / 500 <= 0.1


CONSTANTS = sampling_constants(SIZES_6, PI_6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.theorem_1(0.1, 0.1, 0.1, 10, 0.0), "strictly between 0 and 1; got 0.0"),
        (lambda: theory.theorem_1(0.1, 0.1, 0.1, 10, 1.0), "strictly between 0 and 1; got 1.0"),
        (lambda: theory.theorem_1(0.1, 0.1, 0.1, 10, np.nan), "strictly between 0 and 1; got nan"),
        (
            lambda: theory.theorem_1(1.1, 0.1, 0.1, 10, 0.1),
            "empirical_risk must be between 0 and 1",
        ),
        (lambda: theory.theorem_1(0.1, -0.1, 0.1, 10, 0.1), "complexity must be a finite number"),
        (lambda: theory.theorem_1(0.1, 0.1, 0.3, 10, 0.1), "variance must be between 0 and 0.25"),
        (lambda: theory.theorem_1(0.1, 0.1, 0.1, 0, 0.1), "n_documents must be an integer of at"),
        (lambda: SampleSizes(10, 5, 6, 6), r"at most n_classes - 1 \(here 5\); got 6"),
        (lambda: SampleSizes(10, 5, 0, 6), "adversaries must be an integer of at least 1; got 0"),
        (lambda: SampleSizes(10, 11, 2, 6), r"at most n_documents \(here 10\).*got 11"),
        (lambda: SampleSizes(1, 1, 2, 6), "n_documents must be an integer of at least 2; got 1"),
        (lambda: sampling_constants([3, 0], PI), "class 1 has 0 documents"),
        (lambda: sampling_constants([3], [1.0]), "with at least 2 entries"),
        (lambda: sampling_constants(SIZES, [0.0, 1.0]), r"in \(0, 1\]; class 0 has 0"),
        (lambda: sampling_constants(SIZES, [0.5, 1.5]), r"in \(0, 1\]; class 1 has 1.5"),
        (lambda: sampling_constants(SIZES, [0.5]), r"each class \(here 2\); got shape \(1,\)"),
        (
            lambda: sampling_constants(SIZES, PI, "main"),
            "form must be one of 'theorem', 'lemma', 'retention'; got 'main'",
        ),
        (
            lambda: theory.theorem_2a(0.1, 0.1, sampling_constants(SIZES, PI), SAMPLE, 0.1),
            "of the same classes; got 2 and 6 classes",
        ),
        (
            lambda: theory.theorem_2a(0.1, 0.1, CONSTANTS, SAMPLE, 0.1, chromatic_number=1),
            r"n_classes - 1 \(here 2 and 5\); got 1",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
