//! The state of a pipeline as a file: which passes run, on what, in which order. TOML, with a version; the nearest
//! section wins (pass over stage over global); unknown keys are refused with the nearest known one.

use super::key::SiteKey;
use super::registry::Registry;
use crate::passes::{Pass, Risk, Stage};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table, Value};

/// Version of the file's layout that this program writes.
pub const VERSION: i64 = 1;

/// Rounds when nothing else is said.
pub const DEFAULT_ROUNDS: u32 = 5;

/// What a section can say of the passes that it covers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// On or off; `None` leaves it to the next wider section.
    pub enabled: Option<bool>,
    /// Paths of blocks in which these passes leave everything alone.
    pub exclude_blocks: BTreeSet<String>,
}

/// A pipeline's state.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// At most this many rounds; 0 changes nothing.
    pub rounds: u32,
    /// Stop after this step.
    pub stop_at: Option<u32>,
    /// Risky passes run too.
    pub aggressive: bool,
    pub global: Scope,
    pub stages: BTreeMap<Stage, Scope>,
    pub passes: BTreeMap<String, Scope>,
    /// Passes in the order of run; those not named follow in the registry's order.
    pub order: Vec<String>,
    /// Sites that stay as they are.
    pub exclude: BTreeSet<SiteKey>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            rounds: DEFAULT_ROUNDS,
            stop_at: None,
            aggressive: false,
            global: Scope::default(),
            stages: BTreeMap::new(),
            passes: BTreeMap::new(),
            order: Vec::new(),
            exclude: BTreeSet::new(),
        }
    }
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{file}: the configuration cannot be read: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{file}: {message}")]
    Syntax { file: String, message: String },
    #[error("{file}: version {found} is not known here; this program writes and reads version {VERSION}")]
    Version { file: String, found: String },
    #[error("{file}: unknown key '{key}'{hint}")]
    UnknownKey { file: String, key: String, hint: String },
    #[error("{file}: '{key}' must be {wanted}")]
    WrongKind { file: String, key: String, wanted: &'static str },
    #[error("{place}unknown pass '{name}'{hint}")]
    UnknownPass {
        /// File and key with a colon, or empty for a name that was given by itself.
        place: String,
        name: String,
        hint: String,
    },
}

/// `; did you mean 'x'?` when a known name is near enough.
pub fn nearest(name: &str, known: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let near = known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(name, k.as_ref()), k.as_ref().to_owned()))
        .min()
        .filter(|(distance, k)| *distance <= 2.max(k.len() / 3));
    near.map(|(_, k)| format!("; did you mean '{k}'?")).unwrap_or_default()
}

impl Config {
    /// Is a pass on: its own section, else its stage's, else the global one, else its default.
    pub fn is_on(&self, pass: &dyn Pass) -> bool {
        let info = pass.info();
        let own = self.passes.get(info.name).and_then(|s| s.enabled);
        let stage = || self.stages.get(&info.stage).and_then(|s| s.enabled);
        let default = info.default_on && (info.risk != Risk::Risky || self.aggressive);
        own.or_else(stage).or(self.global.enabled).unwrap_or(default)
    }

    /// Paths of blocks in which a pass leaves everything alone.
    pub fn excluded_blocks(&self, pass: &dyn Pass) -> BTreeSet<String> {
        let info = pass.info();
        let scopes = [self.passes.get(info.name), self.stages.get(&info.stage), Some(&self.global)];
        scopes.into_iter().flatten().flat_map(|s| s.exclude_blocks.iter().cloned()).collect()
    }

    /// Switches a pass on or off.
    pub fn set_pass(&mut self, name: &str, enabled: bool) {
        self.passes.entry(name.to_owned()).or_default().enabled = Some(enabled);
    }

    /// Switches all passes of a stage; what was said of single ones of them is forgotten.
    pub fn set_stage(&mut self, registry: &Registry, stage: Stage, enabled: bool) {
        self.stages.entry(stage).or_default().enabled = Some(enabled);
        for pass in registry.iter().filter(|p| p.info().stage == stage) {
            if let Some(scope) = self.passes.get_mut(pass.info().name) {
                scope.enabled = None;
            }
        }
    }

    /// Only these passes run.
    pub fn set_only(&mut self, names: &[String]) {
        self.global.enabled = Some(false);
        self.stages.values_mut().for_each(|s| s.enabled = None);
        self.passes.values_mut().for_each(|s| s.enabled = None);
        names.iter().for_each(|n| self.set_pass(n, true));
    }

