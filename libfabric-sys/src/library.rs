//! Loading `libfabric.so.1`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::sync::OnceLock;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

use crate::{fi_fabric_attr, fi_info, fid_fabric};

const FILE: &str = "libfabric.so.1";

/// Keeps a library that libfabric brings along from taking over the handlers of crash signals.
const NO_BACKTRACE: &CStr = c"IPATH_NO_BACKTRACE";

type Getinfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const fi_info,
    *mut *mut fi_info,
) -> c_int;
type Freeinfo = unsafe extern "C" fn(*mut fi_info);
type Dupinfo = unsafe extern "C" fn(*const fi_info) -> *mut fi_info;
type Fabric = unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;

/// The loaded library: the functions that it exports. Everything else goes through objects, see
/// [`crate::call`]. It is never unloaded, as its objects may live as long as the program.
#[derive(Debug)]
pub struct Library {
    version: unsafe extern "C" fn() -> u32,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    /// `fi_getinfo(3)`.
    pub fi_getinfo: Getinfo,
    /// `fi_freeinfo`.
    pub fi_freeinfo: Freeinfo,
    /// `fi_dupinfo`; of nothing it makes an empty one.
    pub fi_dupinfo: Dupinfo,
    /// `fi_fabric(3)`.
    pub fi_fabric: Fabric,
}

/// Why the library cannot be used. In one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// There is none, or it cannot be loaded; what the loader says.
    Missing(String),
    /// It has no function of this name and version, so it is older than 1.9.
    TooOld(&'static str),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) => {
                let why = why.replace('\n', " ");
                write!(
                    f,
                    "{FILE} cannot be loaded: install libfabric (Debian and Ubuntu: `apt install libfabric1`) \
                     ({why})"
                )
            }
            Self::TooOld(name) => {
                write!(f, "{FILE} has no {name}: update libfabric to 1.9 or newer")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// The library of this host, loaded at the first call.
///
/// # Errors
/// [`LoadError`], the same at each call.
pub fn library() -> Result<&'static Library, LoadError> {
    static LIBRARY: OnceLock<Result<Library, LoadError>> = OnceLock::new();
    LIBRARY.get_or_init(Library::load).as_ref().map_err(Clone::clone)
}

impl Library {
    /// Major and minor version.
    pub fn version(&self) -> (u32, u32) {
        // SAFETY: takes nothing and may always be called.
        let version = unsafe { (self.version)() };
        (version >> 16, version & 0xffff)
    }

    /// What an error number means, negative or not.
    pub fn strerror(&self, code: c_int) -> String {
        // SAFETY: takes any number and gives a constant text or null.
        let text = unsafe { (self.strerror)(code.saturating_abs()) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: not null, and the library's texts end and stay.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    fn load() -> Result<Self, LoadError> {
        keep_signal_handlers();
        // SAFETY: initialisers of libfabric and what it links run now; the one known to disturb the
        // process was just told not to.
        let loaded = unsafe { Loaded::open(Some(FILE), RTLD_NOW | RTLD_LOCAL) };
        let loaded = loaded.map_err(|error| LoadError::Missing(text_of(&error)))?;
        // Kept open for ever.
        let handle = loaded.into_raw();
        // SAFETY: each name and version stands for a function of the type it is given here.
        let library = unsafe {
            Self {
                version: find(handle, "fi_version", "FABRIC_1.0")?,
                strerror: find(handle, "fi_strerror", "FABRIC_1.0")?,
                fi_getinfo: find(handle, "fi_getinfo", "FABRIC_1.3")?,
                fi_freeinfo: find(handle, "fi_freeinfo", "FABRIC_1.3")?,
                fi_dupinfo: find(handle, "fi_dupinfo", "FABRIC_1.3")?,
                fi_fabric: find(handle, "fi_fabric", "FABRIC_1.1")?,
            }
        };
        Ok(library)
    }
}

/// Sets the variable unless the user did.
fn keep_signal_handlers() {
    let name = NO_BACKTRACE.to_string_lossy();
    if std::env::var_os(&*name).is_none() {
        // SAFETY: the standard library locks the environment against its own readers; others read it
        // when they start, and the loader below is the next one that does.
        unsafe { std::env::set_var(&*name, "1") };
    }
}

/// # Safety
/// `handle` must be open, and `T` the type of the function's pointer.
unsafe fn find<T: Copy>(
    handle: *mut c_void,
    name: &'static str,
    version: &'static str,
) -> Result<T, LoadError> {
    let too_old = || LoadError::TooOld(name);
    let name = CString::new(name).map_err(|_| too_old())?;
    let version = CString::new(version).map_err(|_| too_old())?;
    // SAFETY: as the caller says.
    unsafe { versioned(handle, &name, &version) }.ok_or_else(too_old)
}

/// The function of exactly this version. Another one may lay out its structures differently.
///
/// # Safety
/// `handle` must be open, and `T` the type of the function's pointer.
#[cfg(target_env = "gnu")]
unsafe fn versioned<T: Copy>(handle: *mut c_void, name: &CStr, version: &CStr) -> Option<T> {
    unsafe extern "C" {
        fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    }
    // SAFETY: the handle is open and both texts end.
    let found = unsafe { dlvsym(handle, name.as_ptr(), version.as_ptr()) };
    // SAFETY: as the caller says.
    unsafe { function(found) }
}

/// This C library's loader knows no versions of symbols.
///
/// # Safety
/// As above.
#[cfg(not(target_env = "gnu"))]
unsafe fn versioned<T: Copy>(handle: *mut c_void, name: &CStr, _version: &CStr) -> Option<T> {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // SAFETY: the handle is open and the text ends.
    let found = unsafe { dlsym(handle, name.as_ptr()) };
    // SAFETY: as the caller says.
    unsafe { function(found) }
}

/// # Safety
/// `T` must be a function pointer of the type of what `found` points to.
unsafe fn function<T: Copy>(found: *mut c_void) -> Option<T> {
    assert_eq!(size_of::<T>(), size_of::<*mut c_void>(), "a function pointer");
    // SAFETY: of the same size and, as the caller says, of that type; null was ruled out.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

/// The loader's reason; the error itself shows only what was tried.
fn text_of(error: &libloading::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_it_cannot_be_used_is_one_line_that_says_what_to_do() {
        let missing = LoadError::Missing("no such\nfile".into()).to_string();
        assert!(missing.contains("libfabric1") && !missing.contains('\n'), "{missing}");
        assert!(LoadError::TooOld("fi_getinfo").to_string().contains("update"));
    }

    #[test]
    fn a_library_that_is_there_tells_its_version_and_errors() {
        match library() {
            Ok(library) => {
                assert!(library.version() >= (1, 9), "{:?}", library.version());
                assert!(!library.strerror(-crate::FI_EAVAIL).is_empty());
            }
            Err(error) => println!("skipped: {error}"),
        }
    }
}
