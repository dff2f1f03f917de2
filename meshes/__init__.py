"""Meshes: load and save files, generate surfaces and volumes of any size, check what a user brings."""

from .check import check as check
from .generate import bumpy as bumpy
from .generate import cloth as cloth
from .generate import icosphere as icosphere
from .generate import tetrahedral_ball as tetrahedral_ball
from .generate import torus as torus
from .load import load as load
from .save import save as save
