//! The allowed edges between our crates.

use cargo_metadata::{DependencyKind, Metadata};

use crate::report::Problem;

/// A dependency of one of our crates on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Who depends.
    pub(crate) from: String,
    /// On whom.
    pub(crate) to: String,
    /// For tests, examples and benches only.
    pub(crate) dev: bool,
    /// Behind a feature.
    pub(crate) optional: bool,
}

/// What a crate is, which decides what it may know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// `fabric-mem`, `msg-proto`, `fabric-doctor`, foreign bindings: knows nothing of ours.
    Leaf,
    /// `fabric-core`.
    Contract,
    /// `fabric-link`: what providers share.
    Shared,
    /// `fabric-sim`, `fabric-tcp`, ...: implements the contract.
    Provider,
    /// `fabric-conformance`.
    Suite,
    /// `msg-patterns`.
    Patterns,
    /// `fabric-perf`, which the command reads, and the services of `examples`: what is built on patterns.
    Tool,
    /// `fabric-cli`.
    Command,
    /// `xtask`.
    Tasks,
}

const ROLES: &[(&str, Role)] = &[
    ("fabric-mem", Role::Leaf),
    ("msg-proto", Role::Leaf),
    ("libfabric-sys", Role::Leaf),
    ("fabric-doctor", Role::Leaf),
    ("fabric-core", Role::Contract),
    ("fabric-link", Role::Shared),
    ("fabric-sim", Role::Provider),
    ("fabric-tcp", Role::Provider),
    ("fabric-verbs", Role::Provider),
    ("fabric-softroce", Role::Provider),
    ("fabric-libfabric", Role::Provider),
    ("fabric-conformance", Role::Suite),
    ("msg-patterns", Role::Patterns),
    ("fabric-perf", Role::Tool),
    ("telemetry", Role::Tool),
    ("work-queue", Role::Tool),
    ("request-router", Role::Tool),
    ("guide", Role::Tool),
    ("fabric-cli", Role::Command),
    ("xtask", Role::Tasks),
];

/// Edges that belong to a pair of crates rather than to their roles.
const PAIRS: &[(&str, &str)] = &[
    ("fabric-softroce", "fabric-verbs"),
    ("fabric-libfabric", "libfabric-sys"),
    // For its links, which are the host's and no socket's business.
    ("fabric-cli", "fabric-softroce"),
    // For runs that never sleep, whose domains need no descriptor to sleep on.
    ("fabric-perf", "fabric-libfabric"),
    // It looks at hosts, not at messages.
    ("fabric-cli", "fabric-doctor"),
];

/// The edges of the workspace.
pub(crate) fn of(metadata: &Metadata) -> Vec<Edge> {
    let ours = |name: &str| metadata.packages.iter().any(|package| package.name.as_str() == name);
    let edges = metadata.packages.iter().flat_map(|package| {
        package.dependencies.iter().map(|dependency| Edge {
            from: package.name.to_string(),
            to: dependency.name.clone(),
            dev: dependency.kind == DependencyKind::Development,
            optional: dependency.optional,
        })
    });
    edges.filter(|edge| ours(&edge.to)).collect()
}

/// A problem for each edge that is not allowed.
pub(crate) fn check(edges: &[Edge]) -> Vec<Problem> {
    edges.iter().filter_map(|edge| refusal(edge).map(|instead| problem(edge, instead))).collect()
}

fn problem(edge: &Edge, instead: String) -> Problem {
    let kind = if edge.dev { "dev-dependency" } else { "dependency" };
    Problem::new(&edge.from, format!("has a {kind} on {}", edge.to), instead)
}

/// What to do instead of this edge, if it is not allowed.
fn refusal(edge: &Edge) -> Option<String> {
    let (Some(from), Some(to)) = (role(&edge.from), role(&edge.to)) else {
        return Some("give every crate a role in xtask/src/layers/edges.rs first".to_owned());
    };
    if is_pair(edge) || allowed(from, to, edge) || (edge.dev && allowed_in_tests(from, to, edge)) {
        return None;
    }
    if (from, to) == (Role::Patterns, Role::Provider) {
        return (!edge.optional)
            .then(|| "make it optional, behind a feature of its own".to_owned());
    }
    Some(way_out(from).to_owned())
}

fn role(name: &str) -> Option<Role> {
    ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
}

fn is_pair(edge: &Edge) -> bool {
    PAIRS.contains(&(edge.from.as_str(), edge.to.as_str()))
}

