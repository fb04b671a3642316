"""Communication graphs and their connected coalitions."""

from gstarx.graphs.communication import CommunicationGraph, TooManyCoalitions
from gstarx.graphs.lattice import CoalitionLattice

__all__ = ["CoalitionLattice", "CommunicationGraph", "TooManyCoalitions"]
