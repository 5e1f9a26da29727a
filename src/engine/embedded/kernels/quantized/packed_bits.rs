//! MatMulNBits: a product with weights of 2, 4 or 8 bits in blocks with a scale each.

use crate::engine::array::{Array, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::real::{Real, in_real};
use crate::engine::embedded::products::Matrix;
use crate::engine::fault::Fault;
use crate::engine::narrow;

/// MatMulNBits (com.microsoft 1): A times the transpose of (level - zero point) · scale. The levels are exact numbers here;
/// `accuracy_level`, which allows coarser sums, is not made use of.
pub fn matmul_bits(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, product)
}

fn product<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let size = |name: &str, default: i64| -> Result<usize, Fault> {
        let value = call.attributes.int(name, default)?;
        usize::try_from(value)
            .ok()
            .filter(|v| *v > 0 && *v < 1 << 31)
            .ok_or_else(|| Fault::Invalid(format!("attribute {name}={value} is no size")))
    };
    let (inner, columns, block, bits) =
        (size("K", 0)?, size("N", 0)?, size("block_size", 0)?, size("bits", 4)?);
    if !matches!(bits, 2 | 4 | 8) || !block.is_multiple_of(8 / bits) {
        return call.unsupported(format_args!("{bits} bits in blocks of {block}"));
    }
    if call.has(4) {
        return call.unsupported("an order of groups");
    }
    let a = call.input(0)?;
    let Some((&depth, outer)) = a.dims().split_last() else {
        return Err(Fault::Invalid("the left operand has no axis".into()));
    };
    if depth != inner {
        return Err(Fault::Invalid(format!("shape {:?} does not fit K={inner}", a.dims())));
    }
    let blocks = inner.div_ceil(block);
    let packed = call.input(1)?.view::<u8>()?;
    let scales = T::load(call.input(2)?)?;
    let weights = columns.checked_mul(blocks).and_then(|n| n.checked_mul(block));
    let fits = weights.is_some_and(|n| packed.len() == n / (8 / bits)) && scales.len() == columns * blocks;
    if !fits {
        return Err(Fault::Invalid(format!(
            "{} bytes and {} scales do not fit N={columns}, K={inner}, blocks of {block}",
            packed.len(),
            scales.len()
        )));
    }
    let zeros = zero_points::<T>(call.optional(3)?, columns, blocks, bits)?;
    let space = call.elements(&[columns, inner], size_of::<T>())? * size_of::<T>();
    let levels = match bits {
        8 => packed.to_vec(),
        bits => narrow::unpack(packed, bits as u32, columns * blocks * block),
    };
    let mut numbers = Vec::with_capacity(columns * inner);
    for (row, levels) in levels.chunks_exact(blocks * block).enumerate() {
        for (k, level) in levels[..inner].iter().enumerate() {
            let at = row * blocks + k / block;
            numbers.push((T::from_f64(f64::from(*level)) - zeros[at]) * scales[at]);
        }
    }
    let rows = outer.iter().product::<usize>();
    let mut dims = outer.to_vec();
    dims.push(columns);
    let mut out = call.vec::<T>(&dims)?;
    let left = T::load(a)?;
    T::product(
        &mut out,
        Matrix::new(&left, rows, inner),
        Matrix::new(&numbers, columns, inner).transposed(),
    )?;
    if let Some(bias) = call.optional(5)? {
        let bias = T::load(bias)?;
        if bias.len() != columns {
            return Err(Fault::Invalid(format!("the bias must have {columns} elements")));
        }
        for row in out.chunks_mut(columns) {
            row.iter_mut().zip(bias.iter()).for_each(|(v, b)| *v += *b);
        }
    }
    let out = T::array(a.element(), &dims, out);
    call.working_space = (space + columns * blocks * block) as u64;
    one(out)
}

/// A zero point for each block: packed like the weights with each row on whole bytes, or numbers; half of the range without.
fn zero_points<T: Real>(
    zeros: Option<&Array>,
    columns: usize,
    blocks: usize,
    bits: usize,
) -> Result<Vec<T>, Fault> {
    let count = columns * blocks;
    let unfit = |given: usize| Err(Fault::Invalid(format!("{given} zero points do not fit {count} blocks")));
    match zeros {
        None => Ok(vec![T::from_f64(f64::from(1u32 << (bits - 1))); count]),
        Some(zeros) => match zeros.storage() {
            Storage::U8(bytes) => {
                let row = (blocks * bits).div_ceil(8);
                if bytes.len() != columns * row {
                    return unfit(bytes.len());
                }
                let level = |bytes: &[u8], k: usize| match bits {
                    8 => bytes[k],
                    bits => bytes[k * bits / 8] >> (k * bits % 8) & ((1 << bits) - 1),
                };
                let rows = bytes.chunks_exact(row.max(1));
                Ok(rows
                    .flat_map(|row| (0..blocks).map(move |k| T::from_f64(f64::from(level(row, k)))))
                    .collect())
            }
            _ => match T::load(zeros)?.into_owned() {
                zeros if zeros.len() == count => Ok(zeros),
                zeros => unfit(zeros.len()),
            },
        },
    }
}
