"""The JSON Schema of all that a browser receives; its TypeScript types are generated from it.

`python -m workbench.protocol.schema` prints it; `npm run types` in `labextension/` turns it into
`labextension/src/model/protocol.ts`, and `npm run check` fails where the two have drifted apart.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from workbench.protocol.browser import ServerHalf
from workbench.protocol.messages import PROTOCOL, Failure, Status


def browser_schema() -> dict[str, Any]:
    """Return one schema document with a definition for every struct that a browser receives.

    Returns:
        A JSON Schema whose `definitions` are keyed by struct name, and `x-protocol`, the number
        of the protocol.

    Source:
        `msgspec.json.schema_components`.
    """
    _, definitions = msgspec.json.schema_components(
        [Status, Failure, ServerHalf], ref_template="#/definitions/{name}"
    )
    for definition in definitions.values():
        if "properties" in definition:
            # msgspec lists what a decoder needs; an encoder always writes every field.
            definition["required"] = list(definition["properties"])
            definition["additionalProperties"] = False
            for field in definition["properties"].values():
                field.pop("default", None)
    return {"title": "FromServer", "x-protocol": PROTOCOL, "definitions": definitions}


def main() -> None:
    """Print the schema as JSON."""
    json.dump(browser_schema(), sys.stdout, indent=2)


if __name__ == "__main__":
    main()
