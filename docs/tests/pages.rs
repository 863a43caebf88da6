//! Nothing of the guide is left out of its tests, and no link of it leads nowhere.

use std::fs;
use std::path::{Path, PathBuf};

use yaml_rust2::{Yaml, YamlLoader};

const LIB: &str = include_str!("../lib.rs");

fn docs() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no .{extension}", dir.display());
    files
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[test]
fn every_page_with_rust_code_is_compiled() {
    for page in files(docs(), "md") {
        let text = fs::read_to_string(&page).unwrap();
        let has_code = text.lines().any(|line| line.starts_with("```rust"));
        let is_compiled = LIB.contains(&format!("include_str!(\"{}\")", name(&page)));
        assert!(!has_code || is_compiled, "{} is not in docs/lib.rs", name(&page));
        assert!(!text.contains("```rust,ignore"), "{}: code that is not compiled", name(&page));
    }
}

#[test]
fn every_page_is_in_the_index() {
    let index = fs::read_to_string(docs().join("README.md")).unwrap();
    for page in files(docs(), "md") {
        let link = format!("({})", name(&page));
        assert!(name(&page) == "README.md" || index.contains(&link), "{link} is not listed");
    }
}

#[test]
fn no_link_between_pages_leads_nowhere() {
    for page in files(docs(), "md") {
        let text = fs::read_to_string(&page).unwrap();
        for target in links(&text) {
            assert!(docs().join(target).exists(), "{}: {target} is not there", name(&page));
        }
    }
}

#[test]
fn whoever_comes_from_zeromq_finds_every_option_that_a_setting_stands_for() {
    let page = |name: &str| fs::read_to_string(docs().join(name)).unwrap();
    let (settings, guide) = (page("configuration.md"), page("from-zeromq.md"));
    let options: Vec<_> =
        settings.split("(ZMQ_").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(options.len() > 15, "only {options:?}");
    for option in options {
        assert!(
            guide.contains(&format!("`ZMQ_{option}`")),
            "ZMQ_{option} is not in from-zeromq.md"
        );
    }
}

/// The files that a page links to, without anchors.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    files.map(|target| target.split('#').next().unwrap())
}

#[test]
fn every_manifest_is_what_it_says() {
    for path in files(&docs().join("manifests"), "yaml") {
        let text = fs::read_to_string(&path).unwrap();
        let documents = YamlLoader::load_from_str(&text);
        let documents = documents.unwrap_or_else(|error| panic!("{}: {error}", name(&path)));
        for document in &documents {
            check_object(document, name(&path));
        }
    }
}

fn check_object(object: &Yaml, file: &str) {
    for key in ["apiVersion", "kind"] {
        assert!(object[key].as_str().is_some(), "{file}: no {key}");
    }
    assert!(object["metadata"]["name"].as_str().is_some(), "{file}: no name");
    for container in containers(object) {
        let limits = container["resources"]["limits"].as_hash();
        let limits = limits.unwrap_or_else(|| panic!("{file}: no limits"));
        assert!(limits.keys().any(|key| key.as_str() == Some("memory")), "{file}: no memory");
        check_mounts(object, container, file);
    }
}

/// Of a pod, or of the template of what makes pods.
fn pod(object: &Yaml) -> &Yaml {
    let template = &object["spec"]["template"]["spec"];
    if template.is_badvalue() { &object["spec"] } else { template }
}

fn containers(object: &Yaml) -> &[Yaml] {
    let found = pod(object)["containers"].as_vec().map(Vec::as_slice).unwrap_or_default();
    let is_pod = ["Pod", "Deployment", "DaemonSet"].contains(&object["kind"].as_str().unwrap());
    assert_eq!(is_pod, !found.is_empty(), "{:?}", object["metadata"]["name"]);
    found
}

fn check_mounts(object: &Yaml, container: &Yaml, file: &str) {
    let volumes = pod(object)["volumes"].as_vec().map(Vec::as_slice).unwrap_or_default();
    let mounts = container["volumeMounts"].as_vec().map(Vec::as_slice).unwrap_or_default();
    for mount in mounts {
        let is_there = volumes.iter().any(|volume| volume["name"] == mount["name"]);
        assert!(is_there, "{file}: there is no volume {:?}", mount["name"]);
    }
}

/// The plugin reads JSON that stands as text in YAML.
#[test]
fn what_the_device_plugin_offers_is_what_pods_ask_for() {
    let load = |file: &str| {
        let text = fs::read_to_string(docs().join("manifests").join(file)).unwrap();
        YamlLoader::load_from_str(&text).unwrap()
    };
    let config = load("rdma-devices.yaml");
    // JSON is YAML, too.
    let json = config[0]["data"]["config.json"].as_str().unwrap();
    let json = &YamlLoader::load_from_str(json).unwrap()[0];
    let offered = format!("rdma/{}", json["configList"][0]["resourceName"].as_str().unwrap());
    let service = load("verbs-service.yaml");
    for object in service.iter().filter(|object| object["kind"].as_str() == Some("Deployment")) {
        let limits = &containers(object)[0]["resources"]["limits"];
        assert_eq!(limits[offered.as_str()].as_i64(), Some(1), "nobody asks for {offered}");
    }
}
