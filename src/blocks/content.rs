//! What a set of nodes consists of, counted by kind of operator: what modules are told apart by.

use super::flow::{Flow, Role};
use crate::facts::Facts;
use crate::ir::{Model, Node, NodeId};

/// Kind of operator, as far as recognising modules needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// Any convolution; one of the next two may be counted besides.
    Conv,
    /// Convolution with as many groups as channels.
    Depthwise,
    /// Convolution with a kernel of one element.
    Pointwise,
    /// Any product with a weight or of two values.
    MatMul,
    Softmax,
    /// Activation in one node.
    Activation,
    Sigmoid,
    Tanh,
    Erf,
    Clip,
    /// Normalisation in one node.
    Norm,
    Attention,
    Recurrent,
    /// Mean over axes.
    Mean,
    GlobalPool,
    Pool,
    Sqrt,
    Sub,
    Add,
    Mul,
    Div,
    Pow,
    Concat,
    Split,
    Slice,
    /// Changes of shape, order, type or scale that keep the elements.
    Layout,
    Transpose,
    Other,
}

const CLASSES: usize = Class::Other as usize + 1;

/// Counts by [`Class`] of the nodes that compute from data, and of all nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    counts: [u32; CLASSES],
    /// All nodes, constants and shape arithmetic included.
    pub all: u32,
    /// Nodes that are not constants.
    pub shown: u32,
    /// Nodes that compute from data.
    pub main: u32,
}

impl Content {
    pub const NOTHING: Content = Content { counts: [0; CLASSES], all: 0, shown: 0, main: 0 };

    pub fn of(self, class: Class) -> u32 {
        self.counts[class as usize]
    }

    pub fn has(self, class: Class) -> bool {
        self.of(class) > 0
    }

    /// True when every computing node is of one of these classes.
    pub fn only(self, classes: &[Class]) -> bool {
        classes.iter().map(|c| self.of(*c)).sum::<u32>() == self.main
    }

    /// An activation of any kind, also as a part of a spelled-out one.
    pub fn has_activation(self) -> bool {
        [Class::Activation, Class::Sigmoid, Class::Tanh, Class::Erf, Class::Clip].iter().any(|c| self.has(*c))
    }

    pub fn add(&mut self, other: &Content) {
        for (a, b) in self.counts.iter_mut().zip(other.counts) {
            *a += b;
        }
        self.all += other.all;
        self.shown += other.shown;
        self.main += other.main;
    }
}

/// Content of each node of a graph, by position.
pub(super) fn contents(model: &Model, facts: &Facts, flow: &Flow, classes: &[Class]) -> Vec<Content> {
    let one = |at: usize| {
        let mut content = Content::NOTHING;
        content.all = 1;
        content.shown = u32::from(flow.roles[at] != Role::Constant);
        if flow.roles[at] != Role::Main {
            return content;
        }
        content.main = 1;
        let class = classes[at];
        content.counts[class as usize] = 1;
        if class == Class::Conv {
            let (depthwise, pointwise) = convolution(model, facts, flow.ids[at]);
            content.counts[Class::Depthwise as usize] = u32::from(depthwise);
            content.counts[Class::Pointwise as usize] = u32::from(pointwise);
        }
        content
    };
    (0..flow.len()).map(one).collect()
}

/// Class of an operator of any domain: runtimes' own fused operators keep the standard names.
pub(super) fn class_of(node: &Node) -> Class {
    match &*node.op_type {
        "Conv" | "ConvTranspose" | "ConvInteger" | "QLinearConv" | "FusedConv" | "NhwcConv"
        | "NhwcFusedConv" => Class::Conv,
        "MatMul" | "Gemm" | "MatMulInteger" | "QLinearMatMul" | "FusedMatMul" | "Einsum" | "MatMulNBits"
        | "FusedGemm" | "QGemm" => Class::MatMul,
        "Softmax" | "LogSoftmax" => Class::Softmax,
        "Relu" | "LeakyRelu" | "PRelu" | "Elu" | "Selu" | "Celu" | "HardSwish" | "Mish" | "Softplus"
        | "Softsign" | "ThresholdedRelu" | "Gelu" | "FastGelu" | "BiasGelu" | "QuickGelu" | "Swish"
        | "Shrink" => Class::Activation,
        "Sigmoid" | "HardSigmoid" => Class::Sigmoid,
        "Tanh" => Class::Tanh,
        "Erf" => Class::Erf,
        "Clip" => Class::Clip,
        "BatchNormalization"
        | "InstanceNormalization"
        | "LayerNormalization"
        | "GroupNormalization"
        | "RMSNormalization"
        | "SimplifiedLayerNormalization"
        | "SkipLayerNormalization"
        | "GroupNorm"
        | "LpNormalization"
        | "LRN" => Class::Norm,
        "Attention" | "MultiHeadAttention" | "GroupQueryAttention" | "QAttention" | "PackedAttention" => {
            Class::Attention
        }
        "LSTM" | "GRU" | "RNN" => Class::Recurrent,
        "ReduceMean" => Class::Mean,
        "GlobalAveragePool" | "GlobalMaxPool" => Class::GlobalPool,
        "MaxPool" | "AveragePool" | "LpPool" => Class::Pool,
        "Sqrt" => Class::Sqrt,
        "Sub" => Class::Sub,
        "Add" | "Sum" => Class::Add,
        "Mul" => Class::Mul,
        "Div" | "Reciprocal" => Class::Div,
        "Pow" => Class::Pow,
        "Concat" => Class::Concat,
        "Split" => Class::Split,
        "Slice" | "Gather" => Class::Slice,
        "Transpose" => Class::Transpose,
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Identity" | "Cast" | "CastLike" | "Dropout"
        | "QuantizeLinear" | "DequantizeLinear" | "Expand" => Class::Layout,
        _ => Class::Other,
    }
}

/// Whether a convolution is depthwise, and whether its kernel is a single element.
fn convolution(model: &Model, facts: &Facts, id: NodeId) -> (bool, bool) {
    let node = model.node(id);
    let weight_at = if &*node.op_type == "QLinearConv" { 3 } else { 1 };
    let weight = node.input(weight_at).and_then(|w| facts.ty(model, w).fixed_shape());
    let group = node.int_or("group", 1).unwrap_or(1);
    let kernel: Option<Vec<i64>> = node
        .attribute("kernel_shape")
        .and_then(|a| a.ints())
        .map(<[i64]>::to_vec)
        .or_else(|| weight.as_ref()?.get(2..).map(|k| k.iter().map(|d| *d as i64).collect()));
    // Dimension 1 of the weight is the number of input channels of a group.
    let channels = weight.as_ref().and_then(|w| w.get(1).copied());
    let depthwise = group > 1 && channels.is_none_or(|c| c == 1);
    (depthwise, kernel.is_some_and(|k| k.iter().all(|d| *d == 1)))
}
