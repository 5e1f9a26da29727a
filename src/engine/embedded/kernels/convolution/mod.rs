//! Windows that slide over images: convolutions and pools.

mod causal;
pub mod columns;
mod conv;
mod deform;
mod depthwise;
mod pool;
mod transpose;
mod unpool;
pub mod window;

kernels! {
    "AveragePool" => Kernel::plain(pool::average_pool),
    "CausalConvWithState" => Kernel::plain(causal::causal_conv),
    "Col2Im" => Kernel::plain(transpose::col2im),
    "Conv" => Kernel { run: conv::conv, pack: Some(conv::pack) },
    "ConvTranspose" => Kernel::plain(transpose::conv_transpose),
    "DeformConv" => Kernel::plain(deform::deform_conv),
    "GlobalAveragePool" => Kernel::plain(pool::global_average_pool),
    "GlobalLpPool" => Kernel::plain(pool::global_lp_pool),
    "GlobalMaxPool" => Kernel::plain(pool::global_max_pool),
    "LpPool" => Kernel::plain(pool::lp_pool),
    "MaxPool" => Kernel::plain(pool::max_pool),
    "MaxUnpool" => Kernel::plain(unpool::max_unpool),
}
