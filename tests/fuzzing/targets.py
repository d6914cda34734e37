"""All targets by name."""

from fuzzing import data_files, engine, readers

TARGETS = {
    "tiktoken": readers.rank_file,
    "huggingface": readers.hugging_face,
    "gpt2": readers.gpt2_files,
    "json": readers.printable_json,
    "artifact": readers.artifact_file,
    "any_file": readers.any_file,
    "state": readers.state,
    "counts": data_files.counts,
    "documents": data_files.documents,
    "parquet": data_files.parquet,
    "ids": data_files.ids,
    "shards": data_files.finished_shards,
    "unfinished": data_files.unfinished_shards,
    "encode": engine.encode,
    "decode": engine.decode,
    "train": engine.train,
    "cores": engine.cores,
    "pattern": engine.pattern,
    "special": engine.special,
}
