"""Where the workers of a job come from: this host, and one day a cluster.

Read `local.py`: the shim starts workers beside the home, before that has run anything of the user.
"""
