#!/bin/sh
# Runs a model on another machine, for passlens: --engine "cmd:assets/run_over_ssh.sh HOST"
# Called as: run_over_ssh.sh HOST MODEL.onnx INPUTS.npz OUTPUTS.npz TIMES.json
#
# HOST is anything that ssh understands; it needs Python with numpy and onnxruntime. Set there or here:
#   PYTHON  the other machine's Python (default python3)
#   RUNS    timed runs after one that does not count (default 10)
# Another runner (trtexec, a board's own tool) goes in the place of the Python below; what counts is that it reads
# MODEL.onnx and INPUTS.npz and writes OUTPUTS.npz, with every output of the model by name.
set -eu
host=$1 model=$2 inputs=$3 outputs=$4 times=$5
python=${PYTHON:-python3}
runs=${RUNS:-10}
threads=${PASSLENS_THREADS:-1}

folder=$(ssh "$host" mktemp -d)
trap 'ssh "$host" rm -rf "$folder"' EXIT
# A large model has its weights in a file beside it.
set -- "$model" "$inputs"
[ -f "$model.data" ] && set -- "$@" "$model.data"
scp -q "$@" "$host:$folder/"
name=$(basename "$model")

ssh "$host" "$python - '$folder' '$name' '$runs' '$threads'" <<'PYTHON'
import json, sys, time
import numpy as np, onnxruntime as ort

folder, name, runs, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
session = ort.InferenceSession(f"{folder}/{name}", options, providers=ort.get_available_providers())
stored = np.load(f"{folder}/inputs.npz")
feeds = {}
for port in session.get_inputs():
    if port.name in stored:
        feeds[port.name] = stored[port.name]
    elif f"{port.name}[0]" in stored:
        count = sum(1 for key in stored if key.startswith(f"{port.name}["))
        feeds[port.name] = [stored[f"{port.name}[{k}]"] for k in range(count)]
outputs, seconds = session.run(None, feeds), []
for _ in range(runs):
    start = time.perf_counter()
    session.run(None, feeds)
    seconds.append(time.perf_counter() - start)
arrays = {}
for port, value in zip(session.get_outputs(), outputs):
    if isinstance(value, list):
        arrays.update({f"{port.name}[{k}]": item for k, item in enumerate(value)})
    elif value is not None:
        value = np.asarray(value)
        arrays[port.name] = value.astype(str) if value.dtype == object else value
np.savez(f"{folder}/outputs.npz", **arrays)
json.dump({"runs": seconds}, open(f"{folder}/times.json", "w"))
PYTHON

scp -q "$host:$folder/outputs.npz" "$outputs"
scp -q "$host:$folder/times.json" "$times"
