//! A small residual network with what exporters leave behind: BatchNormalization, Dropout, Identity, a Transpose pair.

use super::{Convolution, Weights, apply, convolution_and_norm};
use crate::ir::{Builder, ElementType, Model, ValueId};

pub(super) fn build() -> Model {
    let mut b = Builder::new("small_residual_network", 17);
    let mut w = Weights::new(11);
    let x = b.input("image", ElementType::FLOAT, &["batch".into(), 3.into(), 32.into(), 32.into()]);
    let stem = Convolution { scope: "/stem", from: 3, to: 8, kernel: 3, stride: 1 };
    let mut y = convolution_and_norm(&mut b, &mut w, x, stem);
    y = apply(&mut b, "Relu", &[y], "/stem/act");
    for (stage, (from, to)) in [(8, 8), (8, 16), (16, 24)].into_iter().enumerate() {
        y = block(
            &mut b,
            &mut w,
            y,
            &format!("/stage{stage}/block.0"),
            from,
            to,
            if stage == 0 { 1 } else { 2 },
        );
        if stage < 2 {
            y = block(&mut b, &mut w, y, &format!("/stage{stage}/block.1"), to, to, 1);
        }
    }
    // Channels last and back again, as a converter between layouts writes it.
    y = b.op("Transpose", &[y]).attr("perm", [0, 2, 3, 1]).named("/head/to_nhwc/Transpose").one();
    y = apply(&mut b, "Identity", &[y], "/head/boundary");
    y = b.op("Transpose", &[y]).attr("perm", [0, 3, 1, 2]).named("/head/to_nchw/Transpose").one();
    y = apply(&mut b, "GlobalAveragePool", &[y], "/head/pool");
    y = b.op("Flatten", &[y]).attr("axis", 1).named("/head/flatten/Flatten").one();
    y = apply(&mut b, "Dropout", &[y], "/head/dropout");
    let weight = b.constant("head.fc.weight", w.normal(&[24, 10], 0.2));
    let bias = b.constant("head.fc.bias", w.normal(&[10], 0.05));
    y = apply(&mut b, "MatMul", &[y, weight], "/head/fc");
    y = apply(&mut b, "Add", &[y, bias], "/head/fc");
    b.output_as(y, "logits", ElementType::FLOAT, &["batch".into(), 10.into()]);
    b.finish().unwrap_or_else(|faults| unreachable!("the sample is sound: {faults:?}"))
}

/// Two convolutions around a shortcut, which is a convolution itself where the shape changes.
fn block(
    b: &mut Builder,
    w: &mut Weights,
    x: ValueId,
    scope: &str,
    from: u64,
    to: u64,
    stride: i64,
) -> ValueId {
    let first = Convolution { scope: &format!("{scope}/conv1"), from, to, kernel: 3, stride };
    let y = convolution_and_norm(b, w, x, first);
    let y = apply(b, "Relu", &[y], &format!("{scope}/act1"));
    let second = Convolution { scope: &format!("{scope}/conv2"), from: to, to, kernel: 3, stride: 1 };
    let y = convolution_and_norm(b, w, y, second);
    let shortcut = if from != to || stride != 1 {
        let down = Convolution { scope: &format!("{scope}/downsample"), from, to, kernel: 1, stride };
        convolution_and_norm(b, w, x, down)
    } else {
        apply(b, "Identity", &[x], &format!("{scope}/shortcut"))
    };
    let sum = apply(b, "Add", &[y, shortcut], scope);
    apply(b, "Relu", &[sum], &format!("{scope}/act2"))
}
