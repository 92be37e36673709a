//! The crate graph: every Cargo.toml is held to the table in ARCHITECTURE.md.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// A crate of the table, and the crates that it may depend on, without `homing-`.
struct Layer<'a> {
    name: &'a str,
    allowed: Vec<&'a str>,
}

/// The rows of the table: those whose first cell is a crate.
fn layers(architecture: &str) -> Vec<Layer<'_>> {
    let rows = architecture.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `homing")?.strip_suffix('|')?.split('|');
        let name = cells.next()?.trim().strip_suffix('`')?;
        let allowed = cells.nth(1)?.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        Some(Layer { name: name.strip_prefix('-').unwrap_or("homing"), allowed })
    });
    rows.collect()
}

/// Fails when a crate depends on one that its row does not name, or a row names one below it.
fn check(root: &Path) -> Result<()> {
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let layers = layers(&architecture);
    for (index, Layer { name, allowed }) in layers.iter().enumerate() {
        for other in allowed {
            let above = layers[..index].iter().any(|layer| layer.name == *other);
            ensure!(above, "ARCHITECTURE.md: {name} names {other}, which is not above it");
        }
    }
    for entry in std::fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml"))?;
        let name = folder.file_name().and_then(|name| name.to_str()).context("a crate without a name")?;
        let name = name.strip_prefix("homing-").unwrap_or(name);
        let layer = layers.iter().find(|layer| layer.name == name);
        let layer = layer.with_context(|| format!("ARCHITECTURE.md has no row for {name}"))?;
        for dependency in dependencies(&manifest) {
            ensure!(
                layer.allowed.contains(&dependency),
                "{name} depends on {dependency}, not named in its row"
            );
        }
    }
    Ok(())
}

/// The workspace's crates among the `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split(['.', ' ', '=']).next()?.strip_prefix("homing-"))
}

#[test]
fn no_crate_depends_upwards() {
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
}

#[test]
fn only_the_dependencies_of_a_manifest_count() {
    let manifest = "[dependencies]\nhoming-model.workspace = true\nhoming-tui = { workspace = true }\nserde = \"1\"\n\n\
                    [dev-dependencies]\nhoming-testkit.workspace = true\n";
    assert_eq!(dependencies(manifest).collect::<Vec<_>>(), ["model", "tui"]);
}

#[test]
fn a_row_of_the_table_names_a_crate_and_those_it_may_use() {
    let table = "| crate | what | depends |\n|---|---|---|\n| `homing-api` | bodies | model, sys |\n| `homing` | cli | |\n";
    let rows = layers(table);
    assert_eq!((rows[0].name, &rows[0].allowed[..]), ("api", &["model", "sys"][..]));
    assert_eq!((rows[1].name, rows[1].allowed.is_empty()), ("homing", true));
}
