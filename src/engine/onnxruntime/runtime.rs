//! ONNX Runtime itself, by way of `ort`: the only file that names it. Used in the child process only.

use super::message::{Form, Level, Named, Options};
use crate::ir::ElementType;
use ort::AsPointer;
use ort::environment::Environment;
use ort::ep::{self, ExecutionProviderDispatch};
use ort::logging::LogLevel;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::sys::{self, ONNXTensorElementDataType, ONNXType, OrtStatusPtr, OrtValue};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Instant;

/// Values nested deeper than this are no values of ONNX.
const DEEPEST: usize = 8;

/// What ONNX Runtime says when something does not work.
#[derive(Debug)]
pub struct Failure {
    /// OrtErrorCode; 0 when the error is not from there.
    pub code: i32,
    pub message: String,
}

impl<R> From<ort::Error<R>> for Failure {
    fn from(error: ort::Error<R>) -> Failure {
        Failure { code: sys::OrtErrorCode::from(error.code()) as i32, message: error.message().to_owned() }
    }
}

/// What cannot be said in ONNX Runtime's interface.
fn inexpressible(what: impl Into<String>) -> Failure {
    Failure { code: sys::OrtErrorCode::ORT_NOT_IMPLEMENTED as i32, message: what.into() }
}

fn invalid(what: impl Into<String>) -> Failure {
    Failure { code: sys::OrtErrorCode::ORT_INVALID_ARGUMENT as i32, message: what.into() }
}

/// Result of a call of the C interface.
///
/// # Safety
/// `status` must come from such a call; it is taken over.
unsafe fn checked(status: OrtStatusPtr) -> Result<(), Failure> {
    // SAFETY: as demanded of the caller.
    unsafe { ort::Error::result_from_status(status) }.map_err(Failure::from)
}

/// The loaded library.
pub struct Runtime {
    environment: Environment,
    path: PathBuf,
}

impl Runtime {
    /// Loads a library. `Err` says in one sentence why it cannot be used.
    pub fn load(path: &Path) -> Result<Runtime, String> {
        let shown = path.display();
        let builder = ort::init_from(path).map_err(|error| match &error {
            ort::LoadDynamicError::Dlopen { error, .. } => {
                format!("the library {shown} cannot be loaded: {error}")
            }
            ort::LoadDynamicError::MissingApi { .. } => format!("{shown} is not ONNX Runtime"),
            ort::LoadDynamicError::BadVersion { version_str, .. } => format!(
                "ONNX Runtime {version_str} ({shown}) is too old: 1.{} or later is needed",
                ort::MINOR_VERSION
            ),
            ort::LoadDynamicError::InvalidVersionString => format!("{shown} does not say its version"),
        })?;
        let builder = builder.with_name("passlens").with_telemetry(false);
        let environment = builder.build().map_err(|error| format!("{shown}: {error}"))?;
        environment.set_log_level(LogLevel::Error);
        Ok(Runtime { environment, path: path.to_owned() })
    }

    /// Version as the library states it, else as its file name has it.
    pub fn version(&self) -> String {
        stated_version(&self.path).unwrap_or_else(|| {
            let name = self.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let digits = name.trim_matches(|c: char| !c.is_ascii_digit());
            if digits.is_empty() { "unknown".into() } else { digits.into() }
        })
    }

    /// Names of the execution providers that the library was built with.
    pub fn providers(&self) -> Result<Vec<String>, Failure> {
        let mut names: *mut *mut c_char = ptr::null_mut();
        let mut count: c_int = 0;
        // SAFETY: both places outlive the call; what it gives is released below.
        unsafe {
            checked((ort::api().GetAvailableProviders)(&raw mut names, &raw mut count))?;
            let all = (0..count as usize)
                .map(|i| CStr::from_ptr(*names.add(i)).to_string_lossy().into_owned())
                .collect();
            checked((ort::api().ReleaseAvailableProviders)(names, count))?;
            Ok(all)
        }
    }

