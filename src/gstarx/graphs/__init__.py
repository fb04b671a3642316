"""Communication graphs and their connected coalitions."""

from gstarx.graphs.bitmasks import Coalitions as Coalitions
from gstarx.graphs.bitmasks import Masks as Masks
from gstarx.graphs.bitmasks import distinct_rows as distinct_rows
from gstarx.graphs.bitmasks import find_rows as find_rows
from gstarx.graphs.bitmasks import first_nodes as first_nodes
from gstarx.graphs.bitmasks import pack as pack
from gstarx.graphs.bitmasks import renumber as renumber
from gstarx.graphs.bitmasks import same_mask as same_mask
from gstarx.graphs.bitmasks import slot_of as slot_of
from gstarx.graphs.bitmasks import table_of as table_of
from gstarx.graphs.bitmasks import unpack as unpack
from gstarx.graphs.bitmasks import words_for as words_for
from gstarx.graphs.color_refinement import ALL_BITS as ALL_BITS
from gstarx.graphs.color_refinement import Block as Block
from gstarx.graphs.color_refinement import StateRules as StateRules
from gstarx.graphs.color_refinement import StateTable as StateTable
from gstarx.graphs.color_refinement import color_refinement as color_refinement
from gstarx.graphs.color_refinement import sharing_order as sharing_order
from gstarx.graphs.communication import CommunicationGraph, TooManyCoalitions
from gstarx.graphs.communication import as_coalitions as as_coalitions
from gstarx.graphs.communication import as_nodes as as_nodes
from gstarx.graphs.communication import as_size as as_size
from gstarx.graphs.compilation import WORD as WORD
from gstarx.graphs.compilation import bit_count as bit_count
from gstarx.graphs.compilation import compiled as compiled
from gstarx.graphs.compilation import trailing_zeros as trailing_zeros
from gstarx.graphs.connectivity import label_parts as label_parts
from gstarx.graphs.lattice import CoalitionLattice
from gstarx.graphs.lattice import boundary_of as boundary_of

__all__ = ["CoalitionLattice", "CommunicationGraph", "TooManyCoalitions"]
