"""Starts a kernel inside a lease. Runs in the Jupyter server's process, as any provisioner does.

A start asks for the lease and waits a little. Where it is not granted in time the start fails and
says where the ticket stands; the next start of the same kernel for the same notebook takes that
ticket up.
"""

from __future__ import annotations

import os
from typing import Any, Final

from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Float, Int, Unicode

from workbench.client import PeerError, UserError
from workbench.client import kernel_lease as leases
from workbench.client.kernel_lease import KernelLease, Wanted
from workbench.protocol.quantities import check_count, parse_bytes

_SETTING: Final = "the kernel's setting"


class LeaseStopped(UserError):
    """The controller ended this kernel's lease, and with it the kernel."""


class LeaseProvisioner(LocalProvisioner):
    """A local kernel that sees only the GPUs of its lease.

    Its traits are set by `metadata.kernel_provisioner.config` in kernel.json, or in Jupyter's
    configuration.
    """

    # Their ranges are checked at each start, whose errors reach the user: traitlets' do not say
    # what to do, and come when jupyter_client has listed the kernel as pending already.
    gpus = Int(1, config=True, help="whole GPUs")
    cpus = Int(None, allow_none=True, config=True, help="CPU cores; null for a fair share")
    gpu_memory = Unicode(
        None, allow_none=True, config=True, help="memory that each GPU must have, such as 6GiB"
    )
    wait_s = Float(20.0, config=True, help="seconds that a start waits for its lease")

    _job: str | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Take a lease and put it in the kernel's environment.

        Called by KernelManager before each start and restart.

        Raises:
            UserError: A setting makes no sense.
            NotGranted: No GPU is free yet; the ticket is kept.
            NeverFits: This host has no such GPU.
            LeaseStopped: Once, after the controller had ended this kernel's lease.
            PeerError: Controller or agent cannot be reached.
        """
        env = dict(kwargs.get("env") or os.environ)
        try:
            lease = await self._taken_again(env) or await leases.take(self._wanted(env), env)
        except BaseException:
            self._forget_start()
            raise
        self._job = lease.job
        prepared: dict[str, Any] = await super().pre_launch(**kwargs)
        prepared["env"].update(lease.environment)  # Last: kernel.json may set variables too.
        return prepared

    async def post_launch(self, **kwargs: Any) -> None:
        """Name the kernel's process, with which the lease ends.

        Called by KernelManager after each start.

        Raises:
            UserError: The lease is over; the kernel was ended.
            PeerError: The agent cannot be reached; the kernel was ended.
        """
        await super().post_launch(**kwargs)
        assert self._job is not None
        assert self.process is not None
        try:
            await leases.started(self._job, self.process.pid)
        except (PeerError, UserError):
            await super().kill()  # Nobody would see when it ends.
            self._forget_start()
            raise

    async def shutdown_requested(self, restart: bool = False) -> None:  # noqa: FBT001, FBT002
        """Keep the lease until `cleanup` says what follows.

        Called by KernelManager when it has asked the kernel to end.
        """
        await super().shutdown_requested(restart=restart)
        await self._keep()

    async def kill(self, restart: bool = False) -> None:  # noqa: FBT001, FBT002
        """Kill the kernel; the lease is kept until `cleanup` says what follows.

        Called by KernelManager, for a restart too, where `restart` may still be false.
        """
        await self._keep()
        await super().kill(restart=restart)

    async def cleanup(self, restart: bool = False) -> None:  # noqa: FBT001, FBT002
        """Give the lease back, unless the kernel is started again.

        Called by KernelManager when the kernel is gone.
        """
        await super().cleanup(restart=restart)
        job = self._job
        if job is None or restart:
            return
        self._job = None
        try:
            await leases.give_back(job)
        except (PeerError, UserError) as error:
            self.log.warning("The kernel's lease is given back a little later: %s", error)

    def _forget_start(self) -> None:
        """Take a failed start off the server's list of pending ones.

        jupyter_client leaves it there, and then the server does not end when it is told to.
        """
        pending = getattr(getattr(self.parent, "parent", None), "_pending_kernels", {})
        pending.pop(self.kernel_id, None)

    async def _keep(self) -> None:
        if self._job is None:
            return
        try:
            await leases.take_again(self._job, os.environ)
        except (PeerError, UserError) as error:
            self.log.warning("The kernel's lease cannot be kept over a restart: %s", error)

    async def _taken_again(self, env: dict[str, str]) -> KernelLease | None:
        """Return the lease that this kernel had before its restart; None where it has none."""
        job, self._job = self._job, None
        if job is None:
            return None
        try:
            return await leases.take_again(job, env)
        except UserError:
            # Without this a kernel that was stopped would come back by Jupyter's automatic restart.
            why = await leases.why_stopped(job)
        if why is not None:
            raise LeaseStopped(
                f"this kernel was stopped: {why}",
                next_step="Start it again to ask for a new lease",
            )
        return None

    def _wanted(self, env: dict[str, str]) -> Wanted:
        check_count(self.gpus, f"{_SETTING} gpus", least=1, what="whole GPUs")
        if self.cpus is not None:
            check_count(self.cpus, f"{_SETTING} cpus", least=1, what="cores")
        if self.wait_s < 0:
            raise UserError(
                f"{_SETTING} wait_s {self.wait_s:g} is below 0",
                next_step="Give the seconds that a start may wait, at least 0",
            )
        return Wanted(
            name=self.kernel_spec.display_name,
            notebook=env.get("JPY_SESSION_NAME"),
            gpus=self.gpus,
            cores=self.cpus,
            gpu_memory_bytes=parse_bytes(self.gpu_memory, f"{_SETTING} gpu_memory")
            if self.gpu_memory
            else None,
            wait_s=self.wait_s,
        )
