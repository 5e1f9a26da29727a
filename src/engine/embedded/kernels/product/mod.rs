//! Matrix products: MatMul, Gemm.

mod gemm;
mod matmul;

use super::real::Real;
use crate::engine::Fault;
use crate::engine::embedded::call::{Constants, Packed, Packing};
use crate::engine::embedded::products::{Matrix, PackedRight};
use crate::ir::ElementType;
use std::sync::Arc;

kernels! {
    "MatMul" => Kernel { run: matmul::matmul, pack: Some(matmul::pack) },
    "Gemm" => Kernel { run: gemm::gemm, pack: Some(gemm::pack) },
}

/// A right side packed once; what went wrong with it is told by the node that needs it.
type PackedSide = Result<PackedRight, Fault>;

/// Packs input 1 when it is a constant matrix of a type that is multiplied in float32.
fn packing(constants: &Constants, transposed: bool) -> Option<Packing> {
    let (element, dims) = constants.inputs.get(1)?.as_ref()?;
    let float = matches!(*element, ElementType::FLOAT | ElementType::FLOAT16 | ElementType::BFLOAT16);
    let &[rows, columns] = dims.as_slice() else { return None };
    if !float || rows == 0 || columns == 0 {
        return None;
    }
    Some(Packing {
        input: 1,
        form: ("right side of a product", [u64::from(transposed), 0]),
        make: Box::new(move |array| {
            let side: PackedSide = f32::load(array).and_then(|elements| {
                PackedRight::new(Matrix::new(&elements, rows, columns).transposed_if(transposed))
            });
            let bytes = side.as_ref().map_or(0, PackedRight::bytes);
            (Arc::new(side) as Packed, bytes)
        }),
    })
}

/// Runs an expression with `T` as a type that has products: `with_factor!(array, T => expression, otherwise)`.
macro_rules! with_factor {
    ($array:expr, $t:ident => $body:expr, $otherwise:expr) => {
        match $array.storage() {
            _ if !natural($array.element()) => $otherwise,
            Storage::F32(_) => {
                type $t = f32;
                $body
            }
            Storage::F64(_) => {
                type $t = f64;
                $body
            }
            Storage::F16(_) => {
                type $t = half::f16;
                $body
            }
            Storage::BF16(_) => {
                type $t = half::bf16;
                $body
            }
            Storage::I8(_) => {
                type $t = i8;
                $body
            }
            Storage::I16(_) => {
                type $t = i16;
                $body
            }
            Storage::I32(_) => {
                type $t = i32;
                $body
            }
            Storage::I64(_) => {
                type $t = i64;
                $body
            }
            Storage::U8(_) => {
                type $t = u8;
                $body
            }
            Storage::U16(_) => {
                type $t = u16;
                $body
            }
            Storage::U32(_) => {
                type $t = u32;
                $body
            }
            Storage::U64(_) => {
                type $t = u64;
                $body
            }
            Storage::C64(_) | Storage::C128(_) | Storage::Strings(_) => $otherwise,
        }
    };
}
pub(super) use with_factor;

/// False for what is stored as uint8 without being numbers of that type.
pub fn natural(element: ElementType) -> bool {
    element == ElementType::UINT8 || element.bits() > 8 || element == ElementType::INT8
}
