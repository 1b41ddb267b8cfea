"""scikit-learn's grid search on a cluster: the same result as without one.

    python examples/python/grid_search.py

Everything in scikit-learn that has n_jobs runs on the cluster inside of
joblib.parallel_config("muster"). Without scikit-learn it says so and ends with 0.
"""

import importlib.util

import muster


def make_search(n_jobs):
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    grid = {"C": [1, 10], "gamma": [0.0003, 0.001, 0.003]}
    return GridSearchCV(SVC(), grid, cv=3, n_jobs=n_jobs)


def main():
    if importlib.util.find_spec("sklearn") is None:
        print("skipped: scikit-learn is not installed (pip install scikit-learn)")
        return 0
    import joblib
    from sklearn.datasets import load_digits

    import muster.joblib                    # registers the backend "muster"

    images, labels = (array[::2] for array in load_digits(return_X_y=True))
    alone = make_search(1).fit(images, labels)
    with muster.LocalCluster(workers=2) as cluster:
        with joblib.parallel_config("muster", cluster=cluster):
            spread = make_search(-1).fit(images, labels)
    is_same = (alone.best_params_ == spread.best_params_ and
               (alone.cv_results_["mean_test_score"] ==
                spread.cv_results_["mean_test_score"]).all())
    print(f"best: {spread.best_params_}, {spread.best_score_:.4f}; "
          f"{'the same' if is_same else 'NOT the same'} as without a cluster")
    return 0 if is_same else 1


if __name__ == "__main__":
    raise SystemExit(main())