    /// A session of a model file. `profile` is where times go, `optimized` where the graph is written as it will run.
    pub fn open(
        &self,
        model: &Path,
        options: &Options,
        profile: Option<&Path>,
        optimized: Option<&Path>,
    ) -> Result<Opened, Failure> {
        let level = match options.level {
            Level::Off => GraphOptimizationLevel::Disable,
            Level::Basic => GraphOptimizationLevel::Level1,
            Level::Extended => GraphOptimizationLevel::Level2,
            Level::All => GraphOptimizationLevel::All,
        };
        let mut builder = Session::builder(&self.environment)?
            .with_optimization_level(level)?
            .with_intra_threads(options.threads.max(1))?
            .with_inter_threads(1)?
            // Threads that spin while they wait would take the processor from whatever is measured next.
            .with_intra_op_spinning(false)?
            .with_inter_op_spinning(false)?;
        let providers = options.providers.iter().filter(|name| short(name) != "cpu");
        let providers: Vec<ExecutionProviderDispatch> =
            providers.map(|name| provider(name)).collect::<Result<_, _>>()?;
        if !providers.is_empty() {
            builder = builder.with_execution_providers(providers)?;
        }
        if let Some(path) = profile {
            builder = builder.with_profiling(path)?;
        }
        if let Some(path) = optimized {
            builder = builder.with_optimized_model_path(path)?;
        }
        Ok(Opened { session: builder.commit_from_file(model)? })
    }
}

/// `CUDAExecutionProvider` and `cuda` are the same.
fn short(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    lower.strip_suffix("executionprovider").unwrap_or(&lower).to_owned()
}

fn provider(name: &str) -> Result<ExecutionProviderDispatch, Failure> {
    let dispatch = match &*short(name) {
        "cuda" => ep::CUDA::default().build(),
        "tensorrt" => ep::TensorRT::default().build(),
        "rocm" => ep::ROCm::default().build(),
        "migraphx" => ep::MIGraphX::default().build(),
        "dml" | "directml" => ep::DirectML::default().build(),
        "coreml" => ep::CoreML::default().build(),
        "openvino" => ep::OpenVINO::default().build(),
        "dnnl" | "onednn" => ep::OneDNN::default().build(),
        "xnnpack" => ep::XNNPACK::default().build(),
        "qnn" => ep::QNN::default().build(),
        "webgpu" => ep::WebGPU::default().build(),
        _ => {
            return Err(inexpressible(format!(
                "the execution provider '{name}' is not one that can be chosen"
            )));
        }
    };
    Ok(dispatch.error_on_failure())
}

/// The version that a loaded library states.
#[cfg(unix)]
fn stated_version(path: &Path) -> Option<String> {
    use std::os::unix::ffi::OsStrExt;
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the library is loaded already, so that this gives a handle and runs nothing; it stays loaded. The function
    // has this signature in every version (onnxruntime_c_api.h).
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let symbol = libc::dlsym(handle, c"OrtGetApiBase".as_ptr());
        if symbol.is_null() {
            return None;
        }
        let base: unsafe extern "C" fn() -> *const sys::OrtApiBase = std::mem::transmute(symbol);
        let base = base().as_ref()?;
        let version = (base.GetVersionString)();
        (!version.is_null()).then(|| CStr::from_ptr(version).to_string_lossy().into_owned())
    }
}

#[cfg(not(unix))]
fn stated_version(_: &Path) -> Option<String> {
    None
}

/// A session.
pub struct Opened {
    session: Session,
}

/// What a run gives: forms, their bytes, seconds.
pub type Ran = (Vec<Named>, Vec<Vec<u8>>, f64);