    /// Every pass that is spoken of must be registered.
    pub fn check_names<'a>(
        registry: &Registry,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), ConfigError> {
        for name in names {
            if registry.get(name).is_none() {
                let hint = nearest(name, registry.iter().map(|p| p.info().name));
                return Err(ConfigError::UnknownPass { place: String::new(), name: name.clone(), hint });
            }
        }
        Ok(())
    }

    /// Reads a file.
    pub fn load(path: &Path, registry: &Registry) -> Result<Config, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| ConfigError::Unreadable { file: file.clone(), reason: e.to_string() })?;
        Config::parse(&text, &file, registry)
    }

    /// Reads a text; `file` is what errors call it.
    pub fn parse(text: &str, file: &str, registry: &Registry) -> Result<Config, ConfigError> {
        let table: Table = text.parse().map_err(|e: toml::de::Error| {
            // The parser's message is several lines with a picture; errors here are one line.
            let at = e.span().map(|s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            let line = at.map(|n| format!("line {n}: ")).unwrap_or_default();
            ConfigError::Syntax {
                file: file.into(),
                message: format!("{line}{}", e.message().replace('\n', " ")),
            }
        })?;
        let reader = Reader { file };
        let mut config = Config::default();
        reader.known("", &table, &["version", "global", "stage", "pass"])?;
        match table.get("version") {
            Some(Value::Integer(VERSION)) => {}
            Some(other) => return Err(ConfigError::Version { file: file.into(), found: other.to_string() }),
            None => return Err(reader.kind("version", "there (version = 1)")),
        }
        if let Some(global) = reader.table(&table, "global", "")? {
            let known = ["rounds", "stop_at", "aggressive", "enabled", "order", "exclude", "exclude_blocks"];
            reader.known("global", global, &known)?;
            config.global = reader.scope(global, "global")?;
            if let Some(rounds) = reader.number(global, "rounds", "global")? {
                config.rounds = rounds;
            }
            config.stop_at = reader.number(global, "stop_at", "global")?;
            if let Some(v) = global.get("aggressive") {
                config.aggressive =
                    v.as_bool().ok_or_else(|| reader.kind("global.aggressive", "true or false"))?;
            }
            config.order = reader.strings(global, "order", "global")?;
            reader.passes("global.order", registry, &config.order)?;
            for key in reader.strings(global, "exclude", "global")? {
                let parsed: SiteKey = key.parse().map_err(|e: super::key::NotAKey| ConfigError::Syntax {
                    file: file.into(),
                    message: format!("global.exclude: {e}"),
                })?;
                reader.passes("global.exclude", registry, [&parsed.pass.to_string()])?;
                config.exclude.insert(parsed);
            }
        }
        if let Some(stages) = reader.table(&table, "stage", "")? {
            let names: Vec<&str> = Stage::ALL.iter().map(|s| s.name()).collect();
            reader.known("stage", stages, &names)?;
            for stage in Stage::ALL {
                if let Some(section) = reader.table(stages, stage.name(), "stage.")? {
                    let name = format!("stage.{}", stage.name());
                    reader.known(&name, section, &["enabled", "exclude_blocks"])?;
                    config.stages.insert(*stage, reader.scope(section, &name)?);
                }
            }
        }
        if let Some(passes) = reader.table(&table, "pass", "")? {
            let names: Vec<&str> = registry.iter().map(|p| p.info().name).collect();
            reader.known("pass", passes, &names)?;
            for pass in names {
                if let Some(section) = reader.table(passes, pass, "pass.")? {
                    let name = format!("pass.{pass}");
                    reader.known(&name, section, &["enabled", "exclude_blocks"])?;
                    config.passes.insert(pass.to_owned(), reader.scope(section, &name)?);
                }
            }
        }
        Ok(config)
    }

    /// The same as a file: only what differs from the defaults, in a fixed order.
    pub fn to_toml(&self) -> String {
        let mut table = Table::new();
        table.insert("version".into(), Value::Integer(VERSION));
        let mut global = scope_table(&self.global);
        if self.rounds != DEFAULT_ROUNDS {
            global.insert("rounds".into(), Value::Integer(self.rounds.into()));
        }
        if let Some(step) = self.stop_at {
            global.insert("stop_at".into(), Value::Integer(step.into()));
        }
        if self.aggressive {
            global.insert("aggressive".into(), Value::Boolean(true));
        }
        if !self.order.is_empty() {
            global.insert("order".into(), strings(&self.order));
        }
        if !self.exclude.is_empty() {
            let keys: Vec<String> = self.exclude.iter().map(SiteKey::to_string).collect();
            global.insert("exclude".into(), strings(&keys));
        }
        let section = |scopes: Vec<(String, &Scope)>| -> Table {
            let filled = scopes.into_iter().map(|(n, s)| (n, scope_table(s))).filter(|(_, t)| !t.is_empty());
            filled.map(|(n, t)| (n, Value::Table(t))).collect()
        };
        let stages = section(self.stages.iter().map(|(s, scope)| (s.name().to_owned(), scope)).collect());
        let passes = section(self.passes.iter().map(|(n, scope)| (n.clone(), scope)).collect());
        for (name, part) in [("global", global), ("stage", stages), ("pass", passes)] {
            if !part.is_empty() {
                table.insert(name.into(), Value::Table(part));
            }
        }
        toml::to_string_pretty(&table).unwrap_or_default()
    }
}

