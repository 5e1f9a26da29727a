//! Matrix products of quantized operands.

use super::integers::{PerLine, product};
use super::linear::dynamically_quantized;
use super::real::{Real, narrowed, reals, single};
use super::shapes::Shapes;
use super::target::Target;
use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::ir::ElementType;

/// MatMulInteger (10): zero points for all, a row of the left or a column of the right operand.
pub fn matmul_integer(call: &mut Call) -> Result<Outputs, Fault> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    let shapes = Shapes::of(a.dims(), b.dims())?;
    let sums = product(call, &shapes, (a, call.optional(2)?), (b, call.optional(3)?))?;
    one(Array::new(&shapes.dims, sums))
}

/// Factors of the sums of a product: a row's times a column's.
struct Factors<R> {
    rows: PerLine<R>,
    columns: PerLine<R>,
}

impl<R: Real> Factors<R> {
    fn of(shapes: &Shapes, a_scale: &Array, b_scale: &Array) -> Result<Factors<R>, Fault> {
        let line = |scale: &Array, batch: &[usize], lines, left, what: &str| {
            PerLine::of(reals::<R>(scale)?.into_owned(), scale.dims(), batch, lines, left, what)
        };
        Ok(Factors {
            rows: line(a_scale, &shapes.left_batch, shapes.rows, true, "the scale of the left operand")?,
            columns: line(
                b_scale,
                &shapes.right_batch,
                shapes.columns,
                false,
                "the scale of the right operand",
            )?,
        })
    }

    /// Each sum with its factor and its column.
    fn apply<'a>(&'a self, shapes: &'a Shapes, sums: &'a [i32]) -> impl Iterator<Item = (R, R, usize)> + 'a {
        let columns = shapes.columns.max(1);
        let rows = shapes.rows.max(1);
        sums.chunks(columns).enumerate().flat_map(move |(line, sums)| {
            let (matrix, row) = (line / rows, line % rows);
            let row_factor = self.rows.at(shapes.matrix(&shapes.left_batch, matrix), row);
            let right = shapes.matrix(&shapes.right_batch, matrix);
            sums.iter()
                .enumerate()
                .map(move |(j, sum)| (R::int(*sum), row_factor * self.columns.at(right, j), j))
        })
    }
}

/// QLinearMatMul (10, 21): the sum is exact, its factor a_scale · b_scale / y_scale in float32.
pub fn qlinear_matmul(call: &mut Call) -> Result<Outputs, Fault> {
    if call.wide { qlinear_matmul_in::<f64>(call) } else { qlinear_matmul_in::<f32>(call) }
}

fn qlinear_matmul_in<R: Real>(call: &Call) -> Result<Outputs, Fault> {
    let (a, b) = (call.input(0)?, call.input(3)?);
    let shapes = Shapes::of(a.dims(), b.dims())?;
    let factors = Factors::<R>::of(&shapes, call.input(1)?, call.input(4)?)?;
    if call.input(6)?.len() != 1 || call.input(7)?.len() != 1 {
        return call.unsupported("more than one scale of the output");
    }
    let y_scale = single::<R>(call.input(6)?, "the scale of the output")?;
    let target = Target::of(call.input(7)?)?;
    let sums = product(call, &shapes, (a, call.optional(2)?), (b, call.optional(5)?))?;
    let levels = factors.apply(&shapes, &sums).map(|(sum, factor, _)| target.level(sum * (factor / y_scale)));
    one(target.array(&shapes.dims, levels))
}

/// MatMulIntegerToFloat (com.microsoft 1): sum · a_scale · b_scale + bias.
pub fn matmul_integer_to_float(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let (a, b, scale) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let zeros = (call.optional(4)?, call.optional(5)?);
        scaled::<R>(call, (a, scale, zeros.0), (b, call.input(3)?, zeros.1), call.optional(6)?)
    }
    if call.wide { run::<f64>(call) } else { run::<f32>(call) }
}

/// DynamicQuantizeMatMul (com.microsoft 1): the left operand is quantized as DynamicQuantizeLinear does it.
pub fn dynamic_quantize_matmul(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let a = call.input(0)?;
        call.elements(a.dims(), 1)?;
        let (levels, scale, zero) = dynamically_quantized::<R>(a.view()?);
        let (levels, scale, zero) = (Array::new(a.dims(), levels), Array::scalar(scale), Array::scalar(zero));
        let b = (call.input(1)?, call.input(2)?, call.optional(3)?);
        scaled::<R>(call, (&levels, &scale, Some(&zero)), b, call.optional(4)?)
    }
    if call.wide { run::<f64>(call) } else { run::<f32>(call) }
}

