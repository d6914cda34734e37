"""Training and encoding once more, so simply that they are obviously right, and slow.

A sequence of ids is a `str` with one character for each: `str.replace` is a merge.
"""


def to_text(ids):
    return "".join(map(chr, ids))


def to_ids(text):
    return list(map(ord, text))


def joined(pair):
    return chr(pair[0]) + chr(pair[1])


def count(pair, rows, weights):
    """At how many places a pair stands; places may overlap."""
    return sum(
        weight
        for row, weight in zip(rows, weights)
        for place in range(len(row))
        if row[place : place + 2] == joined(pair)
    )


def train(sequences, weights, alphabet, merges_wanted, minimum_pair_frequency, tie_break):
    """The merges and their counts."""
    rows = [to_text(sequence) for sequence in sequences]
    strings = [string or b"" for string in alphabet]
    merges, counts = [], []
    while len(merges) < merges_wanted:
        met = [tuple(map(ord, pair)) for row in rows for pair in zip(row, row[1:])]
        counted = {pair: count(pair, rows, weights) for pair in met}
        highest = max(counted.values(), default=0)
        if highest < minimum_pair_frequency:
            break
        best = [pair for pair in met if counted[pair] == highest]
        if tie_break == "smallest":
            best.sort()
        if tie_break == "greatest":
            best.sort(key=lambda pair: (strings[pair[0]], strings[pair[1]], pair), reverse=True)
        rows = [row.replace(joined(best[0]), chr(len(strings))) for row in rows]
        strings.append(strings[best[0][0]] + strings[best[0][1]])
        merges.append(best[0])
        counts.append(highest)
    return merges, counts


def replay(ids, merges, first_id):
    """The merges in the order learned, each of them everywhere."""
    text = to_text(ids)
    for new_id, pair in enumerate(merges, first_id):
        text = text.replace(joined(pair), chr(new_id))
    return to_ids(text)


def encode(ids, merges, first_id):
    """The earliest merge that is possible, at its leftmost place, until there is none."""
    text = to_text(ids)
    while possible := [rank for rank, pair in enumerate(merges) if joined(pair) in text]:
        text = text.replace(joined(merges[possible[0]]), chr(first_id + possible[0]), 1)
    return to_ids(text)


def encode_by_rank(ids, pieces):
    """Neighbors whose strings together are a piece: the lowest id first, leftmost first."""
    strings = [pieces[id] for id in ids]
    while possible := [
        (pieces.index(left + right), place)
        for place, (left, right) in enumerate(zip(strings, strings[1:]))
        if left + right in pieces
    ]:
        id, place = min(possible)
        strings[place : place + 2] = [pieces[id]]
    return [pieces.index(string) for string in strings]
