use std::collections::BTreeMap;

use domain::signature::preset::Preset;
use domain::signature::scheme::Scheme;
use settings::{FileText, Sources, resolve};

use super::*;

/// The scheme that these settings give, out of the settings file and out of variables.
fn schemes(written: &[Written]) -> [Scheme; 2] {
    let lines: Vec<_> = written.iter().map(|it| format!("{} = {}", it.name, it.toml)).collect();
    let file = FileText { path: "gleaner.toml".into(), text: lines.join("\n") };
    let nothing = |_: &str| None;
    let of_file = Sources {
        flags: Vec::new(),
        environment: &nothing,
        variables: Vec::new(),
        file: Some(file),
    };
    let named: BTreeMap<String, String> = written
        .iter()
        .map(|it| {
            let name = it.name.replace('.', "_").to_ascii_uppercase();
            (format!("GLEANER_{name}"), it.text.clone())
        })
        .collect();
    let variable = |name: &str| named.get(name).cloned();
    let of_variables = Sources {
        flags: Vec::new(),
        environment: &variable,
        variables: named.keys().cloned().collect(),
        file: None,
    };
    [of_file, of_variables].map(|sources| resolve(&sources).unwrap().scheme)
}

/// What is printed can be pasted into the settings file and into the environment, and means the
/// scheme that was found.
#[test]
fn what_is_printed_is_what_is_read() {
    for preset in Preset::ALL {
        let config = preset.config();
        let scheme = Scheme::try_from(config.clone()).unwrap();
        assert_eq!(schemes(&[of_scheme(&config).unwrap()]), [scheme.clone(), scheme], "{preset:?}");
    }
    let header = |name| HeaderName::parse(name).unwrap();
    for preset in Preset::ALL {
        let headers = Some(vec![header("x-one"), header("x-two")]);
        let inflated = (preset != Preset::StaticHeader).then_some(BodyForm::Inflated);
        for (headers, body) in
            [(None, None), (headers.clone(), None), (None, inflated), (headers, inflated)]
        {
            let changed = PresetConfig { name: preset, headers, body, tolerance_secs: None };
            let scheme = Scheme::try_from(SchemeConfig::Preset(changed.clone())).unwrap();
            let written = of_preset(&changed);
            assert_eq!(schemes(&written), [scheme.clone(), scheme], "{written:?}");
        }
    }
}
