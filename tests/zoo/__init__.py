"""Models of many kinds, by kind and name."""

from tests.zoo.edge_readers import EDGE_READERS
from tests.zoo.models import CONVOLUTIONS, MODELS, NORMS, POOLING, SIGNATURES

ZOO = {
    "Convolutions": CONVOLUTIONS,
    "Norms": NORMS,
    "Readouts and pooling": POOLING,
    "Signatures, wrappers and outputs": SIGNATURES,
    "PyG's models": MODELS,
    "Edges used in forward": EDGE_READERS,
}
CASES = {f"{kind}: {name}": case for kind, cases in ZOO.items() for name, case in cases.items()}
