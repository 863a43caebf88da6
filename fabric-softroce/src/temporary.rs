//! A link that goes when its owner does.

use std::ops::Deref;

use fabric_core::Error;

use crate::link::{self, Link};

/// A soft-RoCE link made for the time being: dropping this removes it.
#[derive(Debug)]
#[must_use = "dropping it removes the link"]
pub struct TemporaryLink {
    /// Nothing once it was kept.
    link: Link,
    kept: bool,
}

impl TemporaryLink {
    /// Makes a link on an interface, named `rxe_` and the interface's name.
    ///
    /// # Errors
    /// As [`add`](crate::add).
    pub fn on(interface: &str) -> Result<Self, Error> {
        Self::named(&format!("rxe_{interface}"), interface)
    }

    /// Makes a link of a given name.
    ///
    /// # Errors
    /// As [`add`](crate::add).
    pub fn named(name: &str, interface: &str) -> Result<Self, Error> {
        Ok(Self { link: link::add(name, interface)?, kept: false })
    }

    /// Lets the link stay.
    #[must_use]
    pub fn keep(mut self) -> Link {
        self.kept = true;
        self.link.clone()
    }
}

impl Deref for TemporaryLink {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl Drop for TemporaryLink {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // By its number: another link may have got its name meanwhile.
        if let Err(error) = link::remove_link(&self.link) {
            tracing::warn!(link = %self.link.name, %error, "a soft-RoCE link stays behind");
        }
    }
}
