"""Per-worker values and datasets."""

import os

import pytest

import jobs
import muster
from conftest import wait_until


class Resource:
    def __init__(self, number):
        self.number = number
        self.pid = os.getpid()


def make_resource(number, extra=0):
    return Resource(number + extra)


def look_at(resource):
    return resource.number, resource.pid == os.getpid(), id(resource)


def elements(iterator, count):
    return [next(iterator) for _ in range(count)], os.getpid()


def test_a_value_is_built_once_on_each_worker_and_stays_there(coordinator):
    resource = coordinator.create_per_worker_value(make_resource, (40,), {"extra": 2})
    for index in (0, 1):
        runs = coordinator.fetch([coordinator.schedule(look_at, (resource,), worker=index)
                                  for _ in range(10)], 30)
        assert len(set(runs)) == 1 and runs[0][:2] == (42, True)
    resource.close()
    with pytest.raises(muster.errors.ClosedError):
        coordinator.schedule(look_at, (resource,))


def test_an_iterator_over_a_dataset_gives_each_element_once_on_a_worker(coordinator):
    dataset = coordinator.create_per_worker_dataset(jobs.numbers)
    iterator = iter(dataset)
    for index in (0, 1):
        runs = coordinator.fetch([coordinator.schedule(jobs.next_of, (iterator,),
                                                       worker=index)
                                  for _ in range(50)], 30)
        assert sorted(runs) == list(range(50))
    other = iter(dataset)
    assert coordinator.schedule(jobs.next_of, ([other][0],), worker=0).fetch(30) == 0
    with pytest.raises(TypeError, match="pass it among the arguments"):
        next(iterator)


def test_the_end_of_a_dataset_is_the_functions_stop_iteration(coordinator):
    iterator = iter(coordinator.create_per_worker_dataset(lambda: iter([1])))
    assert coordinator.schedule(jobs.next_of, (iterator,), worker=0).fetch(30) == 1
    error = coordinator.schedule(jobs.next_of, (iterator,), worker=0).exception(30)
    assert isinstance(error, StopIteration)


def test_a_dataset_may_be_given_as_it_is(coordinator):
    iterator = iter(coordinator.create_per_worker_dataset([5, 6]))
    assert coordinator.schedule(elements, (iterator, 2)).fetch(30)[0] == [5, 6]


def test_an_error_of_the_dataset_function_is_an_input_error(coordinator):
    dataset = coordinator.create_per_worker_dataset(jobs.fail)
    with pytest.raises(muster.InputError) as caught:
        coordinator.schedule(jobs.same, (dataset,)).fetch(30)
    assert "no" in str(caught.value)


def test_values_that_are_there_go_to_the_worker_of_their_place(coordinator):
    values = coordinator.per_worker_values(["zero", "one"])
    for index, text in enumerate(["zero", "one"]):
        assert coordinator.schedule(jobs.same, (values,), worker=index).fetch(30) == text
    short = coordinator.per_worker_values(["zero"])
    with pytest.raises(muster.InputError):
        coordinator.schedule(jobs.same, (short,), worker=1).fetch(30)


def test_a_worker_that_comes_back_has_its_value_built_again(own_cluster):
    cluster = own_cluster(workers=1)
    with muster.ClusterCoordinator(cluster) as coordinator:
        iterator = iter(coordinator.create_per_worker_dataset(jobs.numbers))
        first = coordinator.schedule(elements, (iterator, 3)).fetch(30)
        cluster.kill("worker", 0)
        second = coordinator.schedule(elements, (iterator, 3)).fetch(30)
        assert first[0] == second[0] == [0, 1, 2] and first[1] != second[1]
        assert wait_until(lambda: cluster.tasks[0]["restarts"] == 1)
