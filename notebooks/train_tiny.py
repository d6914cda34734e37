"""Train a tiny language model on a text: text, ids, windows, model, loss, gradient, Adam.

    python notebooks/train_tiny.py "some text ..." | --file FILE
        [--tokenizer bpe|byte] [--compare] [--vocab-size N] [--min-pair-frequency N] [--context N]
        [--steps N] [--batch-size N] [--seed N]

The model is NumPy alone: it predicts a token from the last few before it, by one hidden layer. Its
gradient is written out, and checked against finite differences before it is used. --compare trains
on bytes and on BPE, and compares them in bits per byte of validation text: losses by token cannot
be compared, since tokens of different tokenizers stand for different amounts of text.

The tokenizer is fitted on the complete text, so that the byte method, which knows the bytes of its
corpus alone, can encode the tail that is kept for validation. The model never sees that tail.
"""

import argparse
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokbpe import TokenDataset, Tokenizer, metrics

Parameters = dict[str, NDArray[np.float64]]

LOOKED_BACK = 4  # tokens that one is predicted from
WIDTH = 24  # of the vector of a token
HIDDEN = 96
VALIDATION = 0.1  # of the tokens
SMOOTHING = 0.95  # of the average of training losses
LEAST_STEPS = 2  # the gradient is checked in the second


# The model


def new_parameters(vocabulary_size: int, seed: int) -> Parameters:
    """Small random numbers; the last layer begins with zeros: all tokens are as likely."""
    source = np.random.default_rng(seed)

    def drawn(*shape: int) -> NDArray[np.float64]:
        return source.normal(0, 1 / math.sqrt(shape[0]), shape)

    return {
        "vectors": source.normal(0, 1, (vocabulary_size, WIDTH)),
        "hidden": drawn(LOOKED_BACK * WIDTH, HIDDEN),
        "hidden_bias": np.zeros(HIDDEN),
        "output": np.zeros((HIDDEN, vocabulary_size)),
        "output_bias": np.zeros(vocabulary_size),
    }


