"""torch is imported without what only compilers use, and has it when somebody asks for it."""

import subprocess
import sys

LEAN = """
import sys
import os
from engine.backends.qwen2.lean_torch import SPINS, UNUSED, complete, import_torch
torch = import_torch()
assert os.environ["GOMP_SPINCOUNT"] == SPINS
assert not set(UNUSED) & set(sys.modules), "what is unused was imported"
assert "torch._prims" not in sys.modules, "and what that imports"
packed = torch.ops.quantized.linear_prepack_fp16(torch.eye(4), None)
assert torch.ops.quantized.linear_dynamic_fp16(torch.ones(1, 4), packed).tolist() == [[1] * 4]
no_numbers = torch.ones(2, 4, device="meta")
try:
    torch.cdist(no_numbers, no_numbers)
    raise SystemExit("this needs what was left out")
except NotImplementedError:
    complete()
assert callable(torch.export.export)
assert torch.cdist(no_numbers, no_numbers).shape == (2, 2)
assert import_torch() is torch
"""


def test_what_only_compilers_use_is_left_out_until_it_is_asked_for() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", LEAN], check=True, timeout=60)