fn allowed(from: Role, to: Role, edge: &Edge) -> bool {
    match from {
        Role::Leaf | Role::Tasks => false,
        Role::Contract => edge.to == "fabric-mem",
        Role::Shared | Role::Suite => to == Role::Contract,
        Role::Provider => matches!(to, Role::Contract | Role::Shared),
        Role::Patterns => to == Role::Contract || edge.to == "msg-proto",
        Role::Tool => to == Role::Patterns,
        Role::Command => matches!(to, Role::Patterns | Role::Tool),
    }
}

fn allowed_in_tests(from: Role, to: Role, edge: &Edge) -> bool {
    let tested = matches!(from, Role::Provider | Role::Patterns);
    tested && (to == Role::Suite || edge.to == "fabric-sim")
}

fn way_out(from: Role) -> &'static str {
    match from {
        Role::Leaf => "it knows nothing of ours: move what needs the other crate one layer up",
        Role::Contract => "it knows fabric-mem only: state what you need as a trait here",
        Role::Shared => "it knows fabric-core only: let providers bring what is theirs",
        Role::Provider => "use what fabric-core re-exports; share code in fabric-link",
        Role::Suite => "stay generic over the harness; providers bring themselves in their tests",
        Role::Patterns => "use fabric-core or msg-proto; name providers in backend.rs only",
        Role::Tool | Role::Command => {
            "go through msg-patterns; add to its public interface what is missing"
        }
        Role::Tasks => "start the other crate as a process and read its output",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str) -> Edge {
        Edge { from: from.into(), to: to.into(), dev: false, optional: false }
    }

    fn dev(from: &str, to: &str) -> Edge {
        Edge { dev: true, ..edge(from, to) }
    }

    fn optional(from: &str, to: &str) -> Edge {
        Edge { optional: true, ..edge(from, to) }
    }

    #[test]
    fn the_layers_as_designed_pass() {
        let healthy = [
            edge("fabric-core", "fabric-mem"),
            edge("fabric-tcp", "fabric-core"),
            edge("fabric-conformance", "fabric-core"),
            edge("fabric-link", "fabric-core"),
            edge("fabric-verbs", "fabric-link"),
            edge("fabric-softroce", "fabric-verbs"),
            edge("fabric-libfabric", "libfabric-sys"),
            edge("msg-patterns", "fabric-core"),
            edge("msg-patterns", "msg-proto"),
            optional("msg-patterns", "fabric-tcp"),
            edge("fabric-cli", "msg-patterns"),
            edge("fabric-cli", "fabric-softroce"),
            dev("fabric-tcp", "fabric-conformance"),
            dev("fabric-tcp", "fabric-sim"),
            dev("msg-patterns", "fabric-sim"),
        ];
        assert_eq!(check(&healthy), []);
    }

    #[test]
    fn every_other_edge_is_named_with_a_way_out() {
        let broken = [
            edge("msg-proto", "fabric-core"),
            edge("fabric-mem", "fabric-core"),
            edge("fabric-core", "fabric-tcp"),
            edge("fabric-core", "msg-proto"),
            edge("fabric-tcp", "fabric-mem"),
            edge("fabric-core", "fabric-link"),
            edge("fabric-link", "fabric-verbs"),
            edge("fabric-link", "fabric-mem"),
            edge("msg-patterns", "fabric-link"),
            dev("fabric-link", "fabric-sim"),
            edge("fabric-tcp", "fabric-sim"),
            edge("fabric-tcp", "fabric-conformance"),
            edge("fabric-conformance", "fabric-sim"),
            edge("msg-patterns", "fabric-mem"),
            edge("fabric-cli", "fabric-core"),
            edge("fabric-perf", "fabric-core"),
            edge("msg-patterns", "fabric-perf"),
            edge("fabric-cli", "fabric-verbs"),
            dev("fabric-cli", "fabric-sim"),
            dev("msg-patterns", "fabric-verbs"),
            edge("xtask", "fabric-conformance"),
        ];
        for edge in broken {
            let problems = check(std::slice::from_ref(&edge));
            assert_eq!(problems.len(), 1, "{edge:?}");
            assert!(problems[0].what.contains(&edge.to) && !problems[0].instead.is_empty());
        }
    }

    #[test]
    fn a_provider_in_the_patterns_stands_behind_a_feature() {
        let problems = check(&[edge("msg-patterns", "fabric-tcp")]);
        assert!(problems[0].instead.contains("optional"));
    }

    #[test]
    fn a_crate_without_a_role_is_refused() {
        let problems = check(&[edge("fabric-new", "fabric-core")]);
        assert!(problems[0].instead.contains("role"));
    }
}
