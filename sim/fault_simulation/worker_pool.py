"""Runs scripts in several processes. A script that ends its process is a violation of its seed, like any other."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context

from sim.fault_simulation.events.script import Script
from sim.fault_simulation.run import RunResult, build_failed_result, run_script

ScriptRunner = Callable[[Script], RunResult]


def run_scripts(scripts: Sequence[Script], jobs: int, run: ScriptRunner = run_script) -> Iterator[RunResult]:
    """Run *scripts* in up to *jobs* processes; the results have the order of *scripts*.

    If a process ends without a result, nothing says which of the running scripts ended it. The first script without a
    result then runs alone, and the others in new processes.
    """
    if jobs <= 1 or len(scripts) <= 1:
        yield from map(run, scripts)
        return
    remaining_scripts = scripts
    while remaining_scripts:
        with _start_processes(min(jobs, len(remaining_scripts))) as pool:
            futures = [pool.submit(run, script) for script in remaining_scripts]
            for script, future in zip(remaining_scripts, futures, strict=True):
                result = _get_result(script, future)
                if result is None:
                    break
                remaining_scripts = remaining_scripts[1:]
                yield result
        if remaining_scripts:
            yield _run_alone(remaining_scripts[0], run)
            remaining_scripts = remaining_scripts[1:]


def _run_alone(script: Script, run: ScriptRunner) -> RunResult:
    with _start_processes(1) as pool:
        result = _get_result(script, pool.submit(run, script))
    return result or build_failed_result(script, "crashed: the process ended without a result")


def _get_result(script: Script, future: Future[RunResult]) -> RunResult | None:
    """Wait for the result; None: a process of the pool ended."""
    try:
        return future.result()
    except BrokenProcessPool:
        return None
    except Exception as error:  # noqa: BLE001 - the other seeds still run
        return build_failed_result(script, f"crashed: {type(error).__name__}: {error}")


@contextmanager
def _start_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
