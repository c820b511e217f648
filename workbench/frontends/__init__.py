"""What people touch: the command line, the magics, the Jupyter server, the widgets.

The front-ends do not know one another; each reaches controller and agent through `client` only.
Read `magics/schedule.py` first.
"""
