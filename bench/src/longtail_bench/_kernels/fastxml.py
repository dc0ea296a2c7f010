"""Trees of FastXML: grown node by node, and followed from the root to a leaf.

A tree is a table of nodes: `children[node]` are two node numbers, or -1 and -1 for a leaf, and the
entries from `starts[node]` to `starts[node + 1] - 1` are (term, weight) of an inner node's
separator, term `n_terms` being the constant, or (class, share) of a leaf. A node is numbered after
its parent.
"""

from __future__ import annotations

import math

import numpy as np

from longtail_bench._kernels.jit import inner, kernel
from longtail_bench._kernels.random import random_bits, uniform
from longtail_bench._kernels.ranking import keep_best

_ARMIJO = 0.01  # share of the predicted decrease that a step must reach
_MOST_HALVINGS = 20
_SMALLEST_CURVATURE = 1e-12
_SMALLEST_RISE = 1e-6  # of the mean nDCG, below which a partition counts as settled


@kernel
def rank_classes(gains, ranks):
    """Fill each class's place by descending gain, ties by class: the order of the highest DCG."""
    order = np.argsort(-gains, kind="mergesort")
    for place in range(len(order)):
        ranks[order[place]] = place


@inner
def discounted_gain(gains, ranks):
    """Return the DCG of both children: gains over log2(2 + rank)."""
    total = 0.0
    for child in range(2):
        for c in range(gains.shape[1]):
            total += gains[child, c] / math.log2(2.0 + ranks[child, c])
    return total


@kernel
def part_classes(gains, sides):
    """Move each class to the child that ranks it higher until the nDCG stops rising; returns it.

    `gains[child, c]` sums the gains of the documents of class c in a child, and is updated. A
    document has one class, so its nDCG is its gain times the discount of that class's rank: all
    documents of a class move together. `sides[c]` is the child, or -1 where both children rank the
    class alike and its documents stay where they are.
    """
    n_classes = gains.shape[1]
    ranks = np.empty((2, n_classes), np.int64)
    smallest_rise = _SMALLEST_RISE * gains.sum()
    best = -1.0
    sides[:] = -1
    while True:
        for child in range(2):
            rank_classes(gains[child], ranks[child])
        reached = discounted_gain(gains, ranks)
        if best >= 0.0 and reached - best <= smallest_rise:
            return reached
        best = reached
        for c in range(n_classes):
            if ranks[0, c] != ranks[1, c]:
                child = 0 if ranks[0, c] < ranks[1, c] else 1
                gains[child, c] += gains[1 - child, c]
                gains[1 - child, c] = 0.0
                sides[c] = child


@inner
def fill_slopes(margins, sides, costs, slopes, curves):
    """Fill the first and second derivative of each document's logistic loss by its margin."""
    for i in range(len(margins)):
        share = 1.0 / (1.0 + math.exp(-margins[i]))
        slopes[i] = costs[sides[i]] * (share - sides[i])
        curves[i] = costs[sides[i]] * share * (1.0 - share)


@inner
def logistic_rise(margins, moves, step, sides, costs):
    """Return by how much the logistic loss rises when the margins move by `step * moves`."""
    rise = 0.0
    for i in range(len(margins)):
        sign = 1.0 if sides[i] == 1 else -1.0
        before, after = -sign * margins[i], -sign * (margins[i] + step * moves[i])
        loss = max(after, 0.0) + math.log1p(math.exp(-abs(after)))
        loss -= max(before, 0.0) + math.log1p(math.exp(-abs(before)))
        rise += costs[sides[i]] * loss
    return rise


@inner
def violation(weight, gradient):
    """Return how far zero is from the subgradient of |weight| + loss."""
    if weight > 0.0:
        return abs(gradient + 1.0)
    if weight < 0.0:
        return abs(gradient - 1.0)
    return max(0.0, abs(gradient) - 1.0)


