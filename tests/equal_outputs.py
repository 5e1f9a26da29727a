#!/usr/bin/env python3
"""Every pass alone, and all together, on every model of a folder: does the result give the same outputs?

The judge is ONNX Runtime with its own optimizations off. Exact passes must give the same bits (any NaN equals any NaN),
the others the same numbers within a tolerance. Each model runs at two sizes where it has named dimensions.

Usage: tests/equal_outputs.py --bin target/release/passlens [--models ../shared/models] [--cases ../shared/cases]
       [--only SUBSTRING] [--passes NAME,...]
Needs numpy, onnx, onnxruntime, and inputs.py beside the models. Exit status 0 when nothing differed.
"""
import argparse, glob, json, multiprocessing, os, subprocess, sys, tempfile

import numpy as np

RTOL = {"float16": 2e-2, "bfloat16": 5e-2}


def run(path, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    known = {i.name for i in session.get_inputs()} | {i.name for i in session.get_overridable_initializers()}
    names = [o.name for o in session.get_outputs()]
    return names, session.run(None, {k: v for k, v in feeds.items() if k in known})


def equal(a, b, exact):
    if isinstance(a, list) or isinstance(b, list):
        both = isinstance(a, list) and isinstance(b, list) and len(a) == len(b)
        return both and all(equal(x, y, exact) for x, y in zip(a, b))
    if a is None or b is None or isinstance(a, (dict, str)):
        return str(a) == str(b)
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return a.tolist() == b.tolist()
    if exact:
        nan = np.isnan(a)
        return np.array_equal(nan, np.isnan(b)) and a[~nan].tobytes() == b[~nan].tobytes()
    x, y = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)):
        return False
    x, y = x[finite], y[finite]
    rtol = RTOL.get(str(a.dtype), 1e-3)
    scale = np.sqrt(np.mean(x * x)) if x.size else 0
    return not (np.abs(x - y) > rtol * np.abs(x) + 0.1 * rtol * scale).any()


def feeds_of(path, models):
    """Seeded inputs at two sizes; for a case those that lie beside it."""
    stored = sorted(glob.glob(path[: -len(".onnx")] + ".inputs*.npz"))
    if stored:
        return [dict(np.load(f)) for f in stored]
    sys.path.insert(0, models)
    import inputs, onnx

    model, hints = onnx.load(path, load_external_data=False), inputs.load_hints(path)
    feeds, dims = inputs.make_inputs(model, None, 1, hints)
    sets = [feeds]
    if dims:
        larger = {k: v + 1 for k, v in dims.items() if isinstance(v, int)}
        sets.append(inputs.make_inputs(model, larger, 2, hints)[0])
    return [{k: v for k, v in f.items() if v is not None} for f in sets]


def compare(path, results, models, answer):
    """In a process of its own: a crash inside the runtime is a result and not the end."""
    out = []
    for number, feeds in enumerate(feeds_of(path, models)):
        try:
            names, before = run(path, feeds)
            stable = equal(before, run(path, feeds)[1], True)
        except Exception as e:
            out.append(("", number, "original does not run: " + str(e).splitlines()[0][:120]))
            continue
        for name, file, exact in results:
            try:
                after_names, after = run(file, feeds)
            except Exception as e:
                out.append((name, number, "does not run: " + str(e).splitlines()[0][:160]))
                continue
            if names != after_names:
                out.append((name, number, f"outputs {names} became {after_names}"))
            elif not stable:
                out.append(("", number, "draws random numbers, not compared"))
            else:
                wrong = [n for n, a, b in zip(names, before, after) if not equal(a, b, exact)]
                out.append((name, number, f"differs: {wrong}" if wrong else "equal"))
    answer.put(out)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--models", default="../shared/models")
    ap.add_argument("--cases", default="../shared/cases")
    ap.add_argument("--only", default="")
    ap.add_argument("--passes", default="")
    a = ap.parse_args()
    listed = json.loads(subprocess.run([a.bin, "passes", "--json"], capture_output=True, text=True, check=True).stdout)
    passes = [(p["name"], p["risk"] == "exact") for p in listed["passes"]]
    if a.passes:
        passes = [p for p in passes if p[0] in a.passes.split(",")]
    files = sorted(glob.glob(f"{a.models}/*.onnx")) + sorted(glob.glob(f"{a.cases}/*.onnx"))
    files += sorted(glob.glob(f"{a.cases}/*/*.onnx"))
    equal_count, failed, skipped = 0, 0, 0
    for path in [f for f in files if a.only in f]:
        name = os.path.basename(path)
        with tempfile.TemporaryDirectory() as folder:
            results = []
            for which, exact in passes + [("all", False)]:
                file = f"{folder}/{which}.onnx"
                only = [] if which == "all" else ["--only", which]
                command = [a.bin, "optimize", path, "-o", file, "--no-verify", *only]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode == 0:
                    results.append((which, file, exact))
                elif done.returncode != 2 or "panicked" in done.stderr:
                    failed += 1
                    print(f"{name}: {which}: status {done.returncode}: {done.stderr.strip()[:200]}")
            if not results:
                skipped += 1
                continue
            answer = multiprocessing.Queue()
            child = multiprocessing.Process(target=compare, args=(path, results, a.models, answer))
            child.start()
            try:
                rows = answer.get(timeout=120)
            except Exception:
                rows = [("", 0, "the runtime died")]
            child.join(5)
            child.kill()
            for which, number, said in rows:
                if said == "equal":
                    equal_count += 1
                elif which == "":
                    skipped += 1
                else:
                    failed += 1
                    print(f"{name}: {which}, inputs {number}: {said}")
    print(f"{equal_count} equal, {failed} failed, {skipped} not compared")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