impl Opened {
    /// One run. `body` has the bytes of the inputs, one after the other.
    pub fn run(&mut self, inputs: &[Named], mut body: &[u8], outputs: &[String]) -> Result<Ran, Failure> {
        let mut fed = Vec::with_capacity(inputs.len());
        for input in inputs {
            let value = make(&input.form, &mut body)
                .map_err(|f| Failure { message: format!("input {}: {}", input.name, f.message), ..f })?;
            fed.push((c_text(&input.name)?, value));
        }
        let input_names: Vec<*const c_char> = fed.iter().map(|(name, _)| name.as_ptr()).collect();
        let input_values: Vec<*const OrtValue> = fed.iter().map(|(_, value)| value.0.cast_const()).collect();
        let wanted: Vec<CString> = outputs.iter().map(|name| c_text(name)).collect::<Result<_, _>>()?;
        let wanted: Vec<*const c_char> = wanted.iter().map(|name| name.as_ptr()).collect();
        let mut results: Vec<*mut OrtValue> = vec![ptr::null_mut(); outputs.len()];
        let session = self.session.ptr().cast_mut();
        let start = Instant::now();
        // SAFETY: names and values live until the end of this function, and there are as many as is said.
        let status = unsafe {
            (ort::api().Run)(
                session,
                ptr::null(),
                input_names.as_ptr(),
                input_values.as_ptr(),
                fed.len(),
                wanted.as_ptr(),
                outputs.len(),
                results.as_mut_ptr(),
            )
        };
        let seconds = start.elapsed().as_secs_f64();
        let results: Vec<Owned> = results.into_iter().map(Owned).collect();
        // SAFETY: the status is that of the call above.
        unsafe { checked(status)? };
        let mut bytes = Vec::new();
        let mut named = Vec::with_capacity(outputs.len());
        for (name, value) in outputs.iter().zip(&results) {
            let form = read(value.0, &mut bytes, 0)
                .map_err(|f| Failure { message: format!("output {name}: {}", f.message), ..f })?;
            named.push(Named { name: name.clone(), form });
        }
        Ok((named, bytes, seconds))
    }

    /// Writes the profile; where it is.
    pub fn end_profiling(&mut self) -> Result<PathBuf, Failure> {
        Ok(PathBuf::from(self.session.end_profiling()?))
    }
}

fn c_text(text: &str) -> Result<CString, Failure> {
    CString::new(text)
        .map_err(|_| inexpressible(format!("the name '{}' has a NUL in it", text.escape_debug())))
}

/// A value that is released when it is dropped; null is no value.
struct Owned(*mut OrtValue);

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: it is ours, and nothing refers to it any more.
            unsafe { (ort::api().ReleaseValue)(self.0) };
        }
    }
}

/// ONNX's number of an element type, and ONNX Runtime's where it is another.
const NUMBERED_OTHERWISE: [(ElementType, ONNXTensorElementDataType); 3] = [
    (ElementType::UINT2, ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2),
    (ElementType::INT2, ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2),
    (ElementType::FLOAT8E8M0, ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0),
];

fn to_runtime(element: ElementType) -> Result<ONNXTensorElementDataType, Failure> {
    use ONNXTensorElementDataType::*;
    const SAME: [ONNXTensorElementDataType; 23] = [
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1,
    ];
    let other = NUMBERED_OTHERWISE.iter().find(|(e, _)| *e == element).map(|(_, theirs)| *theirs);
    let same = SAME.iter().find(|theirs| **theirs as i32 == element.0).copied();
    other.or(same).ok_or_else(|| inexpressible(format!("it has no tensors of {element}")))
}

fn from_runtime(number: i32) -> ElementType {
    let other = NUMBERED_OTHERWISE.iter().find(|(_, theirs)| *theirs as i32 == number);
    other.map_or(ElementType(number), |(element, _)| *element)
}

fn split<'a>(body: &mut &'a [u8], length: u64) -> Result<&'a [u8], Failure> {
    let part = usize::try_from(length).ok().and_then(|n| body.split_at_checked(n));
    let (part, rest) = part.ok_or_else(|| invalid("fewer bytes than announced"))?;
    *body = rest;
    Ok(part)
}