def looked_back(inputs: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """For each position the ids of the last tokens, itself first: [batch, context, LOOKED_BACK].

    -1 stands before the beginning of the window.
    """
    batch, context = inputs.shape
    padded = np.full((batch, context + LOOKED_BACK - 1), -1, np.int64)
    padded[:, LOOKED_BACK - 1 :] = inputs
    return np.stack(
        [padded[:, LOOKED_BACK - 1 - back :][:, :context] for back in range(LOOKED_BACK)], axis=2
    )


def losses_and_gradient(
    parameters: Parameters,
    inputs: NDArray[np.unsignedinteger],
    targets: NDArray[np.unsignedinteger],
) -> tuple[NDArray[np.float64], Callable[[], Parameters]]:
    """The loss at each position, in nats, and what gives the gradient of their mean."""
    ids = looked_back(inputs).reshape(-1, LOOKED_BACK)
    wanted = targets.reshape(-1).astype(np.int64)
    count = len(wanted)
    known = ids >= 0
    vectors = parameters["vectors"][ids] * known[:, :, None]
    joined = vectors.reshape(count, -1)
    hidden = np.tanh(joined @ parameters["hidden"] + parameters["hidden_bias"])
    scores = hidden @ parameters["output"] + parameters["output_bias"]
    scores -= scores.max(axis=1, keepdims=True)
    likely = np.exp(scores)
    likely /= likely.sum(axis=1, keepdims=True)
    losses = -np.log(likely[np.arange(count), wanted])

    def gradient() -> Parameters:
        by_scores = likely.copy()
        by_scores[np.arange(count), wanted] -= 1
        by_scores /= count
        by_hidden = (by_scores @ parameters["output"].T) * (1 - hidden**2)
        by_vectors = (by_hidden @ parameters["hidden"].T).reshape(vectors.shape)
        of_vectors = np.zeros_like(parameters["vectors"])
        np.add.at(of_vectors, ids[known], by_vectors[known])
        return {
            "vectors": of_vectors,
            "hidden": joined.T @ by_hidden,
            "hidden_bias": by_hidden.sum(axis=0),
            "output": hidden.T @ by_scores,
            "output_bias": by_scores.sum(axis=0),
        }

    return losses.reshape(inputs.shape), gradient


def gradient_error(
    parameters: Parameters,
    inputs: NDArray[np.unsignedinteger],
    targets: NDArray[np.unsignedinteger],
    tries: int = 8,
    step: float = 1e-5,
) -> float:
    """How far the gradient is from finite differences, at most, for some numbers of each kind
    that matter: relative to the largest of the kind."""
    _, gradient = losses_and_gradient(parameters, inputs, targets)
    worst = 0.0
    for name, slopes in gradient().items():
        values = parameters[name].reshape(-1)
        largest = np.abs(slopes).max()
        if not largest:
            continue
        for place in np.argsort(-np.abs(slopes.reshape(-1)))[:: max(1, slopes.size // tries)]:
            kept = values[place]
            values[place] = kept + step
            above = losses_and_gradient(parameters, inputs, targets)[0].mean()
            values[place] = kept - step
            below = losses_and_gradient(parameters, inputs, targets)[0].mean()
            values[place] = kept
            difference = (above - below) / (2 * step) - slopes.reshape(-1)[place]
            worst = max(worst, abs(difference) / largest)
    return worst


class Adam:
    """Kingma and Ba 2015."""

    def __init__(self, parameters: Parameters, rate: float = 0.01) -> None:
        self.parameters = parameters
        self.rate = rate
        self.steps = 0
        self.means = {name: np.zeros_like(values) for name, values in parameters.items()}
        self.squares = {name: np.zeros_like(values) for name, values in parameters.items()}

    def step(self, gradient: Parameters) -> None:
        self.steps += 1
        for name, slopes in gradient.items():
            mean, square = self.means[name], self.squares[name]
            mean += 0.1 * (slopes - mean)
            square += 0.001 * (slopes**2 - square)
            corrected = mean / (1 - 0.9**self.steps)
            scale = np.sqrt(square / (1 - 0.999**self.steps)) + 1e-8
            self.parameters[name] -= self.rate * corrected / scale


# Training


class Result(NamedTuple):
    """What came of a training; losses are means by token, in nats."""

    tokenizer: str
    vocab_size: int
    tokens: int
    gradient_error: float
    first_validation_loss: float
    validation_loss: float
    unigram_loss: float
    train_loss_average: float
    bits_per_byte: float
    unigram_bits_per_byte: float


def trained(
    text: str,
    method: str,
    *,
    vocabulary_size: int,
    minimum_pair_frequency: int,
    context: int,
    steps: int,
    batch_size: int,
    seed: int,
    tell: Callable[[str], object] = print,
) -> Result:
    """Train a model on a text, by tokens of a method."""
    options = {}
    if method == "bpe":
        options = {
            "vocabulary_size": vocabulary_size,
            "minimum_pair_frequency": minimum_pair_frequency,
        }
    tokenizer = Tokenizer(text, method=method, **options)
    tokens = tokenizer.encode_array(text)
    training, validation = TokenDataset(tokens, context).split(VALIDATION)
    tell(
        f"{method}: fitted on the complete text, {tokenizer.vocab_size} ids; "
        f"{training.stop} tokens to train on, {validation.stop - validation.start} to validate"
    )
    batches = training.batches(batch_size, order="random", seed=seed).forever()
    parameters = new_parameters(tokenizer.vocab_size, seed)
    optimizer = Adam(parameters)
    average = math.nan
    error = math.inf
    first = validation_loss(parameters, validation)
    for step in range(steps):
        inputs, targets = next(batches)
        losses, gradient = losses_and_gradient(parameters, inputs, targets)
        if step == 1:  # by now no gradient is zero as a whole
            error = gradient_error(parameters, inputs[:2], targets[:2])
            tell(f"{method}: the gradient is that of finite differences but for {error:.1e}")
        optimizer.step(gradient())
        loss = float(losses.mean())
        average = loss if math.isnan(average) else SMOOTHING * average + (1 - SMOOTHING) * loss
        if (step + 1) % max(1, steps // 5) == 0:
            tell(
                f"{method}: step {step + 1}: train_loss_average {average:.3f}, "
                f"validation_loss {validation_loss(parameters, validation):.3f}"
            )
    targets = np.concatenate([row.targets for row in validation])
    size = int(metrics.token_bytes(tokenizer)[targets].sum())
    unigram = unigram_loss(tokens[: training.stop], targets, tokenizer.vocab_size)
    last = validation_loss(parameters, validation)
    return Result(
        method,
        tokenizer.vocab_size,
        len(tokens),
        error,
        first,
        last,
        unigram,
        average,
        metrics.bits_per_byte(last * len(targets), size),
        metrics.bits_per_byte(unigram * len(targets), size),
    )


def validation_loss(parameters: Parameters, validation: TokenDataset) -> float:
    """The mean over the same batches each time."""
    losses = [
        losses_and_gradient(parameters, *batch)[0].reshape(-1)
        for batch in validation.fixed_batches(32)
    ]
    return float(np.concatenate(losses).mean())


def unigram_loss(
    training: NDArray[np.uint32], targets: NDArray[np.uint32], vocabulary_size: int
) -> float:
    """The mean loss of targets if each token is as likely as among those of the training; one is
    added to each count, so that none is impossible."""
    counts = np.bincount(training, minlength=vocabulary_size) + 1
    return float(-np.log(counts / counts.sum())[targets].mean())


def lines_of(results: Iterable[Result]) -> Iterable[str]:
    for result in results:
        yield (
            f"{result.tokenizer}: validation_loss {result.validation_loss:.3f}, of the unigram "
            f"distribution {result.unigram_loss:.3f}; bits per byte {result.bits_per_byte:.3f}, "
            f"{result.unigram_bits_per_byte:.3f}"
        )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", help="what to train on")
    parser.add_argument("--file", type=Path, help="or a file of text")
    parser.add_argument("--tokenizer", choices=("bpe", "byte"), default="bpe")
    parser.add_argument("--compare", action="store_true", help="both tokenizers")
    parser.add_argument("--vocab-size", type=int, default=512)
    parser.add_argument("--min-pair-frequency", type=int, default=2)
    parser.add_argument("--context", type=int, default=32)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    if (options.text is None) == (options.file is None):
        parser.error("give a text, or a file by --file")
    if options.steps < LEAST_STEPS:
        parser.error(f"--steps must be {LEAST_STEPS} or more, not {options.steps}")
    methods = ("byte", "bpe") if options.compare else (options.tokenizer,)
    try:
        text = options.text
        if options.file is not None:
            text = options.file.read_bytes().decode("utf-8")  # with the line ends that it has
        results = [
            trained(
                text,
                method,
                vocabulary_size=options.vocab_size,
                minimum_pair_frequency=options.min_pair_frequency,
                context=options.context,
                steps=options.steps,
                batch_size=options.batch_size,
                seed=options.seed,
            )
            for method in methods
        ]
    except UnicodeDecodeError as error:
        parser.error(f"{options.file}: {error}")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for line in lines_of(results):
        print(line)


if __name__ == "__main__":
    main()