fn strings(list: &[String]) -> Value {
    Value::Array(list.iter().map(|s| Value::String(s.clone())).collect())
}

fn scope_table(scope: &Scope) -> Table {
    let mut table = Table::new();
    if let Some(enabled) = scope.enabled {
        table.insert("enabled".into(), Value::Boolean(enabled));
    }
    if !scope.exclude_blocks.is_empty() {
        let list: Vec<String> = scope.exclude_blocks.iter().cloned().collect();
        table.insert("exclude_blocks".into(), strings(&list));
    }
    table
}

/// Reads sections and says where something is wrong.
struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn kind(&self, key: &str, wanted: &'static str) -> ConfigError {
        ConfigError::WrongKind { file: self.file.into(), key: key.into(), wanted }
    }

    fn known(&self, section: &str, table: &Table, names: &[&str]) -> Result<(), ConfigError> {
        for key in table.keys() {
            if !names.contains(&key.as_str()) {
                let full = if section.is_empty() { key.clone() } else { format!("{section}.{key}") };
                return Err(ConfigError::UnknownKey {
                    file: self.file.into(),
                    key: full,
                    hint: nearest(key, names),
                });
            }
        }
        Ok(())
    }

    fn table<'t>(&self, of: &'t Table, key: &str, prefix: &str) -> Result<Option<&'t Table>, ConfigError> {
        match of.get(key) {
            None => Ok(None),
            Some(Value::Table(t)) => Ok(Some(t)),
            Some(_) => Err(self.kind(&format!("{prefix}{key}"), "a section")),
        }
    }

    /// Every pass that a key speaks of must be registered.
    fn passes<'n>(
        &self,
        key: &str,
        registry: &Registry,
        names: impl IntoIterator<Item = &'n String>,
    ) -> Result<(), ConfigError> {
        Config::check_names(registry, names).map_err(|error| match error {
            ConfigError::UnknownPass { name, hint, .. } => {
                ConfigError::UnknownPass { place: format!("{}: {key}: ", self.file), name, hint }
            }
            other => other,
        })
    }

    fn number(&self, of: &Table, key: &str, prefix: &str) -> Result<Option<u32>, ConfigError> {
        let Some(value) = of.get(key) else { return Ok(None) };
        let number = value.as_integer().and_then(|n| u32::try_from(n).ok());
        number.map(Some).ok_or_else(|| self.kind(&format!("{prefix}.{key}"), "a number from 0 on"))
    }

    fn strings(&self, of: &Table, key: &str, prefix: &str) -> Result<Vec<String>, ConfigError> {
        let wrong = || self.kind(&format!("{prefix}.{key}"), "a list of texts");
        match of.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(a)) => {
                a.iter().map(|v| v.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    fn scope(&self, section: &Table, name: &str) -> Result<Scope, ConfigError> {
        let enabled = match section.get("enabled") {
            None => None,
            Some(Value::Boolean(b)) => Some(*b),
            Some(_) => return Err(self.kind(&format!("{name}.enabled"), "true or false")),
        };
        let exclude_blocks = self.strings(section, "exclude_blocks", name)?.into_iter().collect();
        Ok(Scope { enabled, exclude_blocks })
    }
}
