//! The providers compiled in, by address scheme. The only file that names one.

use std::sync::Arc;

use fabric_core::{Addr, DynFabric};

use crate::{Error, ErrorKind};

/// Providers to choose from: those given by the user first, then those compiled in.
#[derive(Clone, Default)]
pub(crate) struct Backends(Vec<Arc<dyn DynFabric>>);

/// Schemes that a feature of this crate would serve.
const KNOWN: &[(&str, &str)] = &[
    ("tcp", "tcp"),
    ("verbs", "verbs"),
    ("softroce", "softroce"),
    ("ofi", "libfabric"),
    ("ofi+tcp", "libfabric"),
    ("ofi+shm", "libfabric"),
    ("ofi+verbs", "libfabric"),
];

impl Backends {
    pub(crate) fn compiled_in() -> Self {
        #[allow(unused_mut)]
        let mut backends = Self::default();
        #[cfg(feature = "tcp")]
        backends.0.push(Arc::new(fabric_tcp::TcpFabric::default()));
        #[cfg(feature = "verbs")]
        backends.0.push(Arc::new(fabric_verbs::VerbsFabric::default()));
        #[cfg(feature = "softroce")]
        backends.0.push(Arc::new(fabric_softroce::SoftRoceFabric::default()));
        #[cfg(feature = "libfabric")]
        backends.0.push(Arc::new(fabric_libfabric::LibfabricFabric::default()));
        backends
    }

    pub(crate) fn add(&mut self, fabric: Arc<dyn DynFabric>) {
        self.0.insert(0, fabric);
    }

    /// The provider for `addr`, or an error that lists what there is.
    pub(crate) fn find(&self, addr: &Addr) -> Result<&Arc<dyn DynFabric>, Error> {
        let scheme = addr.scheme();
        let found = self.0.iter().find(|fabric| fabric.schemes().contains(&scheme));
        found.ok_or_else(|| Error::new(ErrorKind::Unsupported, self.refusal(scheme)))
    }

    fn refusal(&self, scheme: &str) -> String {
        if let Some((_, feature)) = KNOWN.iter().find(|(known, _)| *known == scheme) {
            return format!(
                "{scheme}:// is not compiled in: build msg-patterns with feature \"{feature}\""
            );
        }
        let mut schemes: Vec<&str> = self.0.iter().flat_map(|f| f.schemes()).copied().collect();
        schemes.dedup();
        format!("no fabric serves {scheme}://: use one of {}://", schemes.join("://, "))
    }
}

impl std::fmt::Debug for Backends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|fabric| fabric.schemes())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(backends: &Backends, addr: &str) -> String {
        let error = backends.find(&addr.parse().unwrap()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        error.to_string()
    }

    #[test]
    fn a_scheme_that_was_left_out_names_its_feature() {
        for (scheme, feature) in KNOWN {
            let text = refusal(&Backends::default(), &format!("{scheme}://h:1"));
            assert!(text.contains(&format!("feature \"{feature}\"")), "{text}");
        }
    }

    #[test]
    fn each_feature_serves_its_scheme_and_no_other() {
        let compiled_in = [
            ("tcp", cfg!(feature = "tcp")),
            ("verbs", cfg!(feature = "verbs")),
            ("softroce", cfg!(feature = "softroce")),
            ("ofi", cfg!(feature = "libfabric")),
            ("ofi+tcp", cfg!(feature = "libfabric")),
            ("ofi+shm", cfg!(feature = "libfabric")),
        ];
        let backends = Backends::compiled_in();
        for (scheme, is_in) in compiled_in {
            let addr = format!("{scheme}://h:1").parse().unwrap();
            assert_eq!(backends.find(&addr).is_ok(), is_in, "{scheme}");
        }
        assert!(refusal(&backends, "other://h:1").contains("no fabric serves other://"));
    }
}
