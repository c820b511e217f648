"""The kernel provisioner that starts Jupyter kernels inside a lease. Read `provisioner.py`."""
