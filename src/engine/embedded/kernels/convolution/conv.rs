//! Conv: a plain product for 1×1 windows, sums of shifted planes for depthwise filters, else a product with the columns
//! of patches.

use super::window::{Rounding, Window};
use super::{columns, depthwise};

use crate::engine::Fault;
use crate::engine::array::{Array, Dims, Storage};
use crate::engine::embedded::call::{Call, Constants, Outputs, Packed, Packing, one};
use crate::engine::embedded::kernels::real::Real;
use crate::engine::embedded::products::{self, Bias, Factor, Left, Matrix, PackedLeft, Right};
use crate::ir::ElementType;
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// Elements of the columns that are made at a time: they stay in the second-level cache.
const BLOCK_ELEMENTS: usize = 1 << 18;

/// Filters packed once: their dimensions, and a matrix for each group.
struct Filters {
    dims: Dims,
    groups: Result<Vec<PackedLeft>, Fault>,
}

/// Packs constant float filters, except those of depthwise convolutions, which are read as they are.
pub fn pack(constants: &Constants) -> Option<Packing> {
    let (element, dims) = constants.inputs.get(1)?.as_ref()?;
    let groups = usize::try_from(constants.attributes.int("group", 1).ok()?).ok()?;
    let float = matches!(*element, ElementType::FLOAT | ElementType::FLOAT16 | ElementType::BFLOAT16);
    let whole = dims.len() > 2 && !dims.contains(&0) && groups > 0 && dims[0] % groups == 0;
    if !float || !whole || is_depthwise(dims, groups) {
        return None;
    }
    let dims = dims.clone();
    Some(Packing {
        input: 1,
        form: ("left sides of a convolution", [groups as u64, 0]),
        make: Box::new(move |array| {
            let (rows, inner) = (dims[0] / groups, dims[1..].iter().product::<usize>());
            let groups = f32::load(array).and_then(|w| {
                w.chunks(rows * inner).map(|w| PackedLeft::new(Matrix::new(w, rows, inner))).collect()
            });
            let filters = Filters { dims, groups };
            let bytes = filters.groups.iter().flatten().map(PackedLeft::bytes).sum();
            (Arc::new(filters) as Packed, bytes)
        }),
    })
}

/// True for filters that see one channel each; with more than two spatial axes they are not told apart.
fn is_depthwise(dims: &[usize], groups: usize) -> bool {
    groups > 1 && dims.get(1) == Some(&1) && (3..=4).contains(&dims.len())
}

/// Conv of one to three spatial axes (all opsets; float types).
pub fn conv(call: &mut Call) -> Result<Outputs, Fault> {
    let x = call.input(0)?;
    let packed = call.packed::<Filters>();
    let dims = match packed {
        Some(filters) => filters.dims.clone(),
        None => Dims::from_slice(call.input(1)?.dims()),
    };
    let shape = Shape::of(call, x, &dims)?;
    let bias = call.optional(2)?;
    if let Some(b) = bias
        && b.dims() != [shape.out_channels]
    {
        return Err(Fault::Invalid(format!(
            "the bias has shape {:?} where there are {} filters",
            b.dims(),
            shape.out_channels
        )));
    }
    let out_dims = shape.out_dims();
    if let Storage::F64(image) = x.storage() {
        let filters = call.input(1)?.view::<f64>()?;
        let bias = bias.map(|b| b.view::<f64>()).transpose()?;
        let mut out = call.vec::<f64>(&out_dims)?;
        let inner = shape.inner();
        let rows = shape.rows();
        let space = shape.each_group(call, &mut out, image, |out, group, columns, count| {
            let filled = out.len();
            let filters = &filters[group * rows * inner..(group + 1) * rows * inner];
            f64::product(out, Matrix::new(filters, rows, inner), Matrix::new(columns, inner, count))?;
            if let Some(bias) = bias {
                for (line, b) in out[filled..].chunks_mut(count).zip(&bias[group * rows..]) {
                    line.iter_mut().for_each(|v| *v += b);
                }
            }
            Ok(())
        })?;
        call.working_space = space;
        return one(Array::new(&out_dims, out));
    }
    let image = f32::load(x)?;
    let bias = bias.map(f32::load).transpose()?;
    let element = x.element();
    let mut out = call.vec::<f32>(&out_dims)?;
    let plain = match packed {
        Some(_) => None,
        None => Some(f32::load(call.input(1)?)?),
    };
    let space = match &plain {
        Some(filters) if is_depthwise(&dims, shape.groups) => {
            let mut space = 0;
            for image in image.chunks(shape.image().max(1)) {
                space = depthwise::convolve(call, &mut out, image, &shape.window, filters, bias.as_deref())?;
            }
            space
        }
        _ => {
            let (rows, inner) = (shape.rows(), shape.inner());
            let groups = match packed {
                Some(filters) => Some(filters.groups.as_ref().map_err(Clone::clone)?),
                None => None,
            };
            shape.each_group(call, &mut out, &image, |out, group, columns, count| {
                let left = match (groups, &plain) {
                    (Some(groups), _) => Left::Packed(&groups[group]),
                    (None, Some(w)) => Left::Plain(Matrix::new(&w[group * rows * inner..], rows, inner)),
                    (None, None) => return Err(Fault::Invalid("there are no filters".into())),
                };
                let bias = match &bias {
                    Some(b) => Bias::Column(&b[group * rows..(group + 1) * rows]),
                    None => Bias::None,
                };
                products::float32(out, left, Right::Plain(Matrix::new(columns, inner, count)), 1.0, bias)
            })?
        }
    };
    let copies = [matches!(image, Cow::Owned(_)), matches!(plain, Some(Cow::Owned(_)))];
    let copied = copies[0] as usize * image.len() + copies[1] as usize * plain.map_or(0, |w| w.len());
    call.working_space = space + (copied * size_of::<f32>()) as u64;
    one(f32::array(element, &out_dims, out))
}