/// A value of ONNX Runtime's from its form.
fn make(form: &Form, body: &mut &[u8]) -> Result<Owned, Failure> {
    match form {
        Form::Tensor { element, dims, bytes } => {
            let element = ElementType(*element);
            let data = split(body, *bytes)?;
            let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
            if count.and_then(|n| element.packed_bytes(n)) != Some(data.len() as u64) {
                return Err(invalid(format!("{} bytes do not fill shape {dims:?} of {element}", data.len())));
            }
            let value = tensor(element, dims)?;
            if !data.is_empty() {
                let mut place: *mut c_void = ptr::null_mut();
                // SAFETY: the tensor was made for as many bytes, and nobody else has it.
                unsafe {
                    checked((ort::api().GetTensorMutableData)(value.0, &raw mut place))?;
                    ptr::copy_nonoverlapping(data.as_ptr(), place.cast::<u8>(), data.len());
                }
            }
            Ok(value)
        }
        Form::Strings { dims, lengths } => {
            let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
            if count != Some(lengths.len() as u64) {
                return Err(invalid(format!("{} strings do not fill shape {dims:?}", lengths.len())));
            }
            let value = tensor(ElementType::STRING, dims)?;
            for (index, length) in lengths.iter().enumerate() {
                let text = split(body, *length)?;
                let mut place: *mut c_char = ptr::null_mut();
                // SAFETY: the buffer has as many bytes as asked for.
                unsafe {
                    let get = ort::api().GetResizedStringTensorElementBuffer;
                    checked(get(value.0, index, text.len(), &raw mut place))?;
                    ptr::copy_nonoverlapping(text.as_ptr(), place.cast::<u8>(), text.len());
                }
            }
            Ok(value)
        }
        Form::Sequence(items) if items.is_empty() => {
            Err(inexpressible("an empty sequence cannot be given to ONNX Runtime"))
        }
        Form::Sequence(items) => {
            let items: Vec<Owned> = items.iter().map(|item| make(item, body)).collect::<Result<_, _>>()?;
            let pointers: Vec<*const OrtValue> = items.iter().map(|item| item.0.cast_const()).collect();
            let mut out: *mut OrtValue = ptr::null_mut();
            // SAFETY: the items live until the end of this call, which shares what it needs of them.
            unsafe {
                let create = ort::api().CreateValue;
                let kind = ONNXType::ONNX_TYPE_SEQUENCE;
                checked(create(pointers.as_ptr(), pointers.len(), kind, &raw mut out))?;
            }
            Ok(Owned(out))
        }
        Form::Absent => Err(inexpressible("an optional without a value cannot be given to ONNX Runtime")),
        Form::Map { .. } => Err(inexpressible("a map cannot be given to ONNX Runtime here")),
    }
}

fn tensor(element: ElementType, dims: &[u64]) -> Result<Owned, Failure> {
    let kind = to_runtime(element)?;
    let dims: Vec<i64> = dims.iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)).collect();
    let mut allocator: *mut sys::OrtAllocator = ptr::null_mut();
    let mut out: *mut OrtValue = ptr::null_mut();
    // SAFETY: all places outlive the calls; the default allocator is never released.
    unsafe {
        checked((ort::api().GetAllocatorWithDefaultOptions)(&raw mut allocator))?;
        let create = ort::api().CreateTensorAsOrtValue;
        checked(create(allocator, dims.as_ptr(), dims.len(), kind, &raw mut out))?;
    }
    Ok(Owned(out))
}

/// A number that the C interface gives in place of an enumeration: read as a number, since a newer library may have
/// values that the enumeration here does not.
fn number(call: impl FnOnce(*mut i32) -> OrtStatusPtr) -> Result<i32, Failure> {
    let mut number = 0i32;
    // SAFETY: the status is that of the call.
    unsafe { checked(call(&raw mut number))? };
    Ok(number)
}

/// The form of a value; its bytes are added to `bytes`.
fn read(value: *mut OrtValue, bytes: &mut Vec<Vec<u8>>, depth: usize) -> Result<Form, Failure> {
    if value.is_null() {
        return Ok(Form::Absent);
    }
    if depth > DEEPEST {
        return Err(inexpressible("a value is nested too deep"));
    }
    let api = ort::api();
    // SAFETY: here and below: the value is one of ONNX Runtime's, and all places outlive the calls.
    let present = number(|out| unsafe { (api.HasValue)(value, out) })?;
    if present == 0 {
        return Ok(Form::Absent);
    }
    // SAFETY: as above.
    let kind = number(|out| unsafe { (api.GetValueType)(value, out.cast()) })?;
    const TENSOR: i32 = ONNXType::ONNX_TYPE_TENSOR as i32;
    const SEQUENCE: i32 = ONNXType::ONNX_TYPE_SEQUENCE as i32;
    const MAP: i32 = ONNXType::ONNX_TYPE_MAP as i32;
    match kind {
        TENSOR => read_tensor(value, bytes),
        SEQUENCE => {
            let mut count = 0usize;
            // SAFETY: as above.
            unsafe { checked((api.GetValueCount)(value, &raw mut count))? };
            let mut items = Vec::new();
            for index in 0..count {
                items.push(read(part(value, index)?.0, bytes, depth + 1)?);
            }
            Ok(Form::Sequence(items))
        }
        MAP => {
            let keys = Box::new(read(part(value, 0)?.0, bytes, depth + 1)?);
            let values = Box::new(read(part(value, 1)?.0, bytes, depth + 1)?);
            Ok(Form::Map { keys, values })
        }
        _ => Err(inexpressible("it is neither a tensor nor a sequence nor a map")),
    }
}

