//! Windows that slide over images: convolutions and pools.

pub mod columns;
mod conv;
mod depthwise;
mod pool;
pub mod window;

use super::product::{rounded, single};

kernels! {
    "Conv" => Kernel { run: conv::conv, pack: Some(conv::pack) },
    "MaxPool" => Kernel::plain(pool::max_pool),
    "AveragePool" => Kernel::plain(pool::average_pool),
    "LpPool" => Kernel::plain(pool::lp_pool),
    "GlobalMaxPool" => Kernel::plain(pool::global_max_pool),
    "GlobalAveragePool" => Kernel::plain(pool::global_average_pool),
    "GlobalLpPool" => Kernel::plain(pool::global_lp_pool),
}