/// Sizes of a convolution.
struct Shape {
    batch: usize,
    channels: usize,
    out_channels: usize,
    groups: usize,
    window: Window,
}

impl Shape {
    fn of(call: &Call, x: &Array, filters: &[usize]) -> Result<Shape, Fault> {
        let unfit = || {
            Fault::Invalid(format!("an input of shape {:?} does not fit filters of {filters:?}", x.dims()))
        };
        let ([batch, channels, space @ ..], [out_channels, per_group, kernel @ ..]) = (x.dims(), filters)
        else {
            return Err(unfit());
        };
        let groups = call.attributes.int("group", 1)?;
        let groups = usize::try_from(groups).ok().filter(|g| *g > 0);
        let groups = groups.ok_or_else(|| Fault::Invalid("group is not positive".into()))?;
        if per_group.checked_mul(groups) != Some(*channels) || out_channels % groups != 0 {
            return Err(unfit());
        }
        let window = Window::new(&call.attributes, space, kernel, Rounding::Down)?;
        Ok(Shape { batch: *batch, channels: *channels, out_channels: *out_channels, groups, window })
    }

    fn out_dims(&self) -> Dims {
        let mut dims = Dims::from_slice(&[self.batch, self.out_channels]);
        dims.extend_from_slice(self.window.output_dims());
        dims
    }

    /// Elements of one image.
    fn image(&self) -> usize {
        self.channels * self.window.input_count()
    }

    /// Filters of a group.
    fn rows(&self) -> usize {
        self.out_channels / self.groups
    }

    /// Weights of a filter.
    fn inner(&self) -> usize {
        self.channels / self.groups * self.window.taps()
    }

    /// Appends to `out`, for every image and group, what `multiply` appends for the columns of that group: it is given
    /// the group, the columns (a row for each weight of a filter) and how many there are. Gives the bytes of working
    /// space.
    fn each_group<T: Copy + Default + Send + Sync>(
        &self,
        call: &Call,
        out: &mut Vec<T>,
        image: &[T],
        mut multiply: impl FnMut(&mut Vec<T>, usize, &[T], usize) -> Result<(), Fault>,
    ) -> Result<u64, Fault> {
        let (plane, out_plane) = (self.window.input_count(), self.window.output_count());
        let (channels, rows, inner) = (self.channels / self.groups, self.rows(), self.inner());
        if out_plane == 0 || rows == 0 {
            return Ok(0);
        }
        let block = (BLOCK_ELEMENTS / inner.max(1)).next_multiple_of(64).max(256).min(out_plane);
        let pointwise = self.window.is_pointwise();
        let space = if pointwise { 0 } else { call.elements(&[block, inner], size_of::<T>())? };
        let mut columns = Vec::with_capacity(space);
        let mut part = Vec::new();
        for index in 0..self.batch * self.groups {
            let group = index % self.groups;
            let image = &image[index * channels * plane..][..channels * plane];
            if pointwise {
                multiply(out, group, image, plane)?;
                continue;
            }
            let mut start = 0;
            let filled = out.len();
            out.reserve(rows * out_plane);
            while start < out_plane {
                let places = start..out_plane.min(start + block);
                self.fill(call, &mut columns, image, &places);
                if places.len() == out_plane {
                    multiply(out, group, &columns, out_plane)?;
                    break;
                }
                part.clear();
                multiply(&mut part, group, &columns, places.len())?;
                let room = &mut out.spare_capacity_mut()[..rows * out_plane];
                for (line, part) in room.chunks_mut(out_plane).zip(part.chunks(places.len())) {
                    line[places.clone()].write_copy_of_slice(part);
                }
                start = places.end;
                if start == out_plane {
                    // SAFETY: the blocks cover all columns of all rows.
                    unsafe { out.set_len(filled + rows * out_plane) };
                }
            }
        }
        Ok(((space + part.capacity()) * size_of::<T>()) as u64)
    }

    /// The columns of a group at some output places.
    fn fill<T: Copy + Default + Send + Sync>(
        &self,
        call: &Call,
        columns: &mut Vec<T>,
        image: &[T],
        places: &std::ops::Range<usize>,
    ) {
        columns.clear();
        let plane = self.window.input_count();
        let each = self.window.taps() * places.len();
        if call.threads > 1 && image.len() / plane.max(1) * each > 1 << 16 {
            columns.resize(image.len() / plane.max(1) * each, T::default());
            let planes = columns.par_chunks_mut(each).zip(image.par_chunks(plane));
            planes.for_each_init(Vec::new, |own, (out, plane)| {
                own.clear();
                columns::append(own, plane, &self.window, places, T::default());
                out.copy_from_slice(own);
            });
            return;
        }
        for plane in image.chunks(plane.max(1)) {
            columns::append(columns, plane, &self.window, places, T::default());
        }
    }
}
