//! Executors and fabrics to run each test on, and futures that are given up.

use std::future::Future;
use std::pin::Pin;
use std::process::abort;
use std::sync::Arc;
#[cfg(feature = "libfabric")]
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use async_executor::Executor;
use fabric_sim::{SimFabric, SimNet};
use tokio::runtime::{Builder, Runtime};

/// Watchdog: longer than anything here takes on the slowest machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Writes each test once and runs it on every executor, over every fabric.
macro_rules! everywhere {
    ($( $(#[$meta:meta])* async fn $name:ident($on:ident) $body:block )*) => {
        $( $(#[$meta])* async fn $name($on: $crate::support::On) $body )*
        everywhere! { @each sim sim $($name)* }
        everywhere! { @each tcp tcp $($name)* }
        #[cfg(feature = "libfabric")]
        everywhere! { @few ofi_tcp ofi_tcp $($name)* }
        #[cfg(feature = "libfabric")]
        everywhere! { @few ofi_shm ofi_shm $($name)* }
    };
    // A runtime that drives sockets, and an executor whose sockets the context's thread drives.
    (@few $module:ident $net:ident $($name:ident)*) => {
        mod $module {
            mod tokio_of_one_thread {
                $( #[test] fn $name() {
                    $crate::support::Exec::one_thread().run($crate::support::Net::$net(), super::super::$name);
                } )*
            }
            mod async_executor {
                $( #[test] fn $name() {
                    $crate::support::Exec::small().run($crate::support::Net::$net(), super::super::$name);
                } )*
            }
        }
    };
    (@each $module:ident $net:ident $($name:ident)*) => {
        mod $module {
            mod tokio_of_one_thread {
                $( #[test] fn $name() {
                    $crate::support::Exec::one_thread().run($crate::support::Net::$net(), super::super::$name);
                } )*
            }
            mod tokio_of_several_threads {
                $( #[test] fn $name() {
                    $crate::support::Exec::several_threads().run($crate::support::Net::$net(), super::super::$name);
                } )*
            }
            mod async_executor {
                $( #[test] fn $name() {
                    $crate::support::Exec::small().run($crate::support::Net::$net(), super::super::$name);
                } )*
            }
        }
    };
}

/// A fabric.
#[derive(Clone)]
pub(crate) enum Net {
    Sim(SimFabric),
    Tcp,
    /// An address of libfabric to listen at.
    #[cfg(feature = "libfabric")]
    Ofi(&'static str),
}

impl Net {
    pub(crate) fn sim() -> Self {
        Self::Sim(SimFabric::new(SimNet::new()))
    }

    pub(crate) fn tcp() -> Self {
        Self::Tcp
    }

    /// libfabric's tcp, where this host has it.
    #[cfg(feature = "libfabric")]
    pub(crate) fn ofi_tcp() -> Option<Self> {
        Self::ofi("ofi+tcp://127.0.0.1:0")
    }

    /// libfabric's shared memory, where this host has it.
    #[cfg(feature = "libfabric")]
    pub(crate) fn ofi_shm() -> Option<Self> {
        static ADDR: LazyLock<String> =
            LazyLock::new(|| format!("ofi+shm://tasks-{}:0", std::process::id()));
        Self::ofi(&ADDR)
    }

    /// With `FABRIC_REQUIRE_LIBFABRIC=1` the host must have it.
    #[cfg(feature = "libfabric")]
    fn ofi(addr: &'static str) -> Option<Self> {
        match msg_patterns::Context::new().open_domain(&addr.parse().unwrap()) {
            Ok(_) => Some(Self::Ofi(addr)),
            Err(error) => {
                let required =
                    std::env::var("FABRIC_REQUIRE_LIBFABRIC").is_ok_and(|set| set == "1");
                assert!(!required, "{error}");
                println!("skipped: {error}");
                None
            }
        }
    }

    /// A context of its own on the fabric.
    pub(crate) fn context(&self) -> msg_patterns::Context {
        match self {
            Self::Sim(fabric) => msg_patterns::Context::new().with_fabric(fabric.clone()),
            _ => msg_patterns::Context::new(),
        }
    }

