"""Runs one user's jobs, as that user: launcher, agent, zygotes, shims, homes.

    launcher    parent of agent and zygotes; restarts the agent        standard library only
      agent     serves the user's clients, obeys the controller        asyncio
      zygote    one a kernel session; has imported what it imports     one thread
        shim    session leader of one job, forked for it               standard library only
          home  runs the statements of a cell
      keeper    holds a kernel's lease, forked from the launcher         standard library only

Who may die, and what then, is in the tests of this package. Read `agent.py` for the agent, then
`shim.py` and `home.py` for what one job is.
"""
