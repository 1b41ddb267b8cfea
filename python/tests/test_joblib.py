"""The joblib backend "muster"."""

import pytest

import jobs_executor as jobs
import muster

joblib = pytest.importorskip("joblib", reason="joblib is not installed")

import muster.joblib as backend  # noqa: E402


@pytest.fixture
def cluster(coordinator):
    with joblib.parallel_config("muster", cluster=coordinator):
        yield coordinator


def nested(count):
    return joblib.Parallel(n_jobs=2)(joblib.delayed(jobs.square)(i) for i in range(count))


def test_calls_are_run_on_the_cluster(cluster):
    calls = (joblib.delayed(muster.current_run)() for _ in range(2))
    with pytest.raises(Exception):      # a run cannot be taken home
        joblib.Parallel(n_jobs=2)(calls)
    assert joblib.Parallel()(joblib.delayed(jobs.square)(i) for i in range(50)) == [
        i * i for i in range(50)]
    assert joblib.Parallel(n_jobs=1)([joblib.delayed(jobs.square)(3)]) == [9]


def test_generators_and_nested_calls(cluster):
    results = joblib.Parallel(n_jobs=2, return_as="generator")(
        joblib.delayed(jobs.square)(i) for i in range(10))
    assert list(results) == [i * i for i in range(10)]
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(nested)(3) for _ in range(3)) == [
        [0, 1, 4]] * 3


def test_an_exception_is_the_functions_own(cluster):
    with pytest.raises(ZeroDivisionError) as caught:
        joblib.Parallel(n_jobs=2)(joblib.delayed(jobs.divide)(1, i) for i in (1, 0, 2))
    assert "in divide" in str(caught.value.__cause__)


def test_short_calls_travel_in_batches(cluster):
    before = cluster.counts()["scheduled"]
    joblib.Parallel(n_jobs=2)(joblib.delayed(jobs.square)(i) for i in range(20000))
    assert cluster.counts()["scheduled"] - before < 10000


def test_it_finds_the_cluster_of_the_with_or_an_executor(own_cluster):
    with own_cluster(workers=2) as cluster:
        with joblib.parallel_config("muster"):
            assert joblib.effective_n_jobs(-1) == 2
            assert joblib.Parallel()([joblib.delayed(abs)(-1)] * 4) == [1] * 4
        with muster.Executor(cluster, max_workers=1) as executor, \
                joblib.parallel_config("muster", cluster=executor):
            assert joblib.Parallel(n_jobs=2)([joblib.delayed(abs)(-1)] * 4) == [1] * 4
            assert executor.submit(abs, -3).result(20) == 3


def test_wrong_use(cluster):
    with pytest.raises(ValueError, match="n_jobs == 0"):
        joblib.Parallel(n_jobs=0)([joblib.delayed(abs)(1)])
    with pytest.raises(RuntimeError, match="not configured"):
        backend.MusterBackend().submit(abs)


def test_a_grid_search_has_the_same_result(cluster):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    data, labels = load_iris(return_X_y=True)
    grid = {"C": [0.01, 0.1, 1.0], "tol": [1e-3, 1e-4]}
    on_cluster = GridSearchCV(LogisticRegression(max_iter=300), grid, cv=3, n_jobs=-1)
    on_cluster.fit(data, labels)
    with joblib.parallel_config("sequential"):
        alone = GridSearchCV(LogisticRegression(max_iter=300), grid, cv=3).fit(data, labels)
    assert on_cluster.best_params_ == alone.best_params_
    assert list(on_cluster.cv_results_["mean_test_score"]) == list(
        alone.cv_results_["mean_test_score"])
