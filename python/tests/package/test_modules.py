"""What `import muster` alone gives."""

import subprocess
import sys

import muster


def test_modules_of_the_package_are_attributes():
    program = """
import sys
import muster
assert "muster.partitioners" not in sys.modules, "imported before anybody needs it"
for name in ("checkpoint", "cluster", "cluster_spec", "coordination", "coordinator",
             "distribute", "errors", "executor", "futures", "partitioners", "resolvers",
             "server", "strategy", "variable"):
    assert getattr(muster, name) is sys.modules["muster." + name], name
    assert name in dir(muster), name
muster.partitioners.FixedShardsPartitioner(2)
try:
    import joblib
except ImportError:
    pass
else:
    assert muster.joblib is sys.modules["muster.joblib"]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_all_has_what_the_guides_use():
    assert "map" in muster.__all__
    for name in muster.__all__:
        assert getattr(muster, name) is not None, name