@inner
def sweep_columns(
    starts,
    rows,
    values,
    columns,
    gradients,
    curvatures,
    curves,
    largest_before,
    n_active,
    weights,
    targets,
    moves,
):
    """One pass of coordinate descent over the quadratic model; returns violations and columns left.

    `targets` are the weights of the model's optimum so far, `moves` the change of the margins they
    make. A column at zero that is far from leaving it is put behind the active ones.
    """
    total, largest = 0.0, 0.0
    inner = 1.0 - largest_before / len(moves)
    k = 0
    while k < n_active:
        j = columns[k]
        gradient = gradients[j] + (targets[j] - weights[j]) * _SMALLEST_CURVATURE
        for place in range(starts[j], starts[j + 1]):
            row = rows[place]
            gradient += values[place] * curves[row] * moves[row]
        away = violation(targets[j], gradient)
        if targets[j] == 0.0 and abs(gradient) < inner:
            n_active -= 1
            columns[k], columns[n_active] = columns[n_active], columns[k]
            continue
        k += 1
        total += away
        largest = max(largest, away)
        curvature = curvatures[j]
        if gradient + 1.0 < curvature * targets[j]:
            step = -(gradient + 1.0) / curvature
        elif gradient - 1.0 > curvature * targets[j]:
            step = -(gradient - 1.0) / curvature
        else:
            step = -targets[j]
        if abs(step) < 1e-12:
            continue
        step = min(max(step, -10.0), 10.0)
        targets[j] += step
        for place in range(starts[j], starts[j + 1]):
            moves[rows[place]] += values[place] * step
    return total, largest, n_active


@inner
def fill_gradients(
    starts,
    rows,
    values,
    slopes,
    curves,
    weights,
    largest_before,
    columns,
    gradients,
    curvatures,
):
    """Fill both derivatives of the loss by each weight; returns violations and columns left.

    A column at zero that is far from leaving it is put behind the active ones.
    """
    total, largest, n_active = 0.0, 0.0, len(columns)
    inner = 1.0 - largest_before / len(slopes)
    k = 0
    while k < n_active:
        j = columns[k]
        gradient, curvature = 0.0, _SMALLEST_CURVATURE
        for place in range(starts[j], starts[j + 1]):
            row, value = rows[place], values[place]
            gradient += value * slopes[row]
            curvature += value * value * curves[row]
        gradients[j], curvatures[j] = gradient, curvature
        if weights[j] == 0.0 and abs(gradient) < inner:
            n_active -= 1
            columns[k], columns[n_active] = columns[n_active], columns[k]
            continue
        away = violation(weights[j], gradient)
        total += away
        largest = max(largest, away)
        k += 1
    return total, largest, n_active


@inner
def shuffle(seed, node, draw, columns):
    """Put the columns into a random order, with draws `draw`, `draw + 1` and so on."""
    for k in range(len(columns)):
        rest = np.uint64(len(columns) - k)
        other = k + np.int64(random_bits(seed, node, draw + k) % rest)
        columns[k], columns[other] = columns[other], columns[k]


@kernel
def fit_separator(
    starts, rows, values, sides, costs, seed, node, tolerance, most_steps, most_passes, weights
):
    """Fit l1-regularised logistic regression into `weights` (all zero before).

    Minimises |w|_1 + sum_i cost_i log(1 + exp(-sign_i w.x_i)), the matrix given by columns, the
    sign being that of `sides` (0 or 1) and the cost that of its side. Newton steps whose quadratic
    model is minimised by coordinate descent, with a line search and with columns at zero left out
    while they stay there (Yuan, Ho and Lin 2012, newGLMNET). Stops where the violations fall below
    `tolerance` times those at zero.
    """
    n_documents, n_columns = len(sides), len(weights)
    margins, moves = np.zeros(n_documents), np.zeros(n_documents)
    slopes, curves = np.empty(n_documents), np.empty(n_documents)
    gradients, curvatures = np.zeros(n_columns), np.empty(n_columns)
    targets, columns = np.zeros(n_columns), np.arange(n_columns)
    first_total, largest, inner_tolerance, draw = 0.0, np.inf, 1.0, 0
    for step in range(most_steps):
        fill_slopes(margins, sides, costs, slopes, curves)
        total, largest, n_active = fill_gradients(
            starts, rows, values, slopes, curves, weights, largest, columns, gradients, curvatures
        )
        if step == 0:
            first_total = total
        if total <= tolerance * first_total:
            break
        moves[:] = 0.0
        n_left, inner_largest, n_passes = n_active, np.inf, 0
        while n_passes < most_passes:
            shuffle(seed, node, draw, columns[:n_left])
            draw += n_left
            total, inner_largest, n_left = sweep_columns(
                starts,
                rows,
                values,
                columns,
                gradients,
                curvatures,
                curves,
                inner_largest,
                n_left,
                weights,
                targets,
                moves,
            )
            n_passes += 1
            if total <= inner_tolerance * first_total:
                if n_left == n_active:
                    break
                n_left, inner_largest = n_active, np.inf  # look once more at those left out
        if not take_step(
            margins, moves, sides, costs, gradients, columns[:n_active], weights, targets
        ):
            break
        if n_passes == 1:
            inner_tolerance *= 0.25  # one pass was enough: ask more of the next


