"""``python -m tests.differential 1234`` shows a combination, ``0-2000`` counts mismatches."""

from __future__ import annotations

import sys
import time
from collections import Counter

from tests.differential.combinations import Outcome, outcome


def main(argument: str) -> None:
    first, _, last = argument.partition("-")
    if not last:
        print(outcome(int(first)))
        return
    start, outcomes = time.process_time(), []
    for number in range(int(first), int(last)):
        made = outcome(number)
        outcomes.append(made)
        if made.problems:
            described = made.combination.described
            print(number, described["families"], made.problems, flush=True)
    _summarize(outcomes, time.process_time() - start)


def _summarize(outcomes: list[Outcome], seconds: float) -> None:
    wrong = [made for made in outcomes if made.problems]
    refused = Counter(words[:60] for made in outcomes for words in made.refusals)
    print(f"{len(outcomes)} combinations, {len(wrong)} with a problem, {seconds:.0f} CPU seconds")
    print(f"shared embeddings: {sum(made.shared for made in outcomes)}")
    for words, count in refused.most_common():
        print(f"refused {count} times: {words}")


if __name__ == "__main__":
    main(sys.argv[1])
