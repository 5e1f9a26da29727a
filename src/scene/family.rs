//! Which family an operator belongs to: what its colour says.

use super::Family;
use crate::ir::Node;

/// Families in the order of a legend.
pub const FAMILIES: [Family; 12] = [
    Family::Convolution,
    Family::Matrix,
    Family::Normalization,
    Family::Activation,
    Family::Reduction,
    Family::Elementwise,
    Family::Layout,
    Family::Shape,
    Family::Conversion,
    Family::Recurrent,
    Family::Control,
    Family::Other,
];

impl Family {
    /// Family of a node. Operators of foreign domains are `Other`, except those that runtimes add to the standard ones
    /// under telling names (`FusedConv`, `QLinearAdd`, `SkipLayerNormalization`, …).
    pub fn of(node: &Node) -> Family {
        let op = &*node.op_type;
        if node.is_standard() {
            return standard(op);
        }
        if &*node.domain != "com.microsoft" {
            return Family::Other;
        }
        match op {
            _ if op.contains("Norm") => Family::Normalization,
            _ if op.contains("Conv") => Family::Convolution,
            _ if op.contains("MatMul") || op.contains("Gemm") || op.contains("Attention") => Family::Matrix,
            _ if op.contains("Gelu") || op.contains("Softmax") => Family::Activation,
            _ if op.contains("Quantize") => Family::Conversion,
            _ if op.starts_with("QLinear") => standard(op.trim_start_matches("QLinear")),
            _ => standard(op),
        }
    }

    /// The family's name in a legend.
    pub fn name(self) -> &'static str {
        match self {
            Family::Convolution => "convolution",
            Family::Matrix => "matrix product, attention",
            Family::Normalization => "normalization",
            Family::Activation => "activation",
            Family::Reduction => "pooling, reduction",
            Family::Elementwise => "element by element",
            Family::Layout => "layout, gather, concat",
            Family::Shape => "shape, constant",
            Family::Conversion => "cast, quantization",
            Family::Recurrent => "recurrent",
            Family::Control => "control flow",
            Family::Other => "other",
        }
    }
}

fn standard(op: &str) -> Family {
    match op {
        "Conv" | "ConvTranspose" | "ConvInteger" | "QLinearConv" | "DeformConv" | "Col2Im" => {
            Family::Convolution
        }
        "MatMul" | "Gemm" | "Einsum" | "MatMulInteger" | "QLinearMatMul" | "Attention" | "Det"
        | "RotaryEmbedding" | "DFT" | "STFT" => Family::Matrix,
        "BatchNormalization"
        | "LayerNormalization"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "RMSNormalization"
        | "LRN"
        | "LpNormalization"
        | "MeanVarianceNormalization" => Family::Normalization,
        "Relu" | "LeakyRelu" | "PRelu" | "Elu" | "Selu" | "Celu" | "ThresholdedRelu" | "Sigmoid"
        | "HardSigmoid" | "HardSwish" | "Swish" | "Tanh" | "Softmax" | "LogSoftmax" | "Hardmax"
        | "Softplus" | "Softsign" | "Gelu" | "Mish" | "Clip" | "Shrink" => Family::Activation,
        "MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" | "LpPool" | "GlobalLpPool"
        | "MaxRoiPool" | "RoiAlign" | "ArgMax" | "ArgMin" | "TopK" | "CumSum" | "CumProd"
        | "NonMaxSuppression" | "Unique" => Family::Reduction,
        _ if op.starts_with("Reduce") => Family::Reduction,
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Sqrt" | "Exp" | "Log" | "Neg" | "Abs" | "Reciprocal"
        | "Erf" | "Min" | "Max" | "Mean" | "Sum" | "Mod" | "Sign" | "Floor" | "Ceil" | "Round" | "Sin"
        | "Cos" | "Tan" | "Asin" | "Acos" | "Atan" | "Sinh" | "Cosh" | "Asinh" | "Acosh" | "Atanh"
        | "Equal" | "Greater" | "Less" | "GreaterOrEqual" | "LessOrEqual" | "And" | "Or" | "Xor" | "Not"
        | "Where" | "IsNaN" | "IsInf" | "BitShift" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor"
        | "BitwiseNot" => Family::Elementwise,
        "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Flatten" | "Concat" | "Split" | "Slice"
        | "Gather" | "GatherElements" | "GatherND" | "Scatter" | "ScatterElements" | "ScatterND"
        | "TensorScatter" | "Expand" | "Tile" | "Pad" | "DepthToSpace" | "SpaceToDepth" | "Resize"
        | "Upsample" | "GridSample" | "AffineGrid" | "ReverseSequence" | "Compress" | "Trilu"
        | "CenterCropPad" => Family::Layout,
        "Shape" | "Size" | "Constant" | "ConstantOfShape" | "Range" | "EyeLike" | "NonZero" | "OneHot"
        | "RandomNormal" | "RandomUniform" | "RandomNormalLike" | "RandomUniformLike" | "Bernoulli"
        | "Multinomial" | "HannWindow" | "HammingWindow" | "BlackmanWindow" | "MelWeightMatrix" => {
            Family::Shape
        }
        "Cast" | "CastLike" | "BitCast" | "QuantizeLinear" | "DequantizeLinear" | "DynamicQuantizeLinear" => {
            Family::Conversion
        }
        "LSTM" | "GRU" | "RNN" => Family::Recurrent,
        "If" | "Loop" | "Scan" | "SequenceMap" => Family::Control,
        _ => Family::Other,
    }
}
