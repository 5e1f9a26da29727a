"""Writes ONNX's node tests as folders: NAME/model.onnx, NAME/input_K.pb, NAME/output_K.pb."""
import os, sys, onnx, numpy as np, warnings
warnings.filterwarnings('ignore')
from onnx import numpy_helper, helper
from onnx.backend.test.loader import load_model_tests
out = sys.argv[1]
n = 0
for c in load_model_tests(kind="node"):
    if c.model is None: continue
    d = os.path.join(out, c.name); os.makedirs(d, exist_ok=True)
    m = c.model
    onnx.save(m, os.path.join(d, 'model.onnx'))
    ins, outs = c.data_sets[0]
    def put(kind, k, v, vi):
        if v is None: open(os.path.join(d, f'{kind}_{k}.pb'), 'wb').write(b''); return
        if isinstance(v, onnx.TensorProto) : p = v
        elif isinstance(v,(onnx.SequenceProto,onnx.OptionalProto)): p=v
        else:
            w = vi.type.WhichOneof('value')
            if w == 'tensor_type': p = numpy_helper.from_array(np.asarray(v), vi.name) if not isinstance(v, onnx.TensorProto) else v
            elif w == 'sequence_type': p = numpy_helper.from_list(v, vi.name)
            else: p = numpy_helper.from_optional(v, vi.name)
        open(os.path.join(d, f'{kind}_{k}.pb'), 'wb').write(p.SerializeToString())
    try:
        for k, v in enumerate(ins): put('input', k, v, m.graph.input[k])
        for k, v in enumerate(outs): put('output', k, v, m.graph.output[k])
        open(os.path.join(d,'tolerance'),'w').write(f"{c.rtol} {c.atol}")
        n += 1
    except Exception as e:
        print(c.name, repr(e)[:150])
print(n)
