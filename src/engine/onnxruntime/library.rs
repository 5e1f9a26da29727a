//! Where ONNX Runtime may be: a setting, the environment, beside the program, in Python's packages, on the system.

use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long Python may take to say where its packages are.
const PYTHON_SECONDS: u64 = 10;

/// Asks Python for the package without importing it, and never takes it from the current folder.
const QUESTION: &str = "import sys, importlib.util as u\n\
    sys.path = [p for p in sys.path if p]\n\
    s = u.find_spec('onnxruntime')\n\
    print(list(s.submodule_search_locations)[0] if s else '')";

/// A file that may be the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub path: PathBuf,
    /// How it came to be looked at, for people.
    pub from: String,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// First choice first.
    pub found: Vec<Candidate>,
    /// What looked promising and was none, in sentences.
    pub notes: Vec<String>,
}

/// Looks in all places. A setting, else the environment variable, is the only place where it is given: what somebody
/// asked for is not silently replaced by something else.
pub fn search(setting: Option<&Path>) -> Search {
    let mut search = Search::default();
    let given = setting.map(|path| (path.to_owned(), "the setting"));
    let variable = env::var_os("ORT_DYLIB_PATH").filter(|v| !v.is_empty());
    let given = given.or(variable.map(|path| (PathBuf::from(path), "ORT_DYLIB_PATH")));
    if let Some((path, from)) = given {
        let inside = if path.is_dir() { in_folder(&path) } else { Vec::new() };
        let path = inside.into_iter().next().unwrap_or(path);
        search.found.push(Candidate { path, from: from.into() });
        return search;
    }
    if let Some(folder) = env::current_exe().ok().as_deref().and_then(Path::parent) {
        search.folder(folder, "beside the program");
        search.folder(&folder.join("lib"), "beside the program");
    }
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(prefix) = env::var_os(variable).filter(|v| !v.is_empty()) {
            search.prefix(Path::new(&prefix), variable);
        }
    }
    if search.found.is_empty() {
        let pythons = if cfg!(windows) { ["python", "py"] } else { ["python3", "python"] };
        for python in pythons {
            if let Some(package) = package_of(python) {
                search.package(&package, &format!("the packages of {python}"));
            }
        }
    }
    for folder in system_folders() {
        search.folder(&folder, "the system's libraries");
    }
    search
}

impl Search {
    fn folder(&mut self, folder: &Path, from: &str) {
        for path in in_folder(folder) {
            if !self.found.iter().any(|c| c.path == path) {
                self.found.push(Candidate { path, from: from.into() });
            }
        }
    }

    /// An environment of Python or conda.
    fn prefix(&mut self, prefix: &Path, from: &str) {
        let mut sites = vec![prefix.join("Lib").join("site-packages")];
        let mut versions: Vec<PathBuf> =
            entries(&prefix.join("lib")).into_iter().filter(|p| name_of(p).starts_with("python3")).collect();
        versions.sort();
        sites.extend(versions.into_iter().map(|version| version.join("site-packages")));
        for site in sites {
            self.package(&site.join("onnxruntime"), from);
        }
        self.folder(&prefix.join("lib"), from);
        self.folder(&prefix.join("Library").join("bin"), from);
    }

    /// The folder of the Python package.
    fn package(&mut self, package: &Path, from: &str) {
        let libraries = package.join("capi");
        if !libraries.is_dir() {
            return;
        }
        if in_folder(&libraries).is_empty() {
            self.notes.push(format!(
                "the onnxruntime package in {} has no library that other programs can load (versions before 1.19 have none): pip install --upgrade onnxruntime",
                package.display()
            ));
        }
        self.folder(&libraries, from);
    }
}

/// Libraries of the right name in a folder: the plain name first, then higher versions first.
fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        entries(folder).into_iter().filter(|path| is_library(&name_of(path))).collect();
    found.sort_by_key(|path| {
        let name = name_of(path);
        let numbers = name.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u64>().ok());
        let numbers: Vec<u64> = numbers.collect();
        std::cmp::Reverse((numbers.is_empty(), numbers))
    });
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// `libonnxruntime.so`, `libonnxruntime.so.1.32.0`, `libonnxruntime.1.32.0.dylib`, `onnxruntime.dll`; not the providers'.
fn is_library(name: &str) -> bool {
    match name.strip_prefix("libonnxruntime.") {
        _ if cfg!(windows) => name.eq_ignore_ascii_case("onnxruntime.dll"),
        Some(rest) if cfg!(target_os = "macos") => rest == "dylib" || rest.ends_with(".dylib"),
        Some(rest) => rest == "so" || rest.starts_with("so."),
        None => false,
    }
}

fn system_folders() -> Vec<PathBuf> {
    let variable = if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    let mut folders: Vec<PathBuf> = match cfg!(windows) {
        true => env::var_os("PATH").iter().flat_map(env::split_paths).collect(),
        false => env::var_os(variable).iter().flat_map(env::split_paths).collect(),
    };
    if !cfg!(windows) {
        folders.extend(["/usr/local/lib", "/usr/lib", "/usr/lib64", "/opt/homebrew/lib"].map(PathBuf::from));
        let triple = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
        folders.push(triple.into());
    }
    folders.retain(|folder| folder.is_absolute());
    folders
}

/// The folder of the onnxruntime package of a Python, as that Python sees it.
fn package_of(python: &str) -> Option<PathBuf> {
    let mut child = Command::new(python)
        .args(["-c", QUESTION])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + Duration::from_secs(PYTHON_SECONDS);
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            child.kill().ok();
            child.wait().ok();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    let folder = PathBuf::from(text.trim_end_matches(['\r', '\n']));
    (folder.is_absolute() && folder.is_dir()).then_some(folder)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_name_and_the_newest_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "libonnxruntime.so.1.9.1",
            "libonnxruntime.so.1.32.0",
            "libonnxruntime_providers_shared.so",
            "onnxruntime_pybind11_state.so",
            "libonnxruntime.a",
        ];
        for name in names {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        let found: Vec<String> = in_folder(folder.path()).iter().map(|p| name_of(p)).collect();
        assert_eq!(found, ["libonnxruntime.so.1.32.0", "libonnxruntime.so.1.9.1"]);
        fs::write(folder.path().join("libonnxruntime.so"), b"").unwrap();
        assert_eq!(name_of(&in_folder(folder.path())[0]), "libonnxruntime.so");
    }

    #[test]
    fn a_package_without_a_library_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let capi = folder.path().join("lib/python3.9/site-packages/onnxruntime/capi");
        fs::create_dir_all(&capi).unwrap();
        fs::write(capi.join("onnxruntime_pybind11_state.so"), b"").unwrap();
        let mut search = Search::default();
        search.prefix(folder.path(), "VIRTUAL_ENV");
        assert!(search.found.is_empty());
        assert!(search.notes[0].contains("1.19") && search.notes[0].contains("python3.9"), "{search:?}");
    }
}
