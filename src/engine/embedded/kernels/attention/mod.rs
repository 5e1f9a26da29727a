//! Attention and what belongs to it: Attention, LinearAttention, RotaryEmbedding.

mod heads;
mod linear;
mod rotary;
mod scaled_dot;

kernels! {
    "Attention" => Kernel::plain(scaled_dot::attention),
    "LinearAttention" => Kernel::plain(linear::linear_attention),
    "RotaryEmbedding" => Kernel::plain(rotary::rotary_embedding),
}