/// An element of a sequence, keys or values of a map.
fn part(value: *mut OrtValue, index: usize) -> Result<Owned, Failure> {
    let mut allocator: *mut sys::OrtAllocator = ptr::null_mut();
    let mut out: *mut OrtValue = ptr::null_mut();
    // SAFETY: all places outlive the calls.
    unsafe {
        checked((ort::api().GetAllocatorWithDefaultOptions)(&raw mut allocator))?;
        checked((ort::api().GetValue)(value, index as c_int, allocator, &raw mut out))?;
    }
    Ok(Owned(out))
}

fn read_tensor(value: *mut OrtValue, bytes: &mut Vec<Vec<u8>>) -> Result<Form, Failure> {
    let api = ort::api();
    let mut info: *mut sys::OrtTensorTypeAndShapeInfo = ptr::null_mut();
    let mut rank = 0usize;
    // SAFETY: all places outlive the calls; the description is released right after it was read.
    let (element, dims) = unsafe {
        checked((api.GetTensorTypeAndShape)(value, &raw mut info))?;
        let read = (|| {
            let element = number(|out| (api.GetTensorElementType)(info, out.cast()))?;
            checked((api.GetDimensionsCount)(info, &raw mut rank))?;
            let mut dims = vec![0i64; rank];
            checked((api.GetDimensions)(info, dims.as_mut_ptr(), rank))?;
            Ok::<_, Failure>((from_runtime(element), dims))
        })();
        (api.ReleaseTensorTypeAndShapeInfo)(info);
        read?
    };
    let dims: Vec<u64> = dims.into_iter().map(|d| u64::try_from(d).unwrap_or_default()).collect();
    let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).unwrap_or_default();
    if element == ElementType::STRING {
        let lengths = read_strings(value, count as usize, bytes)?;
        return Ok(Form::Strings { dims, lengths });
    }
    let size = element.packed_bytes(count).ok_or_else(|| inexpressible(format!("it is of {element}")))?;
    let mut place: *mut c_void = ptr::null_mut();
    let mut data = vec![0u8; size as usize];
    if size > 0 {
        // SAFETY: a tensor of so many elements has so many bytes.
        unsafe {
            checked((api.GetTensorMutableData)(value, &raw mut place))?;
            ptr::copy_nonoverlapping(place.cast::<u8>().cast_const(), data.as_mut_ptr(), data.len());
        }
    }
    bytes.push(data);
    Ok(Form::Tensor { element: element.0, dims, bytes: size })
}

fn read_strings(value: *mut OrtValue, count: usize, bytes: &mut Vec<Vec<u8>>) -> Result<Vec<u64>, Failure> {
    let api = ort::api();
    let mut total = 0usize;
    let mut offsets = vec![0usize; count];
    // SAFETY: the buffers are as long as is said.
    let text = unsafe {
        checked((api.GetStringTensorDataLength)(value, &raw mut total))?;
        let mut text = vec![0u8; total];
        if count > 0 {
            let get = api.GetStringTensorContent;
            checked(get(value, text.as_mut_ptr().cast(), total, offsets.as_mut_ptr(), count))?;
        }
        text
    };
    let ends = offsets.iter().skip(1).copied().chain([total]);
    let lengths = offsets.iter().zip(ends).map(|(start, end)| end.saturating_sub(*start) as u64).collect();
    bytes.push(text);
    Ok(lengths)
}
