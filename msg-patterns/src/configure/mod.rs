//! Settings by name: in builders, in the queries of addresses, in files and in the environment.

mod kinds;
mod names;
mod query;
#[cfg(feature = "serde")]
mod serde;
mod setting;
mod settings;
mod table;
#[cfg(test)]
mod tests;

pub use setting::Setting;
pub use settings::Settings;

pub(crate) use table::Options;
