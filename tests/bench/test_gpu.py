"""The script for machines with a GPU runs in all its parts, though here without one."""

from tests.bench.conftest import Results

DRY = "--size tiny --device cpu --streams 2 --tokens 4 --prompt 100 --context 128 --slots 4 --cancel 5"
PARTS = {
    "tiny, memory of a slot, MiB",
    "tiny, equality",
    "tiny, 2 streams, warm",
    "tiny, 2 streams, tokens/s",
    "tiny, cancel 5",
    "tiny, short of memory",
    "tiny, 2 streams, transformers, a thread each, tokens/s",
    "tiny, 2 streams, transformers, its batching, tokens/s",
    "tiny, all",
}


def test_every_part_of_the_gpu_script_runs_dry(results: Results) -> None:
    from bench.gpu import main  # imports transformers' models, which takes seconds in each worker

    main(DRY.split())
    markdown, figures = results()
    assert markdown.count("no GPU: a dry run") == 1
    assert figures.keys() - {"device"} == PARTS
    assert [what for what, found in figures.items() if str(found).startswith(("failed", "left out"))] == []
