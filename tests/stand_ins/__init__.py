"""Small C libraries that stand in for NVIDIA's, so that the real Python stack runs without a GPU.

Read `world.py` first: it writes the script that the libraries follow. `build.py` compiles them,
`fixtures.py` is what tests use.
"""
