//! Contexts: what the sockets of a program share.

use std::sync::{Arc, Weak};

use fabric_core::{Addr, Domain, DynFabric};
use parking_lot::{Condvar, Mutex};

use crate::backend::Backends;
use crate::background::{Background, Driven};
use crate::{Error, ErrorKind, descriptors};

/// Most sockets of a context at a time (libzmq: ZMQ_MAX_SOCKETS).
const SOCKETS_MAX: usize = 1023;

/// What sockets share: the providers to choose from and one background thread. Cheap to clone; a
/// program needs one.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    closed: Condvar,
    sockets_max: usize,
}

#[derive(Default)]
struct State {
    backends: Backends,
    background: Option<Arc<Background>>,
    sockets: Vec<Weak<dyn Driven>>,
    #[cfg(feature = "metrics")]
    measured: Vec<Weak<dyn crate::metrics::Measured>>,
    open: usize,
    shut_down: bool,
}

/// What a socket needs of its context.
pub(crate) struct Lease {
    pub(crate) background: Arc<Background>,
    pub(crate) backends: Backends,
    context: Context,
}

impl Context {
    /// A context with the providers that were compiled in.
    pub fn new() -> Self {
        Self::with_sockets_max(SOCKETS_MAX)
    }

    /// A context for at most `sockets_max` sockets at a time; the default is 1023.
    pub fn with_sockets_max(sockets_max: usize) -> Self {
        descriptors::reserve_while_alone();
        let state = State { backends: Backends::compiled_in(), ..State::default() };
        Self(Arc::new(Inner { state: Mutex::new(state), closed: Condvar::new(), sockets_max }))
    }

    /// Adds a provider of the caller's own for the sockets made from now on. It comes before those
    /// compiled in.
    #[must_use]
    pub fn with_fabric(self, fabric: impl DynFabric + 'static) -> Self {
        self.0.state.lock().backends.add(Arc::new(fabric));
        self
    }

    /// Opens a domain to listen at or connect to `addr`, without any pattern on top: for those who
    /// want the bare fabric, for instance to measure it.
    ///
    /// ```
    /// use msg_patterns::{Context, fabric_core::Domain};
    ///
    /// let addr = "tcp://127.0.0.1:0".parse()?;
    /// let mut domain = Context::new().open_domain(&addr)?;
    /// assert_eq!((domain.caps().provider, domain.listen(&addr)?.addr.host()), ("tcp", "127.0.0.1"));
    /// assert!(Context::new().open_domain(&"pigeon://loft".parse()?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` when no provider serves the scheme, and what opening says.
    pub fn open_domain(&self, addr: &Addr) -> Result<Box<dyn Domain>, Error> {
        let backends = self.0.state.lock().backends.clone();
        Ok(backends.find(addr)?.open_boxed_for(addr)?)
    }

    /// Ends all waiting and later calls of its sockets with `Terminated`; no further socket can be
    /// made. Sockets are still to be closed.
    pub fn shutdown(&self) {
        let sockets: Vec<Arc<dyn Driven>> = {
            let mut state = self.0.state.lock();
            state.shut_down = true;
            state.sockets.iter().filter_map(Weak::upgrade).collect()
        };
        for socket in sockets {
            socket.terminate();
        }
    }

    /// Shuts down and waits until every socket was closed or dropped.
    pub fn terminate(self) {
        self.shutdown();
        let mut state = self.0.state.lock();
        while state.open > 0 {
            self.0.closed.wait(&mut state);
        }
    }

    pub(crate) fn lease(&self) -> Result<Lease, Error> {
        let mut state = self.0.state.lock();
        if state.shut_down {
            return Err(Error::new(
                ErrorKind::Terminated,
                "the context was shut down: make a new one",
            ));
        }
        if state.open >= self.0.sockets_max {
            let text = format!(
                "the context has {} sockets, its limit: close some, or use with_sockets_max",
                state.open
            );
            return Err(Error::new(ErrorKind::Limit, text));
        }
        let background = match &state.background {
            Some(background) => background.clone(),
            None => Arc::new(Background::new()),
        };
        state.background = Some(background.clone());
        state.open += 1;
        Ok(Lease { background, backends: state.backends.clone(), context: self.clone() })
    }

    /// Has its figures published as long as it is there.
    #[cfg(feature = "metrics")]
    pub(crate) fn measure(&self, socket: Weak<dyn crate::metrics::Measured>) {
        let mut state = self.0.state.lock();
        if state.measured.len() > 2 * state.open {
            state.measured.retain(|socket| socket.strong_count() > 0);
        }
        state.measured.push(socket);
    }

    /// The sockets that there are.
    #[cfg(feature = "metrics")]
    pub(crate) fn measured(&self) -> Vec<Arc<dyn crate::metrics::Measured>> {
        self.0.state.lock().measured.iter().filter_map(Weak::upgrade).collect()
    }

    /// Finds somebody to drive a new socket when no call does.
    pub(crate) fn add(&self, socket: &Arc<dyn Driven>, lease: &Lease) -> Result<(), Error> {
        self.remember(socket);
        #[cfg(feature = "tokio")]
        if crate::runtime::adopt(socket, &lease.background) {
            return Ok(());
        }
        lease.background.add(socket)
    }

    fn remember(&self, socket: &Arc<dyn Driven>) {
        let mut state = self.0.state.lock();
        if state.sockets.len() > 2 * state.open {
            state.sockets.retain(|socket| socket.strong_count() > 0);
        }
        state.sockets.push(Arc::downgrade(socket));
    }
}

impl Lease {
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.context.0.state.lock().open -= 1;
        self.context.0.closed.notify_all();
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(background) = &self.state.get_mut().background {
            background.stop();
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.state.lock();
        f.debug_struct("Context")
            .field("fabrics", &state.backends)
            .field("sockets", &state.open)
            .finish_non_exhaustive()
    }
}
