//! The reference page of all settings.

use std::fmt::Write as _;

use crate::table::{Default, OTHER_VARIABLES, Setting, table};

/// What stands above the settings.
const HEAD: &str = include_str!("configuration.md");

/// The headings of the groups, with what each is about.
const GROUPS: [(&str, &str); 10] = [
    ("", "Places, platform and server"),
    ("reconcile", "Comparing the platform's job lists with the ledger"),
    ("replay", "Reading the delivery logs"),
    ("pace", "Pace of submissions"),
    ("receiver", "Bounds of the receiver"),
    ("signing", "Signatures"),
    ("envelope", "What is read of a delivery"),
    ("limits", "Bounds of the pipeline"),
    ("policies", "What is paid for only where you want it"),
    (AWS, "On AWS"),
];

/// What is used of AWS, which is no table of its own in a settings file.
const AWS: &str = "aws";

fn group(setting: &Setting) -> &'static str {
    if setting.is_of_aws() { AWS } else { setting.group() }
}

/// The page as `docs/configuration.md` holds it.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for (group, heading) in GROUPS {
        // Writing to a text does not fail.
        let _ = write!(page, "\n## {heading}\n");
        for setting in table().filter(|setting| self::group(setting) == group) {
            page.push_str(&section(setting));
        }
    }
    page.push_str("\n## Other variables\n\n");
    for (name, meaning) in OTHER_VARIABLES {
        let _ = writeln!(page, "- `{name}`: {meaning}.");
    }
    page
}

fn section(setting: &Setting) -> String {
    let default = match setting.default {
        Default::Value(text) => format!("`{text}`"),
        Default::None(text) => text.to_owned(),
    };
    let file = if setting.is_secret() { " Secret: from the environment alone." } else { "" };
    format!(
        "\n### `{}`\n\n{} {}{file}\n\n- Variable: `{}`\n- Value: {}\n- Default: {default}\n- If wrong: {}\n",
        setting.name,
        setting.meaning,
        format_args!("Read by {}.", setting.read_by),
        setting.variable(),
        setting.form,
        setting.if_wrong,
    )
}