@inner
def take_step(margins, moves, sides, costs, gradients, columns, weights, targets):
    """Move weights and margins towards the targets as far as the objective falls enough."""
    slope = 0.0
    for j in columns:
        slope += gradients[j] * (targets[j] - weights[j]) + abs(targets[j]) - abs(weights[j])
    step = 1.0
    for _ in range(_MOST_HALVINGS):
        rise = logistic_rise(margins, moves, step, sides, costs)
        for j in columns:
            rise += abs(weights[j] + step * (targets[j] - weights[j])) - abs(weights[j])
        if rise <= _ARMIJO * step * slope:
            for j in columns:
                weights[j] += step * (targets[j] - weights[j])
                targets[j] = weights[j]
            for i in range(len(margins)):
                margins[i] += step * moves[i]
            return True
        step *= 0.5
    return False


@kernel
def grow(array, size):
    """Return the array with room for `size` entries, at least doubled where it must grow."""
    if size <= len(array):
        return array
    grown = np.empty(max(size, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown


@kernel
def gather_columns(indptr, indices, data, n_terms, documents, places, starts, rows, values, terms):
    """Fill the columns of a node's documents, the constant last; returns their number.

    `places` is -1 everywhere before and after.
    """
    n_columns = 0
    for document in documents:
        for j in range(indptr[document], indptr[document + 1]):
            term = indices[j]
            if places[term] < 0:
                places[term] = n_columns
                terms[n_columns] = term
                starts[n_columns + 1] = 0
                n_columns += 1
            starts[places[term] + 1] += 1
    starts[0] = 0
    for column in range(n_columns):
        starts[column + 1] += starts[column]
    for row in range(len(documents)):
        document = documents[row]
        for j in range(indptr[document], indptr[document + 1]):
            column = places[indices[j]]
            rows[starts[column]] = row
            values[starts[column]] = data[j]
            starts[column] += 1
    for column in range(n_columns, 0, -1):  # each start has run on to the next column's
        starts[column] = starts[column - 1]
    starts[0] = 0
    for column in range(n_columns):
        places[terms[column]] = -1
    end = starts[n_columns]
    for row in range(len(documents)):
        rows[end + row] = row
        values[end + row] = 1.0
    terms[n_columns] = n_terms
    starts[n_columns + 1] = end + len(documents)
    return n_columns + 1


@inner
def draw_sides(documents, classes, class_gains, places, seed, sides, present):
    """Toss a coin for each document and let the classes part; False where one side is empty.

    `places` is -1 everywhere before and after.
    """
    n_present = 0
    for document in documents:
        c = classes[document]
        if places[c] < 0:
            places[c] = n_present
            present[n_present] = c
            n_present += 1
    gains = np.zeros((2, n_present))
    for row in range(len(documents)):
        document = documents[row]
        c = classes[document]
        sides[row] = np.int8(uniform(seed, document, len(documents)) < 0.5)
        gains[sides[row], places[c]] += class_gains[c]
    moved = np.empty(n_present, np.int8)
    part_classes(gains, moved)
    n_right = 0
    for row in range(len(documents)):
        side = moved[places[classes[documents[row]]]]
        if side >= 0:
            sides[row] = side
        n_right += sides[row]
    for k in range(n_present):
        places[present[k]] = -1
    return 0 < n_right < len(documents)


@inner
def split_documents(indptr, indices, data, weights, documents, sides):
    """Send each document to the side of its score; returns how many go right (score >= 0).

    `weights` are dense over the terms, the constant last.
    """
    n_right = 0
    for row in range(len(documents)):
        document = documents[row]
        score = weights[-1]
        for j in range(indptr[document], indptr[document + 1]):
            score += data[j] * weights[indices[j]]
        sides[row] = 1 if score >= 0.0 else 0
        n_right += sides[row]
    return n_right


@inner
def part_documents(sides, documents):
    """Put the documents of side 0 first, otherwise in their order; returns their number."""
    right = np.empty(len(documents), documents.dtype)
    n_left, n_right = 0, 0
    for row in range(len(documents)):
        if sides[row] == 0:
            documents[n_left] = documents[row]
            n_left += 1
        else:
            right[n_right] = documents[row]
            n_right += 1
    documents[n_left:] = right[:n_right]
    return n_left


@inner
def fill_leaf(documents, classes, class_gains, places, numbers, values):
    """Fill the classes of a leaf and their mean gains; returns how many.

    `places` is -1 everywhere before and after.
    """
    n_present = 0
    for document in documents:
        c = classes[document]
        if places[c] < 0:
            places[c] = n_present
            numbers[n_present], values[n_present] = c, 0.0
            n_present += 1
        values[places[c]] += class_gains[c] / len(documents)
    for k in range(n_present):
        places[numbers[k]] = -1
    return n_present


@kernel
def grow_tree(
    indptr,
    indices,
    data,
    classes,
    class_gains,
    n_terms,
    max_leaf,
    cost,
    tolerance,
    most_steps,
    most_passes,
    seed,
):
    """Grow one tree; returns children, starts, entry numbers and entry values."""
    n_documents, n_classes = len(classes), len(class_gains)
    order = np.arange(n_documents).astype(np.int32)
    bounds = np.empty((2 * n_documents, 2), np.int64)
    children = np.full((2 * n_documents, 2), -1, np.int32)
    starts = np.zeros(2 * n_documents + 1, np.int64)
    numbers, values = np.empty(1024, np.int32), np.empty(1024, np.float32)
    n_entries = indptr[-1] + n_documents
    rows, cells = np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
    column_starts = np.empty(n_terms + 2, np.int64)
    terms = np.empty(n_terms + 1, np.int32)
    term_places, class_places = np.full(n_terms, -1, np.int32), np.full(n_classes, -1, np.int32)
    present = np.empty(n_classes, np.int32)
    dense = np.zeros(n_terms + 1, np.float32)
    all_sides = np.empty(n_documents, np.int8)
    costs = np.empty(2)
    bounds[0, 0], bounds[0, 1] = 0, n_documents
    n_nodes, node, size = 1, 0, 0
    while node < n_nodes:
        documents = order[bounds[node, 0] : bounds[node, 1]]
        sides = all_sides[: len(documents)]
        n_right = 0
        if len(documents) > max_leaf and draw_sides(
            documents, classes, class_gains, class_places, seed, sides, present
        ):
            n_columns = gather_columns(
                indptr,
                indices,
                data,
                n_terms,
                documents,
                term_places,
                column_starts,
                rows,
                cells,
                terms,
            )
            n_ones = 0
            for row in range(len(documents)):
                n_ones += sides[row]
            costs[0] = cost * len(documents) / (len(documents) - n_ones)
            costs[1] = cost * len(documents) / n_ones
            weights = np.zeros(n_columns)
            fit_separator(
                column_starts[: n_columns + 1],
                rows,
                cells,
                sides,
                costs,
                seed,
                node,
                tolerance,
                most_steps,
                most_passes,
                weights,
            )
            for column in range(n_columns):
                dense[terms[column]] = weights[column]
            n_right = split_documents(indptr, indices, data, dense, documents, sides)
            for column in range(n_columns):
                dense[terms[column]] = 0.0
        if 0 < n_right < len(documents):
            numbers, values = grow(numbers, size + n_columns), grow(values, size + n_columns)
            for column in range(n_columns):
                if np.float32(weights[column]) != 0.0:
                    numbers[size], values[size] = terms[column], weights[column]
                    size += 1
            middle = bounds[node, 0] + part_documents(sides, documents)
            for child in range(2):
                children[node, child] = n_nodes
                bounds[n_nodes, 0] = bounds[node, 0] if child == 0 else middle
                bounds[n_nodes, 1] = middle if child == 0 else bounds[node, 1]
                n_nodes += 1
        else:
            room = size + len(documents)
            numbers, values = grow(numbers, room), grow(values, room)
            size += fill_leaf(
                documents, classes, class_gains, class_places, numbers[size:], values[size:]
            )
        node += 1
        starts[node] = size
    return (
        children[:n_nodes].copy(),
        starts[: n_nodes + 1].copy(),
        numbers[:size].copy(),
        values[:size].copy(),
    )


@kernel
def follow_tree(
    indptr, indices, data, n_terms, children, starts, numbers, values, root, first, last, leaves
):
    """Fill the leaf that each of the documents `first` to `last - 1` reaches, beginning at 0.

    Documents go down together, so that a node's weights are spread out once for all of them.
    """
    dense = np.zeros(n_terms + 1, np.float32)
    order = np.arange(first, last)
    sides = np.empty(last - first, np.int8)
    # What waits is not empty and shares no document, so there is never more than one for each.
    waiting = np.empty((max(1, last - first), 3), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = root, 0, last - first
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        node, low, high = waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2]
        if children[node, 0] < 0:
            for k in range(low, high):
                leaves[order[k] - first] = node
            continue
        for j in range(starts[node], starts[node + 1]):
            dense[numbers[j]] = values[j]
        split_documents(indptr, indices, data, dense, order[low:high], sides)
        for j in range(starts[node], starts[node + 1]):
            dense[numbers[j]] = 0.0
        middle = low + part_documents(sides, order[low:high])
        for child in range(2):
            begin, end = (low, middle) if child == 0 else (middle, high)
            if begin < end:
                waiting[n_waiting, 0] = children[node, child]
                waiting[n_waiting, 1], waiting[n_waiting, 2] = begin, end
                n_waiting += 1


@inner
def add_leaves(starts, numbers, values, leaves, sums, present):
    """Add the class shares of the leaves of one document; returns how many classes they hold.

    `sums` is zero before; the caller resets it at the classes listed in `present`.
    """
    n_present = 0
    for node in leaves:
        for j in range(starts[node], starts[node + 1]):
            c = numbers[j]
            if sums[c] == 0.0:
                present[n_present] = c
                n_present += 1
            sums[c] += values[j]
    return n_present


@kernel
def rank_leaves(starts, numbers, values, leaves, n_classes, first, last, classes, scores):
    """Fill the best classes of documents `first` to `last - 1` by mean share over the trees.

    `leaves` has a row for each tree and begins with document `first`. Where the leaves hold too few
    classes, the others follow in class order with score zero.
    """
    sums, present = np.zeros(n_classes), np.empty(n_classes, np.int32)
    for row in range(first, last):
        n_present = add_leaves(starts, numbers, values, leaves[:, row - first], sums, present)
        n_kept = 0
        for k in range(n_present):
            c = present[k]
            n_kept = keep_best(sums[c] / len(leaves), c, n_kept, scores[row], classes[row])
        fill_missing(sums, n_kept, 0.0, classes[row], scores[row])
        for k in range(n_present):
            sums[present[k]] = 0.0


@inner
def fill_missing(sums, n_kept, score, classes, scores):
    """Append the first classes that no leaf holds, until the row is full."""
    c = 0
    while n_kept < len(classes):
        if sums[c] == 0.0:
            classes[n_kept], scores[n_kept] = c, score
            n_kept += 1
        c += 1


@kernel
def rerank_leaves(
    indptr,
    indices,
    data,
    n_terms,
    starts,
    numbers,
    values,
    leaves,
    centroid_indptr,
    centroid_indices,
    centroid_values,
    centroid_squares,
    alpha,
    gamma,
    first,
    last,
    classes,
    scores,
):
    """Fill the best classes by alpha log(tree share) + (1 - alpha) log(centroid likelihood).

    The likelihood of class c is 1 / (1 + exp(gamma / 2 |x - centroid|^2)). Classes that no leaf
    holds have score -inf and follow in class order.
    """
    n_classes = len(centroid_squares)
    sums, present = np.zeros(n_classes), np.empty(n_classes, np.int32)
    dense = np.zeros(n_terms, np.float32)
    for row in range(first, last):
        n_present = add_leaves(starts, numbers, values, leaves[:, row - first], sums, present)
        square = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            dense[indices[j]] = data[j]
            square += data[j] * data[j]
        n_kept = 0
        for k in range(n_present):
            c = present[k]
            product = 0.0
            for j in range(centroid_indptr[c], centroid_indptr[c + 1]):
                product += centroid_values[j] * dense[centroid_indices[j]]
            half = 0.5 * gamma * max(0.0, square + centroid_squares[c] - 2.0 * product)
            likelihood = -half - math.log1p(math.exp(-half))
            score = alpha * math.log(sums[c] / len(leaves)) + (1.0 - alpha) * likelihood
            n_kept = keep_best(score, c, n_kept, scores[row], classes[row])
        fill_missing(sums, n_kept, -np.inf, classes[row], scores[row])
        for k in range(n_present):
            sums[present[k]] = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            dense[indices[j]] = 0.0
