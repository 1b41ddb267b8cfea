"""All rows of a table: counted, read, set; and tables in checkpoints."""

import numpy as np
import pytest

import muster
from muster import Checkpoint, errors
from muster.checkpoint import read_checkpoint


@pytest.fixture
def table(shared_cluster, request):
    with muster.Table(request.node.name, dim=3, initializer="ones",
                      optimizer=muster.optimizers.Adagrad(learning_rate=0.1),
                      node=shared_cluster) as made:
        yield made


@pytest.fixture
def name(request):
    return request.node.name


def fill(table, count):
    ids = np.arange(count, dtype=np.uint64) << 40
    rows = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
    table.insert(ids, rows)
    return ids, rows


def test_rows_are_counted_and_set(table):
    assert len(table) == 0 and table
    ids, rows = fill(table, 100)
    assert table.stats().rows == len(table) == 100
    assert table.stats().bytes > 100 * (8 + 2 * 3 * 4)
    assert np.array_equal(table.lookup(ids), rows)
    table.insert([7, 7], [[1, 2, 3], [4, 5, 6]])
    assert table.lookup([7]).tolist() == [[4, 5, 6]]


def test_what_became_of_others_is_counted(shared_cluster, name):
    with muster.Table(name, dim=1, optimizer=1.0, admit_after=2, capacity=256,
                      eviction="lru", node=shared_cluster) as table:
        ids = np.arange(2000)
        for time in (1, 2):
            table.apply_gradients(ids, np.ones((2000, 1)), time=time)
        with pytest.raises(errors.InvalidArgumentError):
            table.apply_gradients([1], [[np.nan]])
        found = table.stats()
        assert (found.dropped, found.refused, found.expired) == (2000, 1, 0)
        assert found.rows <= 256 and found.rows + found.evicted == 2000
        table.expire(before=3)
        assert table.stats().expired == found.rows and not len(table)


def test_all_rows_are_read(table):
    ids, rows = fill(table, 5000)
    found = {}
    for some, their_rows in table.export():
        found.update(zip(some.tolist(), their_rows.tolist()))
    assert found == dict(zip(ids.tolist(), rows.tolist()))
    export = table.export()
    next(export)
    export.close()
    assert len(table) == 5000


def test_a_closed_table_is_not_read(shared_cluster):
    table = muster.Table("closed", dim=3, node=shared_cluster)
    table.close()
    with pytest.raises(errors.MusterError, match="the table was closed"):
        list(table.export())


def test_a_checkpoint_has_tables(table, tmp_path):
    ids, rows = fill(table, 100)
    ones = np.ones_like(rows)
    table.apply_gradients(ids, ones)
    checkpoint = Checkpoint(emb=table)
    path = checkpoint.save(tmp_path / "model")
    assert read_checkpoint(path)["tables"][0]["rows"] == 100
    table.apply_gradients(ids, ones)
    expected = table.lookup(ids)
    table.insert([1], [[9, 9, 9]])
    checkpoint.restore(path).assert_consumed()
    assert table.lookup([1]).tolist() == [[1, 1, 1]]
    table.apply_gradients(ids, ones)
    assert np.array_equal(table.lookup(ids), expected)


def test_a_reader_shows_what_the_servers_have(table, tmp_path):
    ids, _ = fill(table, 200)
    checkpoint = Checkpoint(emb=table)
    paths = [checkpoint.save(tmp_path / "serving")]
    table.insert(ids[:3], np.zeros((3, 3), np.float32))
    table.delete(ids[10:20])
    paths.append(checkpoint.save(tmp_path / "serving", base=paths[0]))
    with muster.TableReader(paths, table.name) as reader:
        assert (reader.dim, len(reader), reader.step) == (3, 190, 2)
        every = np.append(ids, np.uint64(12345))
        assert np.array_equal(reader.lookup(every), table.lookup(every))
    with pytest.raises(errors.MusterError, match="the reader was closed"):
        reader.lookup([1])
    with pytest.raises(errors.FailedPreconditionError, match="increment of serving-1"):
        muster.TableReader(paths[1], table.name)
    with pytest.raises(errors.FailedPreconditionError, match="increment of serving-1"):
        checkpoint.restore(paths[1])


# ---- rows of 16 bits ----

@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_rows_as_they_are(shared_cluster, name, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    table = muster.Table(name, dim=2, initializer=("uniform", -1, 1), dtype=dtype,
                         node=shared_cluster)
    ids = np.arange(60).reshape(3, 20)
    wide = table.lookup(ids)
    narrow = table.lookup(ids, dtype=dtype)
    assert wide.dtype == np.float32 and narrow.dtype.name == dtype
    assert narrow.shape == (3, 20, 2) and (narrow.astype("f4") == wide).all()
    out = np.zeros_like(narrow)
    assert table.lookup(ids, out=out) is out and (out == narrow).all()
    assert table.lookup(ids, dtype="float32").tobytes() == wide.tobytes()
    later = table.lookup_async(ids, dtype=narrow.dtype).result(60)
    assert later.dtype == narrow.dtype and later.tobytes() == narrow.tobytes()
    assert table.lookup([], dtype=dtype).dtype == narrow.dtype


def test_forms_that_rows_have_not(shared_cluster, name, table):
    narrow = muster.Table(name + "16", dim=2, dtype="float16", node=shared_cluster)
    for wrong in (lambda: table.lookup([1], dtype="float16"),
                  lambda: narrow.lookup([1], dtype=np.float64),
                  lambda: narrow.lookup_async([1], dtype="int16"),
                  lambda: narrow.lookup([1, 2], offsets=[0], dtype="float16"),
                  lambda: narrow.lookup([1], dtype="f4", out=np.zeros((1, 2), "f2")),
                  lambda: table.lookup([1], out=np.zeros((1, 3), "f2"))):
        with pytest.raises(ValueError, match="float32"):
            wrong()


def narrow_in_function(table):
    return table.lookup([1, 2], dtype="float16")


def test_a_function_has_narrow_rows(coordinator, name):
    table = muster.Table(name, dim=2, initializer="ones", dtype="float16",
                         node=coordinator)
    rows = coordinator.schedule(narrow_in_function, (table,)).fetch(60)
    assert rows.dtype == np.float16 and (rows == 1).all()
