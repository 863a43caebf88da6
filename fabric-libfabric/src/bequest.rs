//! Locks that killed processes leave behind.
//!
//! With libfabric 1.17 both ends of a connection over shm take a lock in the shared memory of either
//! endpoint. Who is killed meanwhile never gives it back, and the other end waits for ever, inside the
//! provider. So a thread of its own watches the side channels of such connections. Once a peer is gone,
//! nobody but this process uses their memory, by one thread at a time: there is nothing left for a lock
//! to protect, and it is given back.

use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::sockopt::socket_peercred;
use rustix::process::getpid;

use crate::litter;
use crate::sys::RegionLock;

/// Connections are watched as long as it lives.
pub(crate) struct Watched(u64);

struct Connection {
    side: OwnedFd,
    locks: [RegionLock; 2],
}

struct Watcher {
    epoll: OwnedFd,
    connections: Mutex<(u64, HashMap<u64, Connection>)>,
}

/// Watches the connection beside `side` between the endpoints of these names. `None` where they are of
/// one process, share no lock that is known, or the host lets nobody watch.
pub(crate) fn watch(side: BorrowedFd<'_>, own: &[u8], peer: &[u8]) -> Option<Watched> {
    let peer_pid = socket_peercred(side).ok()?.pid;
    if peer_pid == getpid() {
        return None;
    }
    let own = RegionLock::of(&litter::file_of(own)?, getpid().as_raw_pid())?;
    let peer = RegionLock::of(&litter::file_of(peer)?, peer_pid.as_raw_pid())?;
    let connection = Connection { side: side.try_clone_to_owned().ok()?, locks: [own, peer] };
    let watcher = watcher()?;
    watcher.add(connection).inspect_err(|error| tracing::debug!(%error, "not watched")).ok()
}

fn watcher() -> Option<&'static Watcher> {
    static WATCHER: OnceLock<Option<Watcher>> = OnceLock::new();
    WATCHER.get_or_init(|| Watcher::start().ok()).as_ref()
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(watcher) = watcher() {
            watcher.take(self.0);
        }
    }
}

impl Watcher {
    fn start() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let own = epoll.try_clone()?;
        std::thread::Builder::new().name("fabric-ofi".to_owned()).spawn(move || run(&own))?;
        Ok(Self { epoll, connections: Mutex::default() })
    }

    fn connections(&self) -> MutexGuard<'_, (u64, HashMap<u64, Connection>)> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, connection: Connection) -> io::Result<Watched> {
        let mut connections = self.connections();
        connections.0 += 1;
        let key = connections.0;
        epoll::add(&self.epoll, &connection.side, EventData::new_u64(key), EventFlags::RDHUP)?;
        connections.1.insert(key, connection);
        Ok(Watched(key))
    }

    fn take(&self, key: u64) -> Option<Connection> {
        let connection = self.connections().1.remove(&key)?;
        if let Err(error) = epoll::delete(&self.epoll, &connection.side) {
            tracing::debug!(%error, "a side channel stays watched");
        }
        Some(connection)
    }
}

fn run(epoll: &OwnedFd) {
    let mut gone = Vec::with_capacity(64);
    loop {
        gone.clear();
        match epoll::wait(epoll, spare_capacity(&mut gone), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return tracing::warn!(%error, "nobody watches for locks left behind"),
        }
        let Some(watcher) = watcher() else { return };
        for event in &gone {
            let connection = watcher.take(event.data.u64());
            for lock in connection.iter().flat_map(|connection| &connection.locks) {
                if lock.release() {
                    tracing::debug!("gave back a lock that a killed process held");
                }
            }
        }
    }
}