    /// An address to bind to that picks a free port.
    pub(crate) fn any(&self) -> &'static str {
        match self {
            Self::Sim(_) => "sim://host:0",
            Self::Tcp => "tcp://127.0.0.1:0",
            #[cfg(feature = "libfabric")]
            Self::Ofi(addr) => addr,
        }
    }
}

/// An executor.
#[derive(Clone)]
pub(crate) enum Exec {
    Tokio(Arc<Runtime>),
    Small(Arc<Executor<'static>>),
}

/// Where a test runs.
#[derive(Clone)]
pub(crate) struct On {
    pub(crate) net: Net,
    pub(crate) exec: Exec,
}

impl Exec {
    pub(crate) fn one_thread() -> Self {
        Self::Tokio(Arc::new(Builder::new_current_thread().enable_all().build().unwrap()))
    }

    pub(crate) fn several_threads() -> Self {
        let mut builder = Builder::new_multi_thread();
        Self::Tokio(Arc::new(builder.worker_threads(3).enable_all().build().unwrap()))
    }

    pub(crate) fn small() -> Self {
        Self::Small(Arc::new(Executor::new()))
    }

    /// Runs a test over a fabric, if the host has it.
    pub(crate) fn run<F: Future<Output = ()> + Send>(
        self,
        net: impl Into<Option<Net>>,
        test: impl FnOnce(On) -> F,
    ) {
        let Some(net) = net.into() else { return };
        let _watchdog = Watchdog::new();
        let test = test(On { net, exec: self.clone() });
        match &self {
            Self::Tokio(runtime) => runtime.block_on(test),
            Self::Small(executor) => futures_lite::future::block_on(executor.run(test)),
        }
    }
}

impl On {
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Pin<Box<dyn Future<Output = T> + Send>> {
        match &self.exec {
            Exec::Tokio(runtime) => {
                let task = runtime.spawn(future);
                Box::pin(async { task.await.unwrap() })
            }
            Exec::Small(executor) => Box::pin(executor.spawn(future)),
        }
    }

    /// As `spawn`, of a future that has to wait; gives its task once it does.
    pub(crate) async fn spawn_waiting<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Pin<Box<dyn Future<Output = T> + Send>> {
        let waits = Arc::new(AtomicBool::new(false));
        let told = waits.clone();
        let task = self.spawn(async move {
            let mut future = Box::pin(future);
            assert!(futures_lite::future::poll_once(&mut future).await.is_none());
            told.store(true, Ordering::SeqCst);
            future.await
        });
        while !waits.load(Ordering::SeqCst) {
            futures_lite::future::yield_now().await;
        }
        task
    }

    /// Runs blocking code beside the executor.
    pub(crate) fn beside<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Pin<Box<dyn Future<Output = T> + Send>> {
        let thread = thread::spawn(call);
        Box::pin(async {
            while !thread.is_finished() {
                futures_lite::future::yield_now().await;
            }
            thread.join().unwrap()
        })
    }
}

/// Ends the process if the test hangs.
pub(crate) struct Watchdog {
    _done: Sender<()>,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        let (_done, done) = channel();
        thread::spawn(move || {
            if done.recv_timeout(LONG) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("a test hangs");
                abort();
            }
        });
        Self { _done }
    }
}

/// Polls a future a few times at most, then drops it.
pub(crate) struct Fickle<F> {
    future: Option<Pin<Box<F>>>,
    polls: usize,
}

impl<F: Future> Fickle<F> {
    pub(crate) fn new(future: F, polls: usize) -> Self {
        Self { future: Some(Box::pin(future)), polls }
    }
}

impl<F: Future> Future for Fickle<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            self.future = None;
        }
        let Some(future) = &mut self.future else { return Poll::Ready(None) };
        match future.as_mut().poll(task) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => {
                self.polls -= 1;
                if self.polls == 0 {
                    task.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }
}
