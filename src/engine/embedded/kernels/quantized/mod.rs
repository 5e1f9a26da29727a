//! Operators on quantized values: exact 32-bit sums, rounding to nearest with ties to even, saturation.

mod convolution;
mod granularity;
mod integers;
mod linear;
mod matmul;
mod packed_bits;
mod pointwise;
mod real;
pub mod shapes;
mod target;

kernels! {
    "ConvInteger" => Kernel::plain(convolution::conv_integer),
    "DequantizeLinear" => Kernel::plain(linear::dequantize_linear),
    "DynamicQuantizeLinear" => Kernel::plain(linear::dynamic_quantize_linear),
    "MatMulInteger" => Kernel::plain(matmul::matmul_integer),
    "QLinearConv" => Kernel::plain(convolution::qlinear_conv),
    "QLinearMatMul" => Kernel::plain(matmul::qlinear_matmul),
    "QuantizeLinear" => Kernel::plain(linear::quantize_linear),
}

/// Operators of com.microsoft.
pub mod contributed {
    use super::{linear, matmul, packed_bits, pointwise};

    kernels! {
        "DequantizeLinear" => Kernel::plain(linear::dequantize_linear),
        "DynamicQuantizeMatMul" => Kernel::plain(matmul::dynamic_quantize_matmul),
        "MatMulIntegerToFloat" => Kernel::plain(matmul::matmul_integer_to_float),
        "MatMulNBits" => Kernel::plain(packed_bits::matmul_bits),
        "QGemm" => Kernel::plain(matmul::qgemm),
        "QLinearAdd" => Kernel::plain(pointwise::add),
        "QLinearAveragePool" => Kernel::plain(pointwise::average_pool),
        "QLinearConcat" => Kernel::plain(pointwise::concat),
        "QLinearGlobalAveragePool" => Kernel::plain(pointwise::global_average_pool),
        "QLinearLeakyRelu" => Kernel::plain(pointwise::leaky_relu),
        "QLinearMul" => Kernel::plain(pointwise::mul),
        "QLinearSigmoid" => Kernel::plain(pointwise::sigmoid),
        "QLinearSoftmax" => Kernel::plain(pointwise::softmax),
        "QuantizeLinear" => Kernel::plain(linear::quantize_linear),
    }
}
