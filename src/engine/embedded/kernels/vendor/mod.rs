//! Operators of com.microsoft that ONNX Runtime's optimizer and exporters for it write into models. Their meaning is that
//! of ONNX Runtime's own documentation of contributed operators.

mod activations;
mod attention;
mod fused;
mod grouped;
mod heads;
mod layout;
mod normalization;
mod rotary;

use super::standard;

kernels! {
    "Attention" => Kernel::plain(heads::attention),
    "BiasAdd" => Kernel::plain(activations::bias_add),
    "BiasGelu" => Kernel::plain(activations::bias_gelu),
    "BiasSoftmax" => Kernel::plain(activations::bias_softmax),
    "EmbedLayerNormalization" => Kernel::plain(normalization::embed_layer_normalization),
    "ExpandDims" => Kernel::plain(layout::expand_dims),
    "FastGelu" => Kernel::plain(activations::fast_gelu),
    "FusedConv" => Kernel { run: fused::conv, pack: standard("Conv").and_then(|k| k.pack) },
    "FusedGemm" => Kernel { run: fused::gemm, pack: standard("Gemm").and_then(|k| k.pack) },
    "FusedMatMul" => Kernel::plain(fused::matmul),
    "Gelu" => Kernel::plain(activations::gelu),
    "GroupQueryAttention" => Kernel::plain(grouped::group_query_attention),
    "Inverse" => Kernel::plain(layout::inverse),
    "MultiHeadAttention" => Kernel::plain(heads::multi_head_attention),
    "NhwcConv" => Kernel::plain(fused::nhwc_conv),
    "Pad" => Kernel::plain(layout::pad),
    "QuickGelu" => Kernel::plain(activations::quick_gelu),
    "RotaryEmbedding" => Kernel::plain(rotary::rotary_embedding),
    "SkipLayerNormalization" => Kernel::plain(normalization::skip_layer_normalization),
    "SkipSimplifiedLayerNormalization" => Kernel::plain(normalization::skip_simplified_layer_normalization),
    "Trilu" => Kernel::plain(layout::trilu),
    "Unique" => Kernel::plain(layout::unique),
}

/// Operators that ONNX Runtime writes into the standard domain, though the standard has none of that name.
pub mod unofficial {
    use super::normalization;

    kernels! {
        "SimplifiedLayerNormalization" => Kernel::plain(normalization::simplified_layer_normalization),
    }
}