/// An operand with its scale and its zero point.
type Operand<'a> = (&'a Array, &'a Array, Option<&'a Array>);

fn scaled<R: Real>(call: &Call, a: Operand, b: Operand, bias: Option<&Array>) -> Result<Outputs, Fault> {
    let shapes = Shapes::of(a.0.dims(), b.0.dims())?;
    let factors = Factors::<R>::of(&shapes, a.1, b.1)?;
    let bias = bias.map(reals::<R>).transpose()?;
    if bias.as_ref().is_some_and(|bias| bias.len() != shapes.columns) {
        return Err(Fault::Invalid(format!("the bias must have {} elements", shapes.columns)));
    }
    let sums = product(call, &shapes, (a.0, a.2), (b.0, b.2))?;
    let mut out = call.vec::<R>(&shapes.dims)?;
    out.extend(factors.apply(&shapes, &sums).map(|(sum, factor, column)| match &bias {
        Some(bias) => sum * factor + bias[column],
        None => sum * factor,
    }));
    one(narrowed(b.1.element(), &shapes.dims, out)?)
}

/// QGemm (com.microsoft 1): alpha · A' · B' + C, float without a scale of the output.
pub fn qgemm(call: &mut Call) -> Result<Outputs, Fault> {
    if call.wide { qgemm_in::<f64>(call) } else { qgemm_in::<f32>(call) }
}

fn qgemm_in<R: Real>(call: &Call) -> Result<Outputs, Fault> {
    let transposed = |array: &Array, name: &str| -> Result<Array, Fault> {
        let [rows, columns] = array.dims() else {
            return Err(Fault::Invalid(format!("shape {:?} is no matrix", array.dims())));
        };
        if call.attributes.int(name, 0)? == 0 {
            return Ok(array.clone());
        }
        fn turned<T: Copy>(v: &[T], rows: usize, columns: usize) -> Vec<T> {
            (0..columns).flat_map(|j| (0..rows).map(move |i| v[i * columns + j])).collect()
        }
        Ok(match array.element() {
            ElementType::UINT8 => {
                Array::new(&[*columns, *rows], turned(array.view::<u8>()?, *rows, *columns))
            }
            ElementType::INT8 => Array::new(&[*columns, *rows], turned(array.view::<i8>()?, *rows, *columns)),
            other => return Err(Fault::element(other)),
        })
    };
    let (a, b) = (transposed(call.input(0)?, "transA")?, transposed(call.input(3)?, "transB")?);
    let shapes = Shapes::of(a.dims(), b.dims())?;
    let alpha = R::of(f64::from(call.attributes.float("alpha", 1.0)?));
    let factors = Factors::<R>::of(&shapes, call.input(1)?, call.input(4)?)?;
    let mut sums = product(call, &shapes, (&a, call.optional(2)?), (&b, call.optional(5)?))?;
    if let Some(c) = call.optional(6)? {
        let (rows, columns) = match c.dims() {
            [] => (1, 1),
            [n] => (1, *n),
            [m, n] => (*m, *n),
            dims => return Err(Fault::Invalid(format!("C has shape {dims:?}"))),
        };
        if (rows != 1 && rows != shapes.rows) || (columns != 1 && columns != shapes.columns) {
            return Err(Fault::Invalid(format!("C has shape {:?} for {:?}", c.dims(), shapes.dims)));
        }
        let c = c.view::<i32>()?;
        for (i, row) in sums.chunks_mut(shapes.columns.max(1)).enumerate() {
            for (j, sum) in row.iter_mut().enumerate() {
                let at = if rows == 1 { 0 } else { i * columns } + if columns == 1 { 0 } else { j };
                *sum = sum.wrapping_add(c[at]);
            }
        }
    }
    let Some(y_scale) = call.optional(7)? else {
        let mut out = call.vec::<R>(&shapes.dims)?;
        out.extend(factors.apply(&shapes, &sums).map(|(sum, factor, _)| sum * (alpha * factor)));
        return one(Array::new(&shapes.dims, out));
    };
    let y_scale = single::<R>(y_scale, "the scale of the output")?;
    let target = match call.optional(8)? {
        Some(zero_point) => Target::of(zero_point)?,
        None => Target::zero(a.element())?,
    };
    let levels =
        factors.apply(&shapes, &sums).map(|(sum, factor, _)| target.level(sum * (alpha * factor / y_scale)));
    one(target.array(&shapes.dims, levels))
}
