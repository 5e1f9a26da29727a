//! Fonts of the system for scripts that the embedded ones lack: found by file name, so that names are readable.

use std::path::PathBuf;

/// Names of font files that hold Chinese, Japanese or Korean glyphs, best first.
const CJK_FONTS: [&str; 12] = [
    "NotoSansCJK-Regular.ttc",
    "NotoSansCJKsc-Regular.otf",
    "NotoSansSC-Regular.otf",
    "SourceHanSansSC-Regular.otf",
    "wqy-microhei.ttc",
    "wqy-zenhei.ttc",
    "DroidSansFallbackFull.ttf",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
    "msyh.ttc",
    "YuGothM.ttc",
    "malgun.ttf",
];

/// Names of font files that widen the built-in ones (Arabic, Hebrew, Devanagari, symbols), in order of use.
const WIDE_FONTS: [&str; 3] = ["DejaVuSans.ttf", "NotoSans-Regular.ttf", "Arial Unicode.ttf"];

/// Fonts that may stand behind the embedded ones, by file name; empty on a machine that has none of them.
pub fn find() -> Vec<(String, PathBuf)> {
    find_fonts(&font_folders())
}

fn font_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = [
        "/usr/share/fonts",
        "/usr/local/share/fonts",
        "/System/Library/Fonts",
        "/Library/Fonts",
        "C:\\Windows\\Fonts",
    ]
    .map(Into::into)
    .into();
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
        folders.push(home.join(".local/share/fonts"));
        folders.push(home.join(".fonts"));
        folders.push(home.join("Library/Fonts"));
    }
    folders
}

/// The best font of each list below `folders`; symbolic links are not followed and depth is limited.
fn find_fonts(folders: &[PathBuf]) -> Vec<(String, PathBuf)> {
    let mut files = std::collections::BTreeMap::new();
    let mut open: Vec<(PathBuf, u32)> = folders.iter().map(|f| (f.clone(), 0)).collect();
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < 6 {
                open.push((entry.path(), depth + 1));
            } else if kind.is_file() {
                files.insert(entry.file_name().to_string_lossy().into_owned(), entry.path());
            }
        }
    }
    let first = |names: &[&str]| {
        names.iter().find_map(|&name| files.get(name).map(|path| (name.to_owned(), path.clone())))
    };
    [first(&WIDE_FONTS), first(&CJK_FONTS)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fonts_are_found_below_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("opentype/noto");
        std::fs::create_dir_all(&deep).expect("folders");
        std::fs::write(deep.join("NotoSansCJK-Regular.ttc"), b"").expect("a file");
        std::fs::write(deep.join("Other.ttf"), b"").expect("a file");
        let found = find_fonts(&[folder.path().to_path_buf()]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "NotoSansCJK-Regular.ttc");
    }
}
