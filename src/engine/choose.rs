//! An engine by the name that people give it.

use super::command::Command;
use super::onnxruntime::{Choice, Level, OnnxRuntime};
use super::{Embedded, Engine, EngineError};
use std::path::PathBuf;
use std::sync::Arc;

/// Where things are that engines need, and how long they may take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// ONNX Runtime's library; searched for when it is not said.
    pub library: Option<PathBuf>,
    /// The program that is started as ONNX Runtime's process: this one, unless it is used as a library.
    pub program: Option<PathBuf>,
}

/// An engine: `embedded`, `onnxruntime` with its optimizer off, `onnxruntime:basic|extended|all` and/or an execution
/// provider (`onnxruntime:all,cuda`), or `cmd:PROGRAM [ARGS]`. Whether ONNX Runtime is there is seen when it is used.
pub fn by_name(name: &str, places: &Places) -> Result<Arc<dyn Engine>, EngineError> {
    if let Some(words) = name.strip_prefix("cmd:") {
        return Ok(Arc::new(Command::new(words)?));
    }
    let (engine, words) = name.split_once(':').unwrap_or((name, ""));
    match (engine, words) {
        ("embedded" | "", "") => Ok(Arc::new(Embedded::new())),
        ("onnxruntime" | "ort", words) => Ok(Arc::new(OnnxRuntime::new(choice(words, places)?))),
        _ => Err(EngineError::Engine(format!(
            "there is no engine '{name}'; there are embedded, onnxruntime (also onnxruntime:basic, :extended, :all) and cmd:PROGRAM"
        ))),
    }
}

/// Words after `onnxruntime:`, parted by commas.
fn choice(words: &str, places: &Places) -> Result<Choice, EngineError> {
    let mut choice =
        Choice { library: places.library.clone(), program: places.program.clone(), ..Choice::default() };
    for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word {
            "off" | "none" => choice.level = Level::Off,
            "basic" => choice.level = Level::Basic,
            "extended" => choice.level = Level::Extended,
            "all" => choice.level = Level::All,
            // Which providers there are only the library knows.
            provider if provider.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                choice.providers.push(provider.to_owned());
            }
            other => {
                return Err(EngineError::Engine(format!(
                    "onnxruntime:{words}: '{other}' is neither a level (off, basic, extended, all) nor the name of an execution provider"
                )));
            }
        }
    }
    Ok(choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        let places = Places::default();
        assert_eq!(by_name("embedded", &places).unwrap().describe().name, "embedded");
        let chosen = choice("all,cuda", &places).unwrap();
        assert_eq!((chosen.level, chosen.providers), (Level::All, vec!["cuda".to_owned()]));
        assert!(by_name("onnxruntim", &places).is_err_and(|e| e.to_string().contains("onnxruntime")));
        assert!(by_name("cmd:", &places).is_err_and(|e| e.to_string().contains("PROGRAM")));
        assert!(choice("fast!", &places).is_err());
    }
}
