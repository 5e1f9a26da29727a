//! Operators that move elements without computing: reshaping, joining, cutting, indexing, padding, resampling.

mod create;
mod gather;
mod pad;
mod resample;
pub mod reshape;
mod resize;
mod scatter;
mod select;
mod slice;
pub mod view;
pub mod words;

use crate::engine::fault::Fault;

kernels! {
    "CenterCropPad" => Kernel::plain(slice::center_crop_pad),
    "Compress" => Kernel::plain(select::compress),
    "Concat" => Kernel::plain(reshape::concat),
    "ConstantOfShape" => Kernel::plain(create::constant_of_shape),
    "DepthToSpace" => Kernel::plain(slice::depth_to_space),
    "Expand" => Kernel::plain(reshape::expand),
    "EyeLike" => Kernel::plain(create::eye_like),
    "Flatten" => Kernel::plain(reshape::flatten),
    "Gather" => Kernel::plain(gather::gather),
    "GatherElements" => Kernel::plain(gather::gather_elements),
    "GatherND" => Kernel::plain(gather::gather_nd),
    "NonZero" => Kernel::plain(select::non_zero),
    "OneHot" => Kernel::plain(create::one_hot),
    "Pad" => Kernel::plain(pad::pad),
    "Range" => Kernel::plain(create::range),
    "Reshape" => Kernel::plain(reshape::reshape),
    "Resize" => Kernel::plain(resize::resize),
    "ReverseSequence" => Kernel::plain(slice::reverse_sequence),
    "Scatter" => Kernel::plain(scatter::scatter_elements),
    "ScatterElements" => Kernel::plain(scatter::scatter_elements),
    "ScatterND" => Kernel::plain(scatter::scatter_nd),
    "Slice" => Kernel::plain(slice::slice),
    "SpaceToDepth" => Kernel::plain(slice::space_to_depth),
    "Split" => Kernel::plain(reshape::split),
    "Squeeze" => Kernel::plain(reshape::squeeze),
    "TensorScatter" => Kernel::plain(scatter::tensor_scatter),
    "Tile" => Kernel::plain(reshape::tile),
    "Transpose" => Kernel::plain(slice::transpose),
    "Trilu" => Kernel::plain(create::trilu),
    "Unique" => Kernel::plain(select::unique),
    "Upsample" => Kernel::plain(resize::upsample),
    "Unsqueeze" => Kernel::plain(reshape::unsqueeze),
}

/// More elements than can be addressed.
const TOO_MANY: Fault = Fault::TooLarge { needed: u64::MAX, limit: isize::MAX as u64 };

/// A dimension or a number of repetitions from an int64.
fn dimension(value: i64) -> Result<usize, Fault> {
    usize::try_from(value).map_err(|_| Fault::Invalid(format!("a size of {value} is not possible")))
}
